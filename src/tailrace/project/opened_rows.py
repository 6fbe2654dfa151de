"""Rows that a project's sinks have opened: how many hold something of a subject, and which of
them are out of reach once it is erased."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.errors import TailraceError
from tailrace.project.copies import opened_copy
from tailrace.project.load import Project
from tailrace.sinks.opening import again_file, suspects, was_written_again

KEPT = (
    "at sinks with open=: copies kept for rollback, older versions, files and backups that the "
    "target keeps, rows whose newest change is a dead letter"
)


@dataclass(slots=True)
class OpenedRows:
    """Keys that hold or have held a value of the subject, by sink, and what stays."""

    counts: dict[str, int] = field(default_factory=dict)
    unreachable: list[str] = field(default_factory=list)


def opened_rows(project: Project, bootstrap: str, tag: str) -> OpenedRows:
    """Look at every sink that opens columns. One that does not answer is counted as its topic
    has it."""
    found = OpenedRows()
    for copy in project.sinks.values():
        if not copy.declaration.open:
            continue
        place = f"sink {copy.name} ({copy.declaration.place})"
        with opened_copy(project, bootstrap, copy.name) as opened:
            try:
                goal = opened.delivery.goal(1.0)
            except TailraceError as error:
                found.unreachable.append(f"{place}: it was not looked at: {error.message}")
                continue
            if not goal.shape.keyed or opened.sink.wants != "latest":
                found.unreachable.append(f"{place}: what it has delivered is not written again")
                continue
            found.counts[copy.name] = len(suspects(opened.reader, goal.position, [tag]))
    if found.counts:
        found.unreachable.append(KEPT)
    return found


def waiting(project: Project, names: dict[str, int], tag: str) -> list[str]:
    """The sinks among these that have not written their rows again since the erasure."""
    state = project.settings.state_directory
    return [
        name
        for name in sorted(names)
        if name in project.sinks and not was_written_again(again_file(state, name), tag)
    ]
