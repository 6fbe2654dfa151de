"""Which processes a project consists of, in the order in which they start."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailrace.node.errors import UnknownPartError

if TYPE_CHECKING:
    from tailrace.project.load import Project

# Start order; parts stop in the order of DRAIN: first what brings data in, last the log.
KINDS = (
    "broker",
    "registry",
    "events",
    "source",
    "edge",
    "connect",
    "pipelines",
    "views",
    "sink",
    "mirror",
    "console",
)
DRAIN = (
    "connect",
    "edge",
    "source",
    "mirror",
    "events",
    "pipelines",
    "sink",
    "views",
    "console",
    "registry",
    "broker",
)
SHARD = "#"  # is in no name


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One process to run. `name` is what a user calls it."""

    kind: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.name}"

    @property
    def title(self) -> str:
        return f"tailrace {self.kind} {self.name}"


def parts_of(project: Project, only: Collection[str] = ()) -> list[PartSpec]:
    """Every process of `project`, or those named in `only` with the log and the console."""
    parts: list[PartSpec] = []
    if project.settings.log.bootstrap is None:
        parts.append(PartSpec("broker", "log"))
    if project.settings.registry.listen is not None:
        parts.append(PartSpec("registry", "registry"))
    if project.events or project.reactions:
        parts.append(PartSpec("events", project.name))
    parts += [PartSpec("source", name) for name in project.sources]
    parts += [PartSpec("edge", name) for name in project.edges]
    if project.settings.connect.listen is not None:
        parts.append(PartSpec("connect", "connect"))
    if project.views or project.streams or project.matchers:
        parts.append(PartSpec("pipelines", project.name))
    if project.views:
        parts.append(PartSpec("views", project.name))
    parts += [PartSpec("sink", name) for name in project.sinks]
    for name, plan in project.mirrors.items():
        parts += [PartSpec("mirror", shard_name(name, number)) for number in range(plan.shards)]
    parts.append(PartSpec("console", "console"))
    if not only:
        return parts
    known = {part.name.partition(SHARD)[0] for part in parts} | {part.kind for part in parts}
    for name in only:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UnknownPartError(
                f"the project has no part {name!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"parts: {', '.join(sorted(known))}",
            )
    always = ("broker", "console")
    return [
        part
        for part in parts
        if part.kind in always or {part.name.partition(SHARD)[0], part.kind} & set(only)
    ]


def shard_name(name: str, number: int) -> str:
    """What the process of one shard is called; the first as the whole."""
    return f"{name}{SHARD}{number}" if number else name
