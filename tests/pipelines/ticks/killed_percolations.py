"""The ticks of one percolation, killed with SIGKILL at a named step of the n-th.

python killed_percolations.py BOOTSTRAP NAME DIRECTORY STEP TICK
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
import tailrace as tr
from pipelines.steps import tell_steps
from pipelines.ticks.killed_patterns import in_process
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler.declared_patterns import compile_patterns
from tailrace.pipelines.declare import Percolation
from tailrace.pipelines.ticks.driver import Runner, TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work
from tailrace.pipelines.ticks.patterns import PatternTicks, key_of
from tailrace.records.tick import TICKS_TOPIC


def declared(name: str, **more: Any) -> Percolation:
    return tr.percolate(
        f"{name}_alerts", tr.topic(f"{name}_listings", schema="id INT, title STRING, price INT"),
        queries=tr.topic(
            f"{name}_searches", schema="id INT, query STRING, owner STRING, once BOOLEAN", key="id"
        ),
        id="id", query="query", text="title", fields="price", carry="owner", **more,
    )  # fmt: skip


def ticks_of(
    bootstrap: str, percolation: Percolation, directory: str, run: Runner = in_process,
    limit: int = 30,
) -> PatternTicks:  # fmt: skip
    settings = TickSettings(
        key_of("shop", percolation.name), bootstrap, f"{directory}/state", f"{directory}/cache",
        shards=3, limit=limit, declared=frozenset([percolation.name]),
        dead=f"{percolation.name}.dead",
    )  # fmt: skip
    compiled, wrong = compile_patterns([percolation], {})
    assert not wrong, wrong
    return PatternTicks(compiled[percolation.name], settings, run, beginning={})


def main(bootstrap: str, name: str, directory: str, step: str, number: str) -> None:
    tick = 0

    def reached(one: str) -> None:
        if one == step and tick == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    def run(work: Work) -> Outcome:
        nonlocal tick
        tick += 1
        reached("planned")
        outcome = in_process(work)
        reached("job done")
        return outcome

    def send(self: Any, topic: str, *rest: Any) -> None:
        original_send(self, topic, *rest)
        if topic == TICKS_TOPIC:
            self.flush()
            reached("row sent")

    original_send = TransactionalWriter.send
    TransactionalWriter.send = send  # type: ignore[method-assign,assignment]
    tell_steps(reached)
    driver = ticks_of(bootstrap, declared(name), directory, run)
    driver.begin()
    while True:
        driver.step(1.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
