"""What a supervisor needs to know of a project: its settings and its processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.config import Settings
from tailrace.node.apart import apart
from tailrace.node.parts import PartSpec, parts_of
from tailrace.pipelines.declare import Stream
from tailrace.pipelines.streams.beginnings import Beginning, beginning_of
from tailrace.project.marks import Marks
from tailrace.sinks.beginnings import SinkBeginning
from tailrace.sinks.beginnings import beginning_of as beginning_of_copy

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.declared_patterns import Events  # its module loads pyarrow
    from tailrace.project.load import Project


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings, and the processes in the order in which they start."""

    settings: Settings
    parts: tuple[PartSpec, ...]
    beginnings: tuple[Beginning, ...] = ()  # of the streams, if their part is among them
    sinks: tuple[SinkBeginning, ...] = ()  # of the copies among them that start "now"
    marks: Marks = field(default_factory=Marks)  # of everything the project declares
    flags: Mapping[str, object] = field(default_factory=dict)  # as given, for the next plan
    only: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        return self.settings.directory


def of_project(project: Project, only: Collection[str] = ()) -> Plan:
    """The plan of a project that is loaded already."""
    from tailrace.project.marking import marks_of

    parts = tuple(parts_of(project, only))
    runs = any(part.kind == "pipelines" for part in parts)
    streams: list[Stream | Events] = [*project.streams.values(), *project.matchers]
    begun = tuple(beginning_of(stream) for stream in streams) if runs else ()
    named = {part.name for part in parts if part.kind == "sink"}
    copies = [beginning_of_copy(copy) for name, copy in project.sinks.items() if name in named]
    sinks = tuple(one for one in copies if one is not None)
    return Plan(project.settings, parts, begun, sinks, marks_of(project), only=tuple(only))


def plan(
    directory: Path, *, flags: Mapping[str, object] | None = None, only: Collection[str] = ()
) -> Plan:
    """Load and check the project in `directory`, in a process of its own."""

    return apart(lambda: loaded(directory, flags or {}, only)[1])


def loaded(
    directory: Path, flags: Mapping[str, object], only: Collection[str]
) -> tuple[Project, Plan]:
    """The same in this process, with the project."""
    from tailrace.project import load
    from tailrace.project.check import refuse_mistakes
    from tailrace.project.connections import missing_variables

    project = load.load(directory, flags=flags)
    refuse_mistakes(project)
    found = replace(of_project(project, only), flags=flags)
    started = {(part.kind, part.name) for part in found.parts}
    for part, error in missing_variables(project):
        if part in started:
            raise error
    return project, found
