"""A project that kills itself with SIGKILL at a named step of the n-th tick of a fill.

python filling_driver.py BOOTSTRAP PROJECT DIRECTORY STEP TICK
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import tailrace as tr
from pipelines.steps import tell_steps
from pipelines.ticks.test_fill import PAID, PER_COUNTRY
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.reading.catalog import read_catalog
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work, gather, guarded
from tailrace.pipelines.ticks.project import ProjectTicks

STEPS = ("planned", "state written", "job done", "changes sent", "committing", "committed")


def main(bootstrap: str, project: str, directory: str, step: str, number: str) -> None:
    tick = 0
    filling = False

    def reached(name: str) -> None:
        if filling and name == step and tick == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    def run(work: Work) -> Outcome:
        nonlocal tick, filling
        filling = "-filling/" in work.state
        tick += filling
        reached("planned")
        outcome = gather(guarded(work))
        reached("job done")
        return outcome

    tell_steps(reached)
    views = [
        tr.view(f"{project}_per_country", PER_COUNTRY.format(s=project)),
        tr.view(f"{project}_paid", PAID.format(s=project)),
    ]
    with LogReader(bootstrap) as reader:
        graph = compile_views(views, read_catalog(reader, [project]).tables.values())
    settings = TickSettings(
        project, bootstrap, f"{directory}/state", f"{directory}/cache", shards=3, limit=3
    )
    ticks = ProjectTicks(graph, settings, run)
    ticks.start()
    while True:
        ticks.step(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
