"""The time machine: a view as it was at an earlier tick, folded from its changelog.

A tick row says how far each changelog belonged to its tick, so the rows up to there are
the view at that tick. Compaction takes older records of a key away; the answer is exact
only where it cannot have done so: for ticks younger than the topic's
`min.compaction.lag.ms`, and for logs from which nothing is missing but markers. Anything
else is refused, never answered with fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from tailrace.client.ranges import Range, RangeReader
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.records.position import covered, parse_position
from tailrace.records.tick import TICKS_TOPIC, TickRow, ViewInfo, parse_tick
from tailrace.serving.errors import HistoryGoneError, UnknownViewError

MOST_RECORDS = 1_000_000
WINDOW = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """A tick that can be named: its number and when it was committed."""

    tick: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Past:
    """A view at one earlier tick."""

    view: ViewInfo
    moment: Moment
    position: str
    rows: list[dict[str, Any]]


class TimeMachine:
    """Answers about earlier ticks of one project, from the log alone."""

    def __init__(self, reader: RangeReader, project: str, *, clock: Clock = SYSTEM) -> None:
        self._reader = reader
        self._project = project
        self._clock = clock

    def span(self) -> tuple[Moment, Moment] | None:
        """The oldest and the newest tick the log still names; None before the first."""
        first, end = self._bounds()
        oldest = self._first_from(first, end)
        newest = self._last(lambda row: True)
        if oldest is None or newest is None:
            return None
        return _moment(oldest[1]), _moment(newest)

    def at_tick(self, number: int) -> TickRow:
        """The tick `number`, or the last one before it."""
        return self._chosen(self._last(lambda row: row.tick <= number), f"tick {number}")

    def at_time(self, at_ms: int) -> TickRow:
        """The last tick committed at or before a time."""
        return self._chosen(self._last(lambda row: row.ts_ms <= at_ms), "that time")

    def at_position(self, text: str) -> TickRow:
        """The first tick that has reached a position (`tick:…` or a source's)."""
        position = parse_position(text)
        if position.kind == "tick":
            return self.at_tick(position.number)

        def before(row: TickRow) -> bool:
            return not covered(
                position,
                project=self._project,
                tick=row.tick,
                positions=row.positions,
                inputs=row.inputs,
            )

        first, end = self._bounds()
        last = self._find(before)
        start = first if last is None else last[0] + 1
        found = self._first_from(start, end)
        if found is None:
            raise UsageError(
                f"no tick has reached {text} yet", hint="ask the view with at_least= to wait for it"
            )
        return found[1]

    def view(self, name: str, row: TickRow, *, kept_ms: int, limit: int = 1000) -> Past:
        """The view `name` at the tick of `row`, at most `limit` rows of it in key order.

        `kept_ms` is the `min.compaction.lag.ms` of its changelog. HistoryGoneError if
        compaction or retention may have removed part of what it consisted of.
        """
        info = row.views.get(name)
        if info is None:
            known = ", ".join(sorted(row.views)) or "none"
            raise UnknownViewError(
                f"view {name!r} did not exist at tick {row.tick}",
                detail=f"There were: {known}.",
                hint="choose a later tick",
            )
        ends = row.ends.get(info.topic, {})
        bounds = self._reader.bounds(info.topic)
        if not bounds or any(bounds.get(index, (0, -1))[1] < end for index, end in ends.items()):
            raise self._gone(name, row, f"The topic {info.topic} has been dropped or begun anew.")
        if sum(end - bounds[index][0] for index, end in ends.items()) > MOST_RECORDS:
            raise UsageError(
                f"the changelog of {name} is too long to fold here",
                detail=f"More than {MOST_RECORDS:,} records.",
                hint="read the topic with a consumer up to the tick's end offsets",
            )
        young = self._clock.wall_ms() - row.ts_ms < kept_ms
        held: dict[bytes, bytes] = {}
        for index, end in ends.items():
            start = bounds[index][0]
            seen = 0
            for chunk in self._reader.read([Range(info.topic, index, start, end)]):
                seen += len(chunk.offsets)
                for key, value in zip(chunk.keys, chunk.values, strict=True):
                    if key is None:
                        continue
                    if value is None:
                        held.pop(key, None)
                    else:
                        held[key] = value
            if start > 0 or (not young and end - start - seen > self._markers(info, index, row)):
                raise self._gone(name, row, f"{end - seen} of {end} records are gone.")
        chosen = sorted(held)[:limit]
        rows = [orjson.loads(held[key])["row"] for key in chosen]
        return Past(info, _moment(row), f"tick:{self._project}:{row.tick}", rows)

    # --- the ticks ---------------------------------------------------------------------

    def _bounds(self) -> tuple[int, int]:
        return self._reader.bounds(TICKS_TOPIC).get(0, (0, 0))

    def _rows(self, start: int, end: int) -> Iterator[tuple[int, TickRow]]:
        wanted = self._project.encode()
        for chunk in self._reader.read([Range(TICKS_TOPIC, 0, start, end)]):
            for offset, key, value in zip(chunk.offsets, chunk.keys, chunk.values, strict=True):
                if key == wanted and value is not None:
                    yield offset, parse_tick(wanted, value)

    def _first_from(self, start: int, end: int) -> tuple[int, TickRow] | None:
        """The first row of the project at or after an offset, read in growing windows."""
        window = WINDOW
        while start < end:
            until = min(end, start + window)
            for found in self._rows(start, until):
                return found
            start, window = until, window * 4
        return None

    def _find(self, holds: Callable[[TickRow], bool]) -> tuple[int, TickRow] | None:
        """The last row for which `holds`, which is true up to some row and then false."""
        low, high = self._bounds()
        best: tuple[int, TickRow] | None = None
        while low < high:
            middle = (low + high) // 2
            found = self._first_from(middle, high)
            if found is not None and holds(found[1]):
                best, low = found, found[0] + 1
            else:
                high = middle
        return best

    def _last(self, holds: Callable[[TickRow], bool]) -> TickRow | None:
        found = self._find(holds)
        return None if found is None else found[1]

    def _chosen(self, row: TickRow | None, asked: str) -> TickRow:
        if row is None:
            span = self.span()
            detail = f"The oldest is tick {span[0].tick}." if span else "Nothing has ticked yet."
            raise HistoryGoneError(f"no tick is kept from {asked} or before", detail=detail)
        return row

    def _markers(self, info: ViewInfo, index: int, last: TickRow) -> int:
        """How many transaction markers lie before the end of a partition at a tick."""
        ends: set[int] = set()
        for _, row in self._rows(*self._bounds()):
            if row.tick >= last.tick:
                break
            ends.add(row.ends.get(info.topic, {}).get(index, 0))
        return len(ends - {0, last.ends[info.topic][index]})

    def _gone(self, name: str, row: TickRow, detail: str) -> HistoryGoneError:
        return HistoryGoneError(
            f"the rows of {name} at tick {row.tick} are not all kept",
            detail=detail,
            hint="a longer min.compaction.lag.ms of the view's topic keeps more history",
        )


def _moment(row: TickRow) -> Moment:
    return Moment(row.tick, row.ts_ms)
