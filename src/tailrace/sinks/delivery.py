"""The loop that keeps one copy in step with the log.

A view's copy moves from tick to tick: it reads the changelog from where the target says
it is to where the newest tick row says the changelog ends. A stream's copy follows its
topic. Whatever happens, the target's own position decides where to go on.
"""

from __future__ import annotations

import contextlib
import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import orjson
import pyarrow as pa

from tailrace.client.ranges import Chunk, Range, RangeReader
from tailrace.client.stream_columns import DescribedColumns
from tailrace.client.ticks import TickTail
from tailrace.clock import SYSTEM, Clock
from tailrace.files import FILES
from tailrace.records.rows import normal_key, python_rows, row_of
from tailrace.sinks.base import (
    Batch,
    Readable,
    Replaceable,
    Resting,
    Scrubbing,
    Shape,
    Sink,
    SinkPosition,
    decode_position,
    view_shape,
)
from tailrace.sinks.beginnings import begin_now, beginning_of
from tailrace.sinks.changes import Collector, KnownColumns, forced, pieces, removal
from tailrace.sinks.dead_letters import (
    DeadLetter,
    DeadLetters,
    letter_of_record,
    letter_of_row,
)
from tailrace.sinks.errors import (
    RowsRefusedError,
    SealedValueError,
    SinkAheadError,
    SinkBehindError,
    SinkError,
    SinkHeldError,
    TooManyRefusedError,
)
from tailrace.sinks.opening import Lenient, Opener, WrittenAgain, opened_batch, suspects
from tailrace.sinks.registry import Copy
from tailrace.telemetry.metrics import counter

log = logging.getLogger(__name__)

ROWS = counter("tailrace_sink_rows_total", "Changes applied to a copy", ["sink"])
REFUSED = counter("tailrace_sink_refused_rows_total", "Rows sent to dead letters", ["sink"])


@dataclass(frozen=True, slots=True)
class Goal:
    """How far a copy should be brought: a position, and the shape of the rows there."""

    position: SinkPosition
    shape: Shape


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Patience and limits of a delivery.

    `delete_retention`: how long topics keep tombstones; a copy older than that looks for
    keys that are gone, since it may never see their deletes.
    """

    first_pause: timedelta = timedelta(milliseconds=100)
    longest_pause: timedelta = timedelta(seconds=30)
    parked_pause: timedelta = timedelta(seconds=10)
    most_refused: int = 1000
    delete_retention: timedelta = timedelta(days=7)


class Delivery:
    """Keeps one copy in step. `step` until told to stop; errors leave a consistent copy."""

    def __init__(
        self,
        copy: Copy,
        sink: Sink,
        reader: RangeReader,
        project: str,
        dead_letters: DeadLetters,
        *,
        settings: DeliverySettings | None = None,
        clock: Clock = SYSTEM,
        memory: Path | None = None,
        opener: Opener | None = None,
    ) -> None:
        """`memory`: a file for what is known of a stream's columns; facts beside it. `opener`
        opens the columns that the declaration names in `open=`."""
        self.copy = copy
        self.sink = sink
        self.settings = settings or DeliverySettings()
        self.position: SinkPosition | None = None
        self._latency_ms = 0  # the longest of what was applied since it was last told
        self.refused = 0
        self._reader = reader
        self._dead_letters = dead_letters
        self._clock = clock
        self._ticks = TickTail(reader, project) if copy.source == "view" else None
        self._shape: Shape | None = None
        self._goal_seen: Goal | None = None
        self._goal_reached: Goal | None = None
        self._known = KnownColumns(memory)
        self._described = DescribedColumns(reader, copy.topic)
        self._project = project
        self._state = None if memory is None else memory.parent.parent
        self._held_path = None if memory is None else memory.with_suffix(".held")
        self._opener = opener
        self._written_again = WrittenAgain(
            None if memory is None else memory.with_suffix(".erased")
        )
        self._refused_in_a_row = 0
        self._applied_at = float("-inf")
        self._stale = False

    def close(self) -> None:
        """Let go of the target; the next `step` opens it again."""
        self._shape = None
        self.sink.close()

    @property
    def lag(self) -> int | None:
        """How many offsets the copy is behind what the log was last seen to have; None if
        the copy has not been looked at yet."""
        if self._goal_seen is None or self.position is None:
            return None
        held = (
            self.position.offsets if self.position.topic == self._goal_seen.position.topic else {}
        )
        ends = self._goal_seen.position.offsets
        return sum(max(0, end - held.get(partition, 0)) for partition, end in ends.items())

    @property
    def behind_ms(self) -> int | None:
        """How old the copy is while the log has more for it; 0 when it is in step. Past
        `delete_retention` the log may have forgotten deletes it has not seen."""
        if self.position is None or self.lag is None:
            return None
        if self.lag == 0 or not self.position.at_ms:
            return 0
        return max(0, self._clock.wall_ms() - self.position.at_ms)

    def freshness_ms(self) -> int | None:
        """How late what was applied since this was last asked came here; of what is not here
        yet, its age. 0 when there was nothing to do; None before the first look."""
        behind = self.behind_ms
        if behind is None:
            return None
        found, self._latency_ms = max(behind, self._latency_ms), 0
        return found

    def step(self, timeout: float) -> int:
        """Bring the copy as far as the log is; how many records were read for it."""
        pace = self.copy.declaration.pace
        if pace is not None and self._clock.monotonic() < self._applied_at + pace.total_seconds():
            self._clock.sleep(min(timeout, 0.05))
            return 0
        goal = self._goal(timeout)
        if goal is None:
            return 0
        self._goal_seen = goal
        if self._shape is None or self._shape != goal.shape or self._is_elsewhere(goal):
            self.sink.open(goal.shape)
            self.position = self.sink.position()
            self._written_again.look(self.position)
            self._check_position(goal)
            self._shape = goal.shape
            if self.position is None and self.copy.declaration.start == "now":
                self._apply(self._collector(goal.shape).make(self._begin_now(goal))[0])
        read = 0
        for batch, count in self._batches(goal):
            self._apply(batch)
            read += count
            self._applied_at = self._clock.monotonic()
        if self._stale and isinstance(self.sink, Readable):
            log.info("looking for deletes that were compacted away", extra={"sink": self.copy.name})
            self._sweep(goal)
        self._stale = False
        if isinstance(self.sink, Resting):
            self.sink.rest()
        self._goal_reached = goal
        if goal.position.at_ms and read:
            taken = max(0, self._clock.wall_ms() - goal.position.at_ms)
            self._latency_ms = max(taken, self._latency_ms)
        return read

    def forget_erased(self) -> int:
        """Write the rows again that hold something of subjects that were erased since the last
        time, now with NULL; how many. A copy whose rows are only appended keeps them."""
        here, shape = self.position, self._shape
        if self._opener is None or here is None or shape is None:
            return 0
        erased = self._opener.erased()
        missing = self._written_again.missing(erased)
        count = 0
        if missing and shape.keyed and self.sink.wants == "latest":
            count = self._write_again(missing, shape, here)
            if isinstance(self.sink, Scrubbing):
                self.sink.scrub()
            log.info("erased values taken out", extra={"sink": self.copy.name, "rows": count})
        if missing:
            self._written_again.note(erased, here)
        return count

    def _write_again(self, tags: frozenset[str], shape: Shape, here: SinkPosition) -> int:
        assert self._opener is not None
        columns, lenient = self.copy.declaration.open, Lenient(self._opener)
        found = suspects(self._reader, here, tags)
        if shape.one_row:
            if found:
                self.sink.apply(opened_batch(self._one_row(shape, here), columns, lenient))
            return len(found)
        if self.copy.declaration.start == "now" and isinstance(self.sink, Readable):
            # Most of the topic is not in the copy, and must not come into it.
            held = {
                orjson.dumps(key)
                for table in self.sink.scan(shape)
                for key in python_rows(table.select(list(shape.key)))
            }
            found = {key: value for key, value in found.items() if key in held}
        wrapped = self.copy.source == "view"
        rows = [
            (key, None if value is None else row_of(value) if wrapped else value)
            for key, value in found.items()
        ]
        step = self.copy.declaration.batch_rows
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            batch = forced(shape, [key for key, _ in part], [row for _, row in part], here)
            try:
                self.sink.apply(opened_batch(batch, columns, lenient))
            except RowsRefusedError as reason:
                raise SinkError(
                    f"sink {self.copy.name!r} does not take rows without what was erased",
                    # Not the target's own words: they may quote what is sealed in the log.
                    detail="the target refused rows in which it is NULL",
                    hint=f"columns that open= names must take NULL: {', '.join(columns)}",
                ) from reason
        return len(rows)

    def _is_elsewhere(self, goal: Goal) -> bool:
        """Whether the view was built anew: its offsets are those of another topic now."""
        held, wanted = self.position, goal.position
        return held is not None and (held.topic, held.generation) != (
            wanted.topic,
            wanted.generation,
        )

    def _begin_now(self, goal: Goal) -> SinkPosition:
        """Where a copy that starts "now" begins: as was written down when it was declared."""
        one = beginning_of(self.copy)
        if one is None or self._state is None:
            return goal.position
        return begin_now(self._state, self._reader, self._project, one, goal.position)

    def goal(self, timeout: float) -> Goal:
        """Where the log is now; `SinkError` if it has nothing for this copy yet."""
        goal = self._goal(timeout) or self._goal_reached
        if goal is None:
            raise SinkError(
                f"there is nothing to fill sink {self.copy.name!r} from",
                hint="the view has no tick yet; see `tailrace status`",
            )
        return goal

    def retry(self, letters: Iterable[DeadLetter], timeout: float = 5.0) -> int:
        """Write refused rows again, with the values the log has for their keys now; how
        many the target takes this time. Those are struck off the dead letters."""
        goal = self.goal(timeout)
        self.sink.open(goal.shape)
        self._shape = goal.shape
        self.position = self.sink.position()
        self._written_again.look(self.position)
        if self.position is None:
            return 0
        done: list[DeadLetter] = []
        for letter, record in self._newest(list(letters), goal.shape, self.position):
            collector = self._collector(goal.shape)
            collector.add(record, record.offsets[0] + 1)
            batch, bad = collector.make(self.position)
            if not bad:
                with contextlib.suppress(RowsRefusedError):
                    self.sink.apply(self._plain(batch))
                    done.append(letter)
        self._dead_letters.strike(done)
        return len(done)

    def _newest(
        self, letters: list[DeadLetter], shape: Shape, position: SinkPosition
    ) -> Iterator[tuple[DeadLetter, Chunk]]:
        """The record to write for every letter: its key's newest up to the position, or,
        where rows have no key, the one that was refused."""
        if not shape.keyed:
            for letter in letters:
                wanted = Range(letter.topic, letter.partition, letter.offset, letter.offset + 1)
                yield from ((letter, c) for c in self._reader.read([wanted]) if c.offsets)
            return
        by_key = {
            orjson.dumps({name: letter.row.get(name) for name in shape.key}): letter
            for letter in letters
            if isinstance(letter.row, dict)
        }
        bounds = self._reader.bounds(position.topic)
        newest: dict[bytes, Chunk] = {}
        for chunk in self._reader.read(
            [
                Range(position.topic, partition, bounds.get(partition, (0, 0))[0], end)
                for partition, end in position.offsets.items()
                if by_key
            ]
        ):
            for offset, key, value in zip(chunk.offsets, chunk.keys, chunk.values, strict=True):
                if key is not None and (name := normal_key(key)) in by_key:
                    newest[name] = Chunk("", chunk.partition, [offset], [key], [value], [0])
        yield from ((by_key[name], record) for name, record in newest.items())

    def replay(self, timeout: float = 5.0) -> None:
        """Fill the copy again from the start of its topic: beside the one in use where the
        target can have two, else over it."""
        goal = self.goal(timeout)
        self.sink.open(goal.shape)
        self._shape = goal.shape
        if isinstance(self.sink, Replaceable):
            self.sink.discard()
        self._replace(goal)
        self._hold(None)

    # ------------------------------------------------------------------ a second copy

    def rebuild(self, timeout: float = 5.0, *, resume: bool = False) -> tuple[Sink, Goal]:
        """Fill a copy beside the one in use and leave it there, open to be compared; what
        is in use is not touched. `resume`: go on with one that was begun."""
        sink = self._replaceable()
        goal = self.goal(timeout)
        if sink.position() is None:
            raise SinkError(
                f"sink {self.copy.name!r} has no copy yet",
                hint="start it with `tailrace up`; a second copy is made beside the first",
            )
        if not resume:
            sink.discard()
        self.position = None
        self._fill_beside(goal)
        return sink.beside(), goal

    def switch(self, timeout: float = 5.0) -> None:
        """Bring the copy beside up to date and put it in place of the one in use."""
        sink = self._replaceable()
        goal = self.goal(timeout)
        beside = sink.beside()
        try:
            held = beside.position()
        finally:
            beside.close()
        if held is None:
            raise SinkError(
                f"there is no copy beside the one of sink {self.copy.name!r}",
                hint=f"`tailrace sink rebuild {self.copy.name}` makes one",
            )
        self._fill_beside(goal)
        self.sink.open(goal.shape)
        self._take_beside(goal)
        self._hold(None)

    def rollback(self) -> SinkPosition:
        """Undo the last switch; where the copy is then.

        A copy of another generation than the view has now is held there: going on would
        build the newer one again. `switch` and `replay` let it go on.
        """
        sink = self._replaceable()
        previous = sink.previous()
        if previous is None:
            raise SinkError(
                f"sink {self.copy.name!r} has no copy to go back to",
                detail="The copy before is kept from a switch until the next one.",
            )
        sink.rollback()
        self._written_again.forget()
        self.close()
        self.position = previous
        self._hold(previous)
        return previous

    def _replaceable(self) -> Replaceable:
        if not isinstance(self.sink, Replaceable):
            raise SinkError(
                f"sink {self.copy.name!r} has one copy only",
                detail=f"A {self.copy.declaration.kind} target cannot hold two side by side.",
                hint=f"`tailrace sink replay {self.copy.name}` fills it again in place",
            )
        return self.sink

    def _hold(self, position: SinkPosition | None) -> None:
        """Remember that the copy is to stay at a generation, or that it is not."""
        if self._held_path is None:
            return
        if position is None:
            self._held_path.unlink(missing_ok=True)
        else:
            FILES.make_directories(self._held_path.parent)
            FILES.write_whole(self._held_path, position.encode().encode())

    # ------------------------------------------------------------------ where to

    def _goal(self, timeout: float) -> Goal | None:
        return self._tick_goal(timeout) if self._ticks is not None else self._topic_goal(timeout)

    def _tick_goal(self, timeout: float) -> Goal | None:
        assert self._ticks is not None
        row = self._ticks.wait(timeout)
        view = None if row is None else row.views.get(self.copy.subject)
        if row is None or view is None:
            return None
        shape = view_shape(view)
        position = SinkPosition(
            view.topic, view.generation, row.tick, row.ends.get(view.topic, {}), row.ts_ms
        )
        return Goal(replace(position, one_row=shape.one_row), shape)

    def _topic_goal(self, timeout: float) -> Goal | None:
        """The stream's end now, and the columns its rows have.

        Their types are those the stream describes; rows are read twice all the same, once
        to see that the types hold them (rows of long ago, or of others, need not fit), once
        to be delivered. What is known is remembered in a file.
        """
        bounds = self._reader.bounds(self.copy.topic)
        ends = {partition: end for partition, (_, end) in bounds.items()}
        known = self._known
        ranges = [
            Range(self.copy.topic, p, max(known.offsets.get(p, 0), start), end)
            for p, (start, end) in bounds.items()
            if end > known.offsets.get(p, 0)
        ]
        if self._shape is not None and not ranges:
            self._clock.sleep(min(timeout, 0.02))
            return None
        # After the bounds: a stream describes its columns before it writes rows of them.
        described = self._described.now()
        for chunk in self._reader.read(ranges):
            known.learn(chunk.values, self.copy.declaration.columns, described)
        known.offsets.update(ends)
        known.save()
        if not known.columns:
            self._clock.sleep(min(timeout, 0.02))
            return None
        columns = tuple((n, "STRING" if k == "VOID" else k) for n, k in known.columns.items())
        position = SinkPosition(self.copy.topic, 1, 0, ends, self._clock.wall_ms())
        return Goal(position, Shape(columns, self.copy.key))

    def _check_position(self, goal: Goal) -> None:
        held = self.position
        if held is None:
            return
        if self._is_elsewhere(goal):
            self._check_hold(held)
            if self._go_back(goal):
                return
            if held.generation > goal.position.generation:
                raise self._ahead(held, goal.position)
            self._replace(goal)
            return
        age_ms = self._clock.wall_ms() - held.at_ms
        retention_ms = self.settings.delete_retention / timedelta(milliseconds=1)
        self._stale = bool(goal.shape.keyed and held.at_ms and age_ms > retention_ms)
        bounds = self._reader.bounds(held.topic)
        for partition, offset in held.offsets.items():
            start, end = bounds.get(partition, (0, 0))
            if offset > end or offset > goal.position.offsets.get(partition, 0):
                raise self._ahead(held, goal.position)
            if not goal.shape.keyed and offset < start:
                raise SinkBehindError(
                    f"sink {self.copy.name!r} lacks changes that the log no longer has",
                    detail=f"It is at {offset} of {held.topic}/{partition}, the log begins at "
                    f"{start}.",
                    hint=f"`tailrace sink replay {self.copy.name}` fills it from what there is",
                )
        if goal.position.one_row and not held.one_row:
            self._check_hold(held)
            self._keep_one_row(goal, held)

    def _check_hold(self, held: SinkPosition) -> None:
        if self._held_path is None:
            return
        try:
            kept = decode_position(FILES.read_whole(self._held_path))
        except (ValueError, KeyError) as damaged:
            raise SinkError(
                f'"{self._held_path}" is damaged',
                detail=f"It says where sink {self.copy.name!r} is held after a rollback: {damaged}",
                hint=f"`tailrace sink switch {self.copy.name}` goes forward again",
            ) from damaged
        if kept is not None and (kept.topic, kept.generation) == (held.topic, held.generation):
            raise SinkHeldError(
                f"sink {self.copy.name!r} was rolled back and is held there",
                detail=f"It has generation {held.generation} of {self.copy.subject!r}.",
                hint=f"`tailrace sink switch {self.copy.name}` goes forward again, `replay` fills "
                "it anew",
            )

    def _go_back(self, goal: Goal) -> bool:
        """A view that was rolled back finds the copy of its generation, if it is kept."""
        if not isinstance(self.sink, Replaceable):
            return False
        previous = self.sink.previous()
        if previous is None or previous.lineage != goal.position.lineage:
            return False
        if any(n > goal.position.offsets.get(p, 0) for p, n in previous.offsets.items()):
            return False
        log.info("going back to the copy before", extra={"sink": self.copy.name})
        self.sink.rollback()
        self._written_again.forget()
        self.sink.open(goal.shape)
        self.position = self.sink.position()
        return True

    def _replace(self, goal: Goal) -> None:
        """Fill a copy of the new generation beside the one in use, then switch.

        Interrupted, it goes on where the copy beside says it is. A target that cannot
        have two copies takes the new rows over the old ones.
        """
        self.position = None
        if not isinstance(self.sink, Replaceable):
            if isinstance(self.sink, Readable):
                self._replace_in_place(goal)
            return
        self._fill_beside(goal)
        self._take_beside(goal)

    def _keep_one_row(self, goal: Goal, held: SinkPosition) -> None:
        """Mend a copy with every value that its one row ever had, as older versions kept it:
        fill another beside it and switch, or put the newest row in place of all. A target
        that only passes changes on has nothing to mend."""
        log.warning(
            "the copy may have rows of the past; mending it", extra={"sink": self.copy.name}
        )
        creates = getattr(self.copy.declaration, "create", True)
        if isinstance(self.sink, Replaceable) and creates:
            self._replace(goal)
            return
        here = replace(held, one_row=True) if self.sink.wants == "every" else goal.position
        if isinstance(self.sink, Readable):
            self._apply(self._one_row(goal.shape, here))
        self.position = here

    def _one_row(self, shape: Shape, position: SinkPosition) -> Batch:
        """The one row as the topic has it at a position, or that there is none."""
        bounds = self._reader.bounds(position.topic)
        ends = position.offsets
        newest = self._collector(shape)
        newest.add(Chunk(position.topic, 0, [0], [b"{}"], [None], [position.at_ms]), 1)
        for chunk in self._reader.read(
            [Range(position.topic, p, bounds[p][0], end) for p, end in ends.items() if p in bounds]
        ):
            count = bisect_left(chunk.offsets, ends[chunk.partition])
            if count:
                newest = self._collector(shape)
                newest.add(list(pieces(chunk, 1))[count - 1], ends[chunk.partition])
        return replace(self._make(newest, position), forced=True)

    def _take_beside(self, goal: Goal) -> None:
        assert isinstance(self.sink, Replaceable)
        self.sink.switch()
        self._written_again.forget()
        self.sink.open(goal.shape)
        self._shape = goal.shape
        self.position = self.sink.position()

    def _fill_beside(self, goal: Goal) -> None:
        """Bring the copy beside to the goal, from where it is."""
        assert isinstance(self.sink, Replaceable)
        log.info("filling a copy beside the one in use", extra={"sink": self.copy.name})
        kept = self.sink
        self.sink = kept.beside()
        try:
            self.sink.open(goal.shape)
            held = self.sink.position()
            if held is not None and held.lineage != goal.position.lineage:
                self.sink.close()
                kept.discard()
                self.sink.open(goal.shape)
                held = None
            self.position = held
            for batch, _ in self._batches(goal):
                self._apply(batch)
            if self.position is None:  # an empty topic has no batch
                self.sink.apply(Collector(goal.shape, True, True).make(goal.position)[0])
            if isinstance(self.sink, Resting):
                self.sink.rest()
        finally:
            self.sink.close()
            self.sink = kept

    def _replace_in_place(self, goal: Goal) -> None:
        """Write the new generation over the old one, then remove what it does not have."""
        for batch, _ in self._batches(goal):
            self._apply(batch)
        self._sweep(goal)

    def _sweep(self, goal: Goal) -> None:
        """Remove rows whose keys the topic does not have up to the goal."""
        assert isinstance(self.sink, Readable)
        ranges = [
            Range(goal.position.topic, partition, start, goal.position.offsets[partition])
            for partition, (start, _) in self._reader.bounds(goal.position.topic).items()
        ]
        alive: dict[bytes, bool] = {}
        for chunk in self._reader.read(ranges):
            for key, value in zip(chunk.keys, chunk.values, strict=True):
                alive[normal_key(key)] = value is not None
        gone: list[pa.Table] = []
        for table in self.sink.scan(goal.shape):
            keys = python_rows(table.select(list(goal.shape.key)))
            flags = [not alive.get(orjson.dumps(key)) for key in keys]
            gone.append(table.filter(pa.array(flags, pa.bool_())))
        # Only now: a scan may hold a transaction that a write would end.
        for table in gone:
            if table.num_rows:
                self._apply(removal(goal.shape, table, goal.position))

    def _ahead(self, held: SinkPosition, goal: SinkPosition) -> SinkAheadError:
        return SinkAheadError(
            f"sink {self.copy.name!r} is ahead of the log",
            detail=f"The copy is at {held.encode()}, the log at {goal.encode()}.",
            hint=f"if the log was replaced: `tailrace sink replay {self.copy.name}`",
        )

    # ------------------------------------------------------------------ batches

    def _batches(self, goal: Goal) -> Iterator[tuple[Batch, int]]:
        """Batches from the copy's position to the goal; the last one ends at the goal."""
        ends = goal.position.offsets
        starts = self._starts(goal)
        ranges = [
            Range(goal.position.topic, partition, starts[partition], end)
            for partition, end in ends.items()
            if end > starts[partition]
        ]
        if not ranges:
            return
        declaration = self.copy.declaration
        reached = dict(starts)
        tick = self.position.tick if self.position is not None else 0
        collector = self._collector(goal.shape)
        for chunk in self._reader.read(ranges):
            end = ends[chunk.partition]
            for piece in pieces(chunk, declaration.batch_rows):
                collector.add(piece, end)
                reached[piece.partition] = max(reached[piece.partition], min(piece.following, end))
                if len(collector) >= declaration.batch_rows and not declaration.whole:
                    between = replace(goal.position, tick=tick, offsets=dict(reached))
                    yield self._make(collector, between), len(collector)
                    collector = self._collector(goal.shape)
        yield self._make(collector, goal.position), len(collector)

    def _starts(self, goal: Goal) -> Mapping[int, int]:
        if self.position is not None:
            held = self.position.offsets
            return {partition: held.get(partition, 0) for partition in goal.position.offsets}
        bounds = self._reader.bounds(goal.position.topic)
        return {p: bounds.get(p, (0, 0))[0] for p in goal.position.offsets}

    def _collector(self, shape: Shape) -> Collector:
        return Collector(
            shape, wrapped=self.copy.source == "view", latest=self.sink.wants == "latest"
        )

    def _make(self, collector: Collector, position: SinkPosition) -> Batch:
        batch, bad = collector.make(position)
        if bad:
            at_ms = self._clock.wall_ms()
            self._write_letters([letter_of_record(self.copy, record, at_ms) for record in bad])
        return batch

    # ------------------------------------------------------------------ applying

    def _apply(self, batch: Batch) -> None:
        """Apply a batch; rows the target refuses are found by halving and put aside."""
        count = batch.changes.num_rows
        try:
            self.sink.apply(self._plain(batch))
        except RowsRefusedError as reason:
            if count > 1:
                half = count // 2
                self._apply(batch.head(half, self.position))
                self._apply(batch.tail(half))
                return
            if count == 0:
                raise
            at_ms = self._clock.wall_ms()
            self._write_letters([letter_of_row(self.copy, batch, self._told(reason), at_ms)])
            self.sink.apply(batch.tail(1))
        else:
            if count:
                self._refused_in_a_row = 0
                ROWS.labels(self.copy.name).inc(count)
        self.position = batch.position

    def _plain(self, batch: Batch) -> Batch:
        return opened_batch(batch, self.copy.declaration.open, self._opener)

    def _told(self, reason: RowsRefusedError) -> RowsRefusedError:
        """What a dead letter may say: targets quote the values they refuse."""
        if self._opener is None or isinstance(reason, SealedValueError):
            return reason
        return RowsRefusedError(
            "the target refused the row",
            detail="its reason is left out: it may quote what is sealed in the log",
        )

    def _write_letters(self, letters: list[DeadLetter]) -> None:
        self._dead_letters.write(letters)
        self.refused += len(letters)
        self._refused_in_a_row += len(letters)
        REFUSED.labels(self.copy.name).inc(len(letters))
        if self._refused_in_a_row > self.settings.most_refused:
            raise TooManyRefusedError(
                f"sink {self.copy.name!r} refuses everything",
                detail=f"{self._refused_in_a_row} rows in a row; the last: "
                f"{letters[-1].error.get('error', '')}",
                hint="compare the table with the view: `tailrace sink status`",
            )
