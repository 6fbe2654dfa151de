"""What a supervisor needs to know of a project: its settings and its processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.config import Settings
from tailrace.node.apart import apart
from tailrace.node.parts import PartSpec, parts_of
from tailrace.pipelines.beginnings import Beginning, beginning_of
from tailrace.pipelines.declare import Pattern, Stream
from tailrace.sinks.beginnings import SinkBeginning
from tailrace.sinks.beginnings import beginning_of as beginning_of_copy

if TYPE_CHECKING:
    from tailrace.project.load import Project


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings, and the processes in the order in which they start."""

    settings: Settings
    parts: tuple[PartSpec, ...]
    beginnings: tuple[Beginning, ...] = ()  # of the streams, if their part is among them
    sinks: tuple[SinkBeginning, ...] = ()  # of the copies among them that start "now"

    @property
    def directory(self) -> Path:
        return self.settings.directory


def of_project(project: Project, only: Collection[str] = ()) -> Plan:
    """The plan of a project that is loaded already."""
    parts = tuple(parts_of(project, only))
    runs = any(part.kind == "pipelines" for part in parts)
    streams: list[Stream | Pattern] = [*project.streams.values(), *project.patterns.values()]
    begun = tuple(beginning_of(stream) for stream in streams) if runs else ()
    named = {part.name for part in parts if part.kind == "sink"}
    copies = [beginning_of_copy(copy) for name, copy in project.sinks.items() if name in named]
    return Plan(project.settings, parts, begun, tuple(one for one in copies if one is not None))


def plan(
    directory: Path, *, flags: Mapping[str, object] | None = None, only: Collection[str] = ()
) -> Plan:
    """Load and check the project in `directory`, in a process of its own."""

    def work() -> Plan:
        from tailrace.project import load
        from tailrace.project.check import missing_variables, refuse_mistakes

        project = load.load(directory, flags=flags)
        refuse_mistakes(project)
        found = of_project(project, only)
        started = {(part.kind, part.name) for part in found.parts}
        for part, error in missing_variables(project):
            if part in started:
                raise error
        return found

    return apart(work)
