"""What a supervisor needs to know of a project: its settings and its processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tailrace.config import Settings
from tailrace.node.apart import apart
from tailrace.node.parts import PartSpec, parts_of


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings, and the processes in the order in which they start."""

    settings: Settings
    parts: tuple[PartSpec, ...]

    @property
    def directory(self) -> Path:
        return self.settings.directory


def plan(
    directory: Path, *, flags: Mapping[str, object] | None = None, only: Collection[str] = ()
) -> Plan:
    """Load and check the project in `directory`, in a process of its own."""

    def work() -> Plan:
        from tailrace.project import load
        from tailrace.project.check import missing_variables, refuse_mistakes

        project = load.load(directory, flags=flags)
        refuse_mistakes(project)
        parts = tuple(parts_of(project, only))
        started = {(part.kind, part.name) for part in parts}
        for part, error in missing_variables(project):
            if part in started:
                raise error
        return Plan(project.settings, parts)

    return apart(work)
