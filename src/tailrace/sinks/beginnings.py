"""Where copies that start "now" begin, written down before anything moves.

A copy declared with `start="now"` begins with the first change after `up` first ran its
declaration, however late its process starts and however long its stream has no rows:

    <state>/sinks/<sink>.begins     {"topic", "offsets": {"0": 17}, "position", "ticks": 42}

`offsets` are the ends of a stream's topic; a topic that does not exist begins with its first
record. A view's copy begins where the view stood (`position`); one that was not shown yet
begins at the first tick that shows it, from the offset `ticks` of the tick topic on: rows of
its first fill are what there is, not changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from tailrace.client.ranges import Range, RangeReader
from tailrace.client.ticks import last_row
from tailrace.files import FILES
from tailrace.modes import make_private
from tailrace.records.tick import TICKS_TOPIC, TickRow, parse_tick
from tailrace.sinks.errors import SinkError

if TYPE_CHECKING:  # a supervisor knows beginnings, and does without Arrow
    from tailrace.sinks.base import SinkPosition
    from tailrace.sinks.registry import Copy


@dataclass(frozen=True, slots=True)
class SinkBeginning:
    """A copy that starts "now", and what of."""

    sink: str
    subject: str
    topic: str
    source: Literal["view", "stream"]


def beginning_of(copy: Copy) -> SinkBeginning | None:
    """What must be known of a copy that starts "now"; None for one that does not."""
    if copy.declaration.start != "now":
        return None
    return SinkBeginning(copy.name, copy.subject, copy.topic, copy.source)


def begins_path(directory: Path, sink: str) -> Path:
    return directory / "sinks" / f"{sink}.begins"


def record(
    directory: Path, reader: RangeReader, project: str, wanted: Iterable[SinkBeginning]
) -> None:
    """Write down where these copies begin, those that it is not known of yet."""
    for one in wanted:
        path = begins_path(directory, one.sink)
        if path.exists():
            continue
        document: dict[str, object] = {"topic": one.topic}
        if one.source == "stream":
            bounds = reader.bounds(one.topic)
            document["offsets"] = {str(p): end for p, (_, end) in bounds.items()}
        else:
            _, document["ticks"] = reader.bounds(TICKS_TOPIC).get(0, (0, 0))
            row = last_row(reader, project)
            shown = None if row is None else _shown(row, one.subject)
            document["position"] = None if shown is None else shown.encode()
        make_private(path.parent)
        FILES.write_whole(path, orjson.dumps(document))
        # A beginning that a power cut takes back would be found again, later: records lost.
        FILES.sync_directory(path.parent.parent)


def begin_now(
    directory: Path, reader: RangeReader, project: str, one: SinkBeginning, goal: SinkPosition
) -> SinkPosition:
    """Where the copy begins: as it was written down, at `goal` if it is not, or if that was
    another generation of the view."""
    path = begins_path(directory, one.sink)
    document = _written(path)
    if document.get("topic") != one.topic:
        return goal
    if one.source == "stream":
        offsets = {int(p): end for p, end in document["offsets"].items()}
        begun = {p: min(end, offsets.get(p, 0)) for p, end in goal.offsets.items()}
        return replace(goal, offsets=begun)
    return next(_candidates(reader, project, one.subject, document, goal), goal)


def _written(path: Path) -> dict[str, Any]:
    """What was written down; {} if nothing was."""
    if not path.exists():
        return {}
    try:
        found: object = orjson.loads(path.read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        # Beginning later than was written down would leave out records without a word.
        raise SinkError(
            f"{path} is damaged, which says where the copy begins",
            hint="put a good copy back, or remove it: the copy then begins where the log is now",
        )
    return found


def _candidates(
    reader: RangeReader, project: str, view: str, document: dict[str, Any], goal: SinkPosition
) -> Iterator[SinkPosition]:
    """Positions of the view since it was written down, the first first, as long as they are
    of the generation that is shown now."""
    from tailrace.sinks.base import decode_position

    same = (goal.topic, goal.generation)
    known = decode_position(document["position"])
    if known is not None and (known.topic, known.generation) == same:
        yield replace(known, one_row=goal.one_row)
    first, end = reader.bounds(TICKS_TOPIC).get(0, (0, 0))
    for chunk in reader.read([Range(TICKS_TOPIC, 0, max(first, document["ticks"]), end)]):
        for key, value in zip(chunk.keys, chunk.values, strict=True):
            if key == project.encode() and value is not None:
                shown = _shown(parse_tick(key, value), view)
                if shown is not None and (shown.topic, shown.generation) == same:
                    yield shown


def _shown(row: TickRow, view: str) -> SinkPosition | None:
    """Where a view stands at a tick; None if the tick does not show it."""
    from tailrace.sinks.base import SinkPosition

    info = row.views.get(view)
    if info is None:
        return None
    return SinkPosition(
        info.topic,
        info.generation,
        row.tick,
        row.ends.get(info.topic, {}),
        row.ts_ms,
        one_row=not info.key,
    )
