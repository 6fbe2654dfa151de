"""kill -9 of the driver at every step of a tick: the view equals a recompute."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.shop import recompute, shown, traffic
from pipelines.ticks.killed_driver import STEPS
from pipelines.ticks.test_ticks import Shop

SCRIPT = Path(__file__).parent / "killed_driver.py"


OFTEN = ("row sent", "committing")  # the narrowest places; the others by `make test-crash`


@pytest.mark.parametrize(
    "step",
    [step if step in OFTEN else pytest.param(step, marks=pytest.mark.crash) for step in STEPS],
)
def test_a_driver_killed_at_any_step_leaves_whole_ticks(
    log_address: str, tmp_path: Path, step: str
) -> None:
    shop = Shop(log_address, tmp_path)
    with shop.feed() as feed:
        position = [feed.transaction(*changes) for changes in traffic(len(step), 12)][-1]
        for number in (1, 2):
            run = subprocess.run(
                [sys.executable, str(SCRIPT), log_address, shop.name, shop.view, str(tmp_path), step, str(number)],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            assert run.returncode == -signal.SIGKILL, run.stderr
        with shop.driver() as driver:
            assert 1 <= driver.last.number <= 3
            shop.catch_up(driver, position)
        assert shown(shop.bootstrap, shop.view) == recompute(feed)
