"""The cycle collector and ticks."""

from __future__ import annotations

import subprocess
import sys

SETTLED = """
import gc
from tailrace.pipelines.state.collector import settle
class Node: pass
kept = Node()
kept.itself = kept
settle()
frozen = gc.get_freeze_count()
assert frozen > 1000, frozen
settle()
assert gc.get_freeze_count() == frozen, "only the first call counts"
waste = Node()
waste.itself = waste
del waste
assert gc.collect() >= 1, "what comes later is still collected"
"""


def test_a_worker_collects_only_what_came_after_its_first_task() -> None:
    run = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
