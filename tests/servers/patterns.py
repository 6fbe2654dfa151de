"""The patterns of a project, ticking in the process of a test."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.process.running_patterns import RunningPatterns
from tailrace.pipelines.reading.ranges import close_kept
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.state.cache import close_opened
from tailrace.pipelines.ticks.job import Outcome, Work, gather, guarded
from tailrace.project import patterns
from tailrace.project.load import Project
from tailrace.telemetry.part import Part

START = datetime(2026, 1, 1, tzinfo=UTC)


def in_process(work: Work) -> Outcome:
    return gather(guarded(work))


class Running:
    """The patterns of a project, ticking in this process."""

    def __init__(self, project: Project, bootstrap: str) -> None:
        self.project, self.bootstrap = project, bootstrap
        self.part = Part(
            project.name, "pipelines", project.name, bootstrap, project.settings.state_directory
        )
        declared = project.matchers
        self.patterns = RunningPatterns(declared, self.part, project.settings, in_process)

    def until(self, wished: Callable[[], bool]) -> None:
        """Tick until something is so."""
        with LogReader(self.bootstrap) as reader:
            for _ in range(1_000):
                self.patterns.step(reader)
                self.part.report("running", patterns=self.patterns.progress())
                if wished():
                    return
                threading.Event().wait(0.02)
        raise AssertionError(self.patterns.progress())

    def close(self) -> None:
        for life in self.patterns._lives.values():
            with contextlib.suppress(Exception):
                self.patterns._stop(life)
        close_kept()
        close_opened()

    def show(self, key: list[str] | None = None) -> dict[str, Any]:
        return patterns.show_pattern(self.project, self.bootstrap, "tested", key)


def write(bootstrap: str, *rows: tuple[int, int, int]) -> None:
    with TransactionalWriter(bootstrap, "people") as writer:
        writer.init()
        for card, amount, second in rows:
            at = (START + timedelta(seconds=second)).isoformat()
            value = orjson.dumps({"card": card, "amount": amount, "at": at})
            writer.send("payments", 0, None, value)
        writer.commit()
