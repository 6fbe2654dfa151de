"""A copy of a project, opened to be looked at while its own process goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.client.ranges import KafkaRanges
from tailrace.clock import SYSTEM
from tailrace.project.load import Project
from tailrace.project.opening import opener_of
from tailrace.sinks import requests
from tailrace.sinks.base import Shape, Sink
from tailrace.sinks.dead_letters import TopicDeadLetters, read_letters
from tailrace.sinks.delivery import Delivery
from tailrace.sinks.errors import SinkError, UnknownSinkError
from tailrace.sinks.opening import Opener
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.sinks.requests import Work
from tailrace.sinks.verify import Verification, Verifier
from tailrace.telemetry.part import read_reports

PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class OpenedCopy:
    """A copy with what is needed to look at it."""

    project: Project
    copy: Copy
    sink: Sink
    reader: KafkaRanges
    delivery: Delivery
    opener: Opener | None
    closing: ExitStack

    def verifier(self) -> Verifier:
        """Compares it with the log; waits up to five seconds for the first tick."""
        return self.verifier_of(self.sink, self.delivery.goal(5.0).shape)

    def verifier_of(self, sink: Sink, shape: Shape) -> Verifier:
        """The same for another copy of the rows, the one beside."""
        made = Verifier(
            self.copy.name,
            sink,
            self.reader,
            shape,
            wrapped=self.copy.source == "view",
            scratch=self.project.settings.state_directory / "sinks",
            columns=self.copy.declaration.open,
            opener=self.opener,
        )
        return self.closing.enter_context(made)


def find_copy(project: Project, name: str) -> Copy:
    """The copy called `name`, or an error that lists those there are."""
    copy = project.sinks.get(name)
    if copy is None:
        raise UnknownSinkError(
            f"no sink {name!r}",
            detail=f"Declared are: {', '.join(project.sinks) or 'none'}.",
            hint="see `tailrace sink list`",
        )
    return copy


@contextmanager
def opened_copy(project: Project, bootstrap: str, name: str) -> Iterator[OpenedCopy]:
    """Open the copy `name`; nothing of its process is disturbed."""
    copy = find_copy(project, name)
    reader = KafkaRanges(bootstrap)
    sink = make_sink(copy, Surroundings(project.settings.state_directory, bootstrap))
    opener = opener_of(project, bootstrap, copy)
    delivery = Delivery(
        copy,
        sink,
        reader,
        project.name,
        TopicDeadLetters(bootstrap, name),
        memory=project.settings.state_directory / "sinks" / f"{name}.columns",
        opener=opener,
    )
    try:
        with ExitStack() as closing:
            yield OpenedCopy(project, copy, sink, reader, delivery, opener, closing)
    finally:
        delivery.close()
        reader.close()
        if opener is not None:
            opener.close()


def ask_running(
    project: Project, name: str, work: Work, timeout: float, keys: Sequence[bytes] = ()
) -> int | None:
    """Have a sink that runs do something, and wait; how many rows it wrote, or None if it
    does not run."""
    find_copy(project, name)
    directory = project.settings.state_directory
    if not _runs(_report(directory, name)):
        return None
    request = requests.ask(directory, name, work, keys)
    until = SYSTEM.monotonic() + timeout
    while (answer := requests.answer(_report(directory, name), request)) is None:
        if SYSTEM.monotonic() > until:
            raise SinkError(
                f"sink {name!r} was asked to {work} but has not finished in {timeout:g} s",
                hint=f"see `tailrace sink status {name}`; it goes on",
            )
        SYSTEM.sleep(0.05)
    if told := answer["error"]:
        error = SinkError(told["error"], detail=told["detail"], hint=told["hint"])
        error.__dict__["code"] = told["code"]  # the code it had in the sink's process
        raise error
    return int(answer.get("count", 0))


def repair(opened: OpenedCopy, verifier: Verifier, found: Verification) -> int:
    """Write the rows that differ as the log has them now; how many. By the sink's own
    process if it runs."""
    if not found.keys:
        return 0
    done = ask_running(opened.project, opened.copy.name, "repair", PATIENCE, found.keys)
    return verifier.repair(found.keys) if done is None else done


def retry(opened: OpenedCopy) -> int:
    """Write the rows of all dead letters again; how many were taken this time."""
    name = opened.copy.name
    done = ask_running(opened.project, name, "retry", PATIENCE)
    return opened.delivery.retry(read_letters(opened.reader, name)) if done is None else done


def _report(directory: Path, name: str) -> Mapping[str, Any]:
    for report in read_reports(directory):
        if report.get("kind") == "sink" and report["name"] == name:
            return report
    return {}


def _runs(report: Mapping[str, Any]) -> bool:
    """Whether the process that wrote a report is alive."""
    pid = report.get("pid")
    if not pid or pid == os.getpid() or report.get("state") in ("stopped", None):
        return False
    try:
        os.kill(int(pid), 0)
    except OSError:
        return False
    return True


def verification_document(found: Verification, most: int) -> dict[str, object]:
    """A comparison as JSON, with at most `most` differences."""
    return {
        "sink": found.sink,
        "in_step": found.in_step,
        "rows": found.rows,
        "differing": found.count,
        "position": found.position,
        "ranges": list(found.ranges),
        "skipped": found.skipped,
        "differences": [
            {"key": d.key, "expected": d.expected, "found": d.found}
            for d in found.differences[:most]
        ],
    }
