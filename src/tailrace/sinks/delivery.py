"""The loop that keeps one copy in step with the log.

A view's copy moves from tick to tick: it reads the changelog from where the target says
it is to where the newest tick row says the changelog ends. A stream's copy follows its
topic. Whatever happens, the target's own position decides where to go on.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from tailrace.client.errors import ClientError
from tailrace.client.ranges import Chunk, KafkaRanges, Range, RangeReader
from tailrace.client.ticks import TickTail
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import TailraceError
from tailrace.records.rows import normal_key, python_rows
from tailrace.sinks.base import (
    OFFSET,
    PARTITION,
    Batch,
    Readable,
    Replaceable,
    Resting,
    Shape,
    Sink,
    SinkPosition,
)
from tailrace.sinks.changes import BadRecord, Collector, KnownColumns, pieces, removal
from tailrace.sinks.dead_letters import DeadLetter, DeadLetters, TopicDeadLetters
from tailrace.sinks.errors import (
    RowsRefusedError,
    SinkAheadError,
    SinkBehindError,
    SinkError,
    SinkFencedError,
    TargetUnavailableError,
    TooManyRefusedError,
)
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.telemetry.metrics import counter

if TYPE_CHECKING:
    from tailrace.telemetry.part import Part

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
    ) -> None:
        self.copy = copy
        self.sink = sink
        self.settings = settings or DeliverySettings()
        self.position: SinkPosition | None = None
        self.freshness_ms: int | None = None
        self.refused = 0
        self._reader = reader
        self._dead_letters = dead_letters
        self._clock = clock
        self._ticks = TickTail(reader, project) if copy.source == "view" else None
        self._shape: Shape | None = None
        self._goal_reached: Goal | None = None
        self._known = KnownColumns(memory)
        self._refused_in_a_row = 0
        self._applied_at = float("-inf")
        self._stale = False

    def close(self) -> None:
        """Let go of the target; the next `step` opens it again."""
        self._shape = None
        self.sink.close()

    def step(self, timeout: float) -> int:
        """Bring the copy as far as the log is; how many records were read for it."""
        pace = self.copy.declaration.pace
        if pace is not None and self._clock.monotonic() < self._applied_at + pace.total_seconds():
            self._clock.sleep(min(timeout, 0.05))
            return 0
        goal = self._goal(timeout)
        if goal is None:
            return 0
        if self._shape is None or self._shape != goal.shape:
            self.sink.open(goal.shape)
            self.position = self.sink.position()
            self._check_position(goal)
            self._shape = goal.shape
            if self.position is None and self.copy.declaration.start == "now":
                self._apply(self._collector(goal.shape).make(goal.position)[0])
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
        if goal.position.at_ms:
            self.freshness_ms = max(0, self._clock.wall_ms() - goal.position.at_ms)
        return read

    def goal(self, timeout: float) -> Goal:
        """Where the log is now; `SinkError` if it has nothing for this copy yet."""
        goal = self._goal(timeout) or self._goal_reached
        if goal is None:
            raise SinkError(
                f"there is nothing to fill sink {self.copy.name!r} from",
                hint="the view has no tick yet; see `tailrace status`",
            )
        return goal

    def retry(self, rows: Iterable[object], timeout: float = 5.0) -> int:
        """Write refused rows again, with the values the log has for their keys now; how
        many the target takes this time."""
        goal = self.goal(timeout)
        self.sink.open(goal.shape)
        self._shape = goal.shape
        self.position = self.sink.position()
        keys = {
            orjson.dumps({name: row.get(name) for name in goal.shape.key})
            for row in rows
            if isinstance(row, dict)
        }
        if self.position is None or not keys or not goal.shape.key:
            return 0
        bounds = self._reader.bounds(self.position.topic)
        newest: dict[bytes, tuple[int, int, bytes | None]] = {}
        for chunk in self._reader.read(
            [
                Range(self.position.topic, partition, bounds.get(partition, (0, 0))[0], end)
                for partition, end in self.position.offsets.items()
            ]
        ):
            for offset, key, value in zip(chunk.offsets, chunk.keys, chunk.values, strict=True):
                if key is not None and normal_key(key) in keys:
                    newest[key] = (chunk.partition, offset, value)
        done = 0
        for key, (partition, offset, value) in newest.items():
            collector = self._collector(goal.shape)
            collector.add(Chunk("", partition, [offset], [key], [value], [0]), offset + 1)
            batch, bad = collector.make(self.position)
            if bad:
                continue
            with contextlib.suppress(RowsRefusedError):
                self.sink.apply(batch)
                done += 1
        return done

    def replay(self, timeout: float = 5.0) -> None:
        """Fill the copy again from the start of its topic: beside the one in use where the
        target can have two, else over it."""
        goal = self.goal(timeout)
        self.sink.open(goal.shape)
        self._shape = goal.shape
        if isinstance(self.sink, Replaceable):
            self.sink.discard()
        self._replace(goal)

    # ------------------------------------------------------------------ where to

    def _goal(self, timeout: float) -> Goal | None:
        return self._tick_goal(timeout) if self._ticks is not None else self._topic_goal(timeout)

    def _tick_goal(self, timeout: float) -> Goal | None:
        assert self._ticks is not None
        row = self._ticks.wait(timeout)
        view = None if row is None else row.views.get(self.copy.subject)
        if row is None or view is None:
            return None
        position = SinkPosition(
            view.topic, view.generation, row.tick, row.ends.get(view.topic, {}), row.ts_ms
        )
        key = view.key or tuple(name for name, _ in view.columns if name != "count")
        return Goal(position, Shape(view.columns, key))

    def _topic_goal(self, timeout: float) -> Goal | None:
        """The stream's end now, and the columns its new rows have.

        Columns are told from the rows themselves, so rows are read twice: once for their
        shape, once to be delivered; what is known is remembered in a file.
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
        for chunk in self._reader.read(ranges):
            known.learn(chunk.values, self.copy.declaration.columns)
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
        if (held.topic, held.generation) != (goal.position.topic, goal.position.generation):
            if held.generation > goal.position.generation:
                raise self._ahead(held, goal.position)
            self._replace(goal)
            return
        age_ms = self._clock.wall_ms() - held.at_ms
        retention_ms = self.settings.delete_retention / timedelta(milliseconds=1)
        self._stale = bool(goal.shape.key and held.at_ms and age_ms > retention_ms)
        bounds = self._reader.bounds(held.topic)
        for partition, offset in held.offsets.items():
            start, end = bounds.get(partition, (0, 0))
            if offset > end or offset > goal.position.offsets.get(partition, 0):
                raise self._ahead(held, goal.position)
            if not goal.shape.key and offset < start:
                raise SinkBehindError(
                    f"sink {self.copy.name!r} lacks changes that the log no longer has",
                    detail=f"It is at {offset} of {held.topic}/{partition}, the log begins at "
                    f"{start}.",
                    hint=f"`tailrace sink replay {self.copy.name}` fills it from what there is",
                )

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
        log.info("building the copy anew", extra={"sink": self.copy.name})
        kept = self.sink
        self.sink = kept.beside()
        try:
            self.sink.open(goal.shape)
            held = self.sink.position()
            if held is not None and (held.topic, held.generation) != (
                goal.position.topic,
                goal.position.generation,
            ):
                self.sink.close()
                kept.discard()
                self.sink.open(goal.shape)
                held = None
            self.position = held
            for batch, _ in self._batches(goal):
                self._apply(batch)
            if self.position is None:  # an empty topic has no batch
                self.sink.apply(Collector(goal.shape, True, True).make(goal.position)[0])
        finally:
            self.sink.close()
            self.sink = kept
        kept.switch()
        self.sink.open(goal.shape)
        self.position = self.sink.position()

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
            self._write_letters([self._bad_letter(record) for record in bad])
        return batch

    # ------------------------------------------------------------------ applying

    def _apply(self, batch: Batch) -> None:
        """Apply a batch; rows the target refuses are found by halving and put aside."""
        count = batch.changes.num_rows
        try:
            self.sink.apply(batch)
        except RowsRefusedError as reason:
            if count > 1:
                half = count // 2
                self._apply(batch.head(half, self.position))
                self._apply(batch.tail(half))
                return
            if count == 0:
                raise
            self._write_letters([self._refused_letter(batch, reason)])
            self.sink.apply(batch.tail(1))
        else:
            if count:
                self._refused_in_a_row = 0
                ROWS.labels(self.copy.name).inc(count)
        self.position = batch.position

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

    def _bad_letter(self, record: BadRecord) -> DeadLetter:
        return DeadLetter(
            sink=self.copy.name,
            topic=self.copy.topic,
            partition=record.partition,
            offset=record.offset,
            row=_text(record.value) if record.value is not None else _text(record.key),
            error=RowsRefusedError(record.reason).as_dict(),
            at_ms=self._clock.wall_ms(),
        )

    def _refused_letter(self, batch: Batch, reason: RowsRefusedError) -> DeadLetter:
        row: dict[str, Any] = python_rows(batch.changes.slice(0, 1))[0]
        return DeadLetter(
            sink=self.copy.name,
            topic=batch.position.topic,
            partition=row[PARTITION],
            offset=row[OFFSET],
            row={name: row[name] for name in batch.shape.names},
            error=reason.as_dict(),
            at_ms=self._clock.wall_ms(),
        )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def run(copy: Copy, part: Part, settings: DeliverySettings | None = None) -> None:
    """Keep one copy in step until `part` must stop.

    A target that does not answer is waited for; a copy that cannot go on (another shape,
    ahead of the log) is parked, reported as failed, and looked at again now and then.
    """
    settings = settings or DeliverySettings()
    reader = KafkaRanges(part.bootstrap)
    sink = make_sink(copy, Surroundings(part.directory, part.bootstrap))
    letters = TopicDeadLetters(part.bootstrap, copy.name)
    delivery = Delivery(
        copy,
        sink,
        reader,
        part.project,
        letters,
        settings=settings,
        clock=part.clock,
        memory=part.directory / "sinks" / f"{copy.name}.columns",
    )
    request = request_path(part.directory, copy.name)
    pause = settings.first_pause
    reported = 0.0
    part.report("running", error=None, place=copy.declaration.place)
    try:
        while not part.stopping.is_set():
            try:
                if request.exists():
                    request.unlink()
                    delivery.replay()
                    part.report(replayed_at=part.clock.wall_ms())
                delivery.step(timeout=0.2)
                pause = settings.first_pause
                if part.clock.monotonic() - reported >= 1:
                    reported = part.clock.monotonic()
                    _report(part, delivery, "running", None)
            except SinkFencedError:
                raise
            except (TargetUnavailableError, ClientError) as error:
                delivery.close()
                _report(part, delivery, "lagging", error)
                log.warning(
                    "target does not answer", extra={"sink": copy.name, "error": str(error)}
                )
                # Spread out, so that sinks of one target do not come back all at once.
                part.stopping.wait(pause.total_seconds() * random.uniform(0.5, 1))
                pause = min(pause * 2, settings.longest_pause)
            except TailraceError as error:
                delivery.close()
                _report(part, delivery, "failed", error)
                log.error("sink is parked", extra={"sink": copy.name, "error": str(error)})
                part.stopping.wait(settings.parked_pause.total_seconds())
        _report(part, delivery, "stopped", None)
    finally:
        delivery.close()
        reader.close()


def request_path(directory: Path, name: str) -> Path:
    """A file that asks the running sink `name` to fill its copy again."""
    return directory / "sinks" / f"{name}.replay"


def _report(part: Part, delivery: Delivery, state: str, error: TailraceError | None) -> None:
    position = delivery.position
    part.report(
        state,
        error=None if error is None else error.as_dict(),
        freshness_ms=delivery.freshness_ms,
        position=None if position is None else position.encode(),
        dead_letters=delivery.refused,
        lag=0 if state == "running" else None,
    )
