"""A copy of a project, opened to be looked at while its own process goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tailrace.client.ranges import KafkaRanges
from tailrace.project.load import Project
from tailrace.sinks.base import Shape, Sink
from tailrace.sinks.dead_letters import TopicDeadLetters
from tailrace.sinks.delivery import Delivery
from tailrace.sinks.errors import UnknownSinkError
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.sinks.verify import Verification, Verifier


@dataclass(frozen=True, slots=True)
class OpenedCopy:
    """A copy with what is needed to look at it."""

    project: Project
    copy: Copy
    sink: Sink
    reader: KafkaRanges
    delivery: Delivery
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
    delivery = Delivery(
        copy,
        sink,
        reader,
        project.name,
        TopicDeadLetters(bootstrap, name),
        memory=project.settings.state_directory / "sinks" / f"{name}.columns",
    )
    try:
        with ExitStack() as closing:
            yield OpenedCopy(project, copy, sink, reader, delivery, closing)
    finally:
        delivery.close()
        reader.close()


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
