"""A driver that kills itself with SIGKILL at a named step of its n-th tick.

python killed_driver.py BOOTSTRAP PROJECT VIEW DIRECTORY STEP TICK
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from pipelines.shop import graph
from pipelines.steps import tell_steps
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.ticks.driver import TickDriver, TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work, gather, guarded
from tailrace.records.tick import TICKS_TOPIC

STEPS = (
    "planned", "state written", "job done", "changes sent", "row sent", "committing", "committed",
)  # fmt: skip


def main(bootstrap: str, project: str, view: str, directory: str, step: str, number: str) -> None:
    tick = 0

    def reached(name: str) -> None:
        if name == step and tick == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    def run(work: Work) -> Outcome:
        nonlocal tick
        tick += 1
        reached("planned")
        outcome = gather(guarded(work))
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
    settings = TickSettings(
        project, bootstrap, f"{directory}/state", f"{directory}/cache", shards=3, limit=5
    )
    driver = TickDriver(graph(project, view), settings, run)
    driver.start()
    while True:
        driver.step(1.0)
        print(driver.last.number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
