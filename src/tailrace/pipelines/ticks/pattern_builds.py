"""The two builds a pattern or percolation may have: one is shown, the other is beside it.

Each ticks under a key of its own (`<project>~<name>` and `<project>~<name>~beside`) with state
of its own. The one that is shown writes the topic of the pattern's name; the row's views say so.
The other one writes `<name>.<generation>`. A switch is one log transaction that changes both
rows, when both have read the same and know the same watermark: whatever becomes final after it
is told by the build that is shown then, once.

`Tick.build` holds of a build: `declared` (so that it goes on when the project's files declare
another one), `mode` (see `ticks.patterns`), and `told`: the topics that it has written, each with
the offsets `from` and `to` (none: until now).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.declared_patterns import Compiled, Events, compile_patterns
from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks.driver import last_row
from tailrace.pipelines.ticks.patterns import PatternTicks, key_of
from tailrace.pipelines.ticks.planner import cursor
from tailrace.pipelines.ticks.tick_row import Tick

SLOTS = ("", "~beside")
_OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")
_ELSEWHERE = ("name", "input", "queries", "to", "declared_at")  # not of what is matched


@dataclass(frozen=True, slots=True)
class Builds:
    """The last rows of both builds; `shown` is the slot of the one that is shown."""

    rows: Mapping[str, Tick | None]
    shown: str

    @property
    def beside(self) -> str:
        return next(slot for slot in SLOTS if slot != self.shown)

    @property
    def shown_row(self) -> Tick | None:
        return self.rows[self.shown]

    @property
    def beside_row(self) -> Tick | None:
        return self.rows[self.beside]


def read_builds(reader: LogReader, project: str, name: str) -> Builds:
    rows = {slot: last_row(reader, key_of(project, name + slot)) for slot in SLOTS}
    beside = rows[SLOTS[1]]
    shown = beside is not None and name in beside.views and beside.views[name].topic == name
    return Builds(rows, SLOTS[int(shown)])


def holds(row: Tick | None, compiled: Compiled) -> bool:
    """Whether a row is of a build of this declaration."""
    if row is None or not row.number:
        return False
    views = compiled.graph.views.items()
    same = all(row.nodes.get(name) == view.node for name, view in views)
    return same and {node.id for node in compiled.graph.nodes} <= set(row.operators)


def written(declared: Events) -> dict[str, Any]:
    """A declaration, but for what it reads and where it goes, as JSON holds it."""
    found = {
        one.name: getattr(declared, one.name)
        for one in fields(declared)
        if one.name not in _ELSEWHERE
    }
    return {"reads": declared.input.topic, **{name: _plain(value) for name, value in found.items()}}


def _plain(value: Any) -> Any:
    match value:
        case EventTime():
            return asdict(value)
        case tuple():
            return [_plain(one) for one in value]
        case Mapping():
            return {key: _plain(one) for key, one in value.items()}
    return value


def restored(row: Tick, declared: Events, tables: Mapping[str, TableInput]) -> Compiled | None:
    """What a build was declared as, compiled; None where it cannot go on: it was written before
    rows held declarations, reads something else, or has other operators by now."""
    known = dict(row.build.get("declared") or {})
    if known.pop("reads", None) != declared.input.topic:
        return None
    names = {one.name for one in fields(declared)} - set(_ELSEWHERE)
    if known.keys() != names:
        return None
    before = replace(declared, **{name: _tuples(name, value) for name, value in known.items()})
    try:
        compiled = compile_patterns([before], tables)[0].get(declared.name)
    except TailraceError:
        return None
    return compiled if compiled is not None and holds(row, compiled) else None


def _tuples(name: str, value: Any) -> Any:
    if name == "time":
        return None if value is None else EventTime(**value)
    if isinstance(value, list):
        return tuple(_tuples("", one) for one in value)
    if isinstance(value, dict):
        return {key: _tuples("", one) for key, one in value.items()}
    return value


def caught_up(shown: Tick, beside: PatternTicks) -> bool:
    """Whether a build has read exactly what the shown one has, where both read the same."""
    if not beside.begun or not beside.last.number:
        return False
    for topic in beside.graph.tables:
        source = topic.partition(".")[0]
        if topic not in shown.inputs:
            if beside.lag:
                return False
        elif f"{source}.transactions" in shown.inputs:
            if cursor(shown, source) != cursor(beside.last, source):
                return False
        elif shown.inputs[topic] != beside.last.inputs.get(topic):
            return False
    return True


def is_beginning(text: str) -> bool:
    """Whether a build may begin there: `earliest`, offsets as `0:120,1:90`, or a time as ISO 8601
    has it."""
    return text == "earliest" or bool(_OFFSETS.fullmatch(text)) or _moment(text) is not None


def beginning_from(text: str, reader: LogReader, topic: str) -> dict[int, int]:
    """The offsets of such a place; the beginning for what is none."""
    if _OFFSETS.fullmatch(text):
        pairs = (part.split(":") for part in text.split(","))
        return {int(partition): int(offset) for partition, offset in pairs}
    at = _moment(text)
    return {} if at is None else reader.offsets_at(topic, int(at.timestamp() * 1000))


def _moment(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
