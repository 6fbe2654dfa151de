"""Rows of `__tailrace_ticks`: what a committed tick of a project consists of.

The topic has one partition and is compacted; the key is the project's name, or
`<project>/<view>` for a view that is being built beside its predecessor, `<project>~<pattern>`
for a pattern of events. A row says how
far every changelog topic belongs to the tick (`ends`, next offset of **every**
partition, markers not counted), so a reader that applies changelogs exactly up to there
sees all views at one moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

TICKS_TOPIC = "__tailrace_ticks"


def pattern_key(project: str, pattern: str) -> str:
    """The key of a pattern's rows; no project and no view has such a name."""
    return f"{project}~{pattern}"


@dataclass(frozen=True, slots=True)
class ViewInfo:
    """A view as of a tick: where its changelog is and what its rows look like."""

    name: str
    topic: str
    generation: int = 1
    key: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict[str, object]:
        return {
            "topic": self.topic,
            "generation": self.generation,
            "key": list(self.key),
            "columns": [list(column) for column in self.columns],
        }


@dataclass(frozen=True, slots=True)
class TickRow:
    """One committed tick."""

    key: str
    project: str
    tick: int
    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    views: Mapping[str, ViewInfo] = field(default_factory=dict)
    positions: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    ts_ms: int = 0
    purged: str = ""
    """Has changed where copies of what the views held before may be kept nowhere any more."""

    def encode(self) -> bytes:
        """The fields readers need, as JSON; a driver's own row has more."""
        return orjson.dumps(
            {
                "project": self.project,
                "tick": self.tick,
                "positions": dict(self.positions),
                "inputs": _text_partitions(self.inputs),
                "ends": _text_partitions(self.ends),
                "views": {name: view.as_dict() for name, view in self.views.items()},
                "ts_ms": self.ts_ms,
                "purged": self.purged,
            }
        )


def parse_tick(key: bytes | str, value: bytes) -> TickRow:
    """Read a row; unknown fields are skipped, absent ones are empty."""
    document = orjson.loads(value)
    return TickRow(
        key=key.decode() if isinstance(key, bytes) else key,
        project=document.get("project", ""),
        tick=int(document["tick"]),
        ends=_number_partitions(document.get("ends")),
        views={
            name: parse_view(name, view) for name, view in (document.get("views") or {}).items()
        },
        positions=document.get("positions") or {},
        inputs=_number_partitions(document.get("inputs")),
        ts_ms=int(document.get("ts_ms") or 0),
        purged=document.get("purged") or "",
    )


def parse_view(name: str, document: dict[str, object]) -> ViewInfo:
    """Read one entry of a tick row's `views`."""
    key, columns = document.get("key") or (), document.get("columns") or ()
    assert isinstance(key, list | tuple)
    assert isinstance(columns, list | tuple)
    return ViewInfo(
        name=name,
        topic=str(document.get("topic") or name),
        generation=int(str(document.get("generation") or 1)),
        key=tuple(str(part) for part in key),
        columns=tuple((str(column[0]), str(column[1])) for column in columns),
    )


def _text_partitions(offsets: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    return {topic: {str(p): n for p, n in by.items()} for topic, by in offsets.items()}


def _number_partitions(
    document: Mapping[str, Mapping[str, int]] | None,
) -> dict[str, dict[int, int]]:
    return {
        topic: {int(p): int(n) for p, n in by.items()} for topic, by in (document or {}).items()
    }
