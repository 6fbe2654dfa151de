"""`spark.read.format("tailrace")`: the log as a Spark data source, batch and streaming.

Arrow batches, committed records only, exact ranges. Options:

    bootstrap       where the log answers
    topics          names, comma separated; or `pattern`, a regular expression
    form            raw (default), json, avro, inserts, changes or view; see `forms`
    columns         JSON: [["name", "Spark type"], …], for all forms but raw
    metadata        name of a struct column with key, headers and position (typed forms)
    start, end      earliest, latest, a time (`@` and milliseconds) or {"topic": {"0": 17}}
    limit           most records a trigger
    on_loss         fail (default) or continue, when what was not read is gone: removed by
                    retention, or the topic deleted or made again
    dead            a topic for records that cannot be read; without one they are an error
    retry, pause    a topic of records to be read again, and the milliseconds after which
    held            JSON: positions to leave out and keys that are blocked; see `held`

A streaming offset is {"offsets": {"topic": {"0": next}}, "ids": {"topic": id}}. New
partitions and topics of a pattern are taken in as they appear, from their beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tailrace.clock import SYSTEM
from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.errors import DataLostError, DeclarationError, told
from tailrace.pipelines.reading.forms import Piece, ddl_of, form_of, form_records
from tailrace.pipelines.reading.ranges import LogRanges, TopicBounds, kept_ranges
from tailrace.pipelines.reading.reader import Range
from tailrace.pipelines.streams.left_out import Held, bury, retried
from tailrace.security import address_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Offsets = dict[str, dict[str, int]]
_EARLIEST, _LATEST = -2, -1  # as Kafka writes them in offsets given by hand


@dataclass(slots=True)
class Position:
    """How far a stream has read, and which topics those were."""

    offsets: Offsets = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Position:
        """A position from its JSON; Spark's Kafka connector keeps the offsets alone."""
        whole = document if "ids" in document else {"offsets": document, "ids": {}}
        return cls({topic: dict(by) for topic, by in whole["offsets"].items()}, dict(whole["ids"]))

    def document(self) -> dict[str, Any]:
        return {"offsets": self.offsets, "ids": self.ids}


class RangePartition(InputPartition):
    """One range of one topic partition: the work of one task."""

    def __init__(self, wanted: Range) -> None:
        self.range = wanted


def register_log(session: SparkSession) -> None:
    """Let streams of this session read the log; they need nothing else."""
    session.dataSource.register(LogSource)


class LogSource(DataSource):
    """The data source itself; see `register_log`."""

    @classmethod
    def name(cls) -> str:
        return "tailrace"

    def schema(self) -> str:
        return ddl_of(self.options)

    def reader(self, schema: StructType) -> LogBatchReader:
        return LogBatchReader(dict(self.options))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802
        return LogStreamReader(dict(self.options))


class Reading:
    """What batch and streaming readers share."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        if "bootstrap" not in options or not ({"topics", "pattern"} & options.keys()):
            raise DeclarationError(
                "the data source needs `bootstrap` and `topics` or `pattern`",
                hint='spark.read.format("tailrace").option("bootstrap", …).option("topics", …)',
            )
        form_of(options)

    def log(self) -> LogRanges:
        return kept_ranges(address_of(self.options))

    def bounds(self) -> dict[str, TopicBounds]:
        """The topics there are now, and where they begin and end."""
        log = self.log()
        if "pattern" in self.options:
            return log.bounds(log.matching(self.options["pattern"]))
        names = [name.strip() for name in self.options["topics"].split(",")]
        return log.bounds(log.named(names))

    def reads(self, topic: str) -> bool:
        """Whether a topic is among those asked for."""
        if "pattern" in self.options:
            return re.fullmatch(self.options["pattern"], topic) is not None
        return topic in [name.strip() for name in self.options["topics"].split(",")]

    def resolve(self, wish: str, bounds: Mapping[str, TopicBounds], missing: int) -> Offsets:
        """Offsets for a `start` or `end` option; `missing` for partitions it does not name."""
        if wish.startswith("@"):
            found = self.log().offsets_at(dict(bounds), int(wish[1:]))
            return {t: {str(p): offset for p, offset in by.items()} for t, by in found.items()}
        given: Offsets = {}
        if wish in ("earliest", "latest"):
            missing = _EARLIEST if wish == "earliest" else _LATEST
        else:
            try:
                given = orjson.loads(wish)
            except ValueError as reason:
                raise told(
                    DeclarationError(
                        f"{wish!r} is no place to read from",
                        hint='earliest, latest, "@" and milliseconds, or {"topic": {"0": 17}}',
                    )
                ) from reason
        return {
            topic: {
                str(p): _placed(given.get(topic, {}).get(str(p), missing), first, end)
                for p, (first, end) in by.partitions.items()
            }
            for topic, by in bounds.items()
        }

    @property
    def goes_on(self) -> bool:
        return self.options.get("on_loss", "fail") != "fail"

    def lose(self, message: str, detail: str) -> None:
        """Records are gone that were not read: an error, unless the reader goes on."""
        if not self.goes_on:
            raise told(
                DataLostError(
                    message,
                    detail=detail,
                    hint="`tailrace pipeline reset NAME` begins anew; "
                    'option("on_loss", "continue") goes on with what is left',
                )
            )

    def ranges(
        self, start: Position, end: Position, bounds: Mapping[str, TopicBounds]
    ) -> list[RangePartition]:
        """One partition per topic partition, in a fixed order, empty ones too: the number
        of a write task is then the same in every replay of a batch."""
        found: list[RangePartition] = []
        for topic in sorted(end.offsets):
            now = bounds.get(topic)
            other = topic in start.ids and start.ids[topic] != end.ids.get(topic)
            for partition in sorted(end.offsets[topic], key=int):
                until = end.offsets[topic][partition]
                begin = None if other else start.offsets.get(topic, {}).get(partition)
                if now is None or now.id != end.ids.get(topic, now.id):
                    if begin != until:
                        self.lose(
                            f"records {begin or 0} to {until - 1} of {topic}/{partition} are gone",
                            "the topic was deleted before they were read",
                        )
                    begin = until
                else:
                    first = now.partitions.get(int(partition), (0, 0))[0]
                    if begin is None:
                        begin = min(first, until)  # new here: from its beginning
                    elif begin < min(first, until):
                        self.lose(
                            f"records {begin} to {min(first, until) - 1} of {topic}/{partition} "
                            "are gone",
                            "retention removed them before they were read",
                        )
                        begin = min(first, until)
                wanted = Range(topic, int(partition), begin, until, end.ids.get(topic))
                found.append(RangePartition(wanted))
        return found

    def batches(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        held = Held.of(self.options)
        again = wanted.topic == self.options.get("retry")
        try:
            whole: list[DeadRecord] = []  # batches that cannot be read
            for records in self.log().read(wanted, go_on=self.goes_on, unreadable=whole.append):
                piece = Piece(wanted.topic, wanted.partition, records)
                if again:
                    piece = retried(piece, self.reads)
                piece, letters = held.sift(piece)
                table, bad = form_records(piece, self.options)
                if bad or letters:
                    bury(self.options, piece, bad, letters)
                yield from table.combine_chunks().to_batches()
            if whole:
                bury(self.options, None, (), whole)
        except DataLostError as lost:
            raise told(lost) from None


def _placed(wanted: int, first: int, end: int) -> int:
    return first if wanted == _EARLIEST else end if wanted == _LATEST else wanted


class LogBatchReader(Reading, DataSourceReader):
    """A bounded range as a batch."""

    def partitions(self) -> Sequence[InputPartition]:
        bounds = self.bounds()
        names = [name.strip() for name in self.options.get("topics", "").split(",") if name]
        absent = [name for name in names if name not in bounds]
        if absent and not self.goes_on:
            raise told(
                DataLostError(
                    f"topic {', '.join(absent)} does not exist",
                    detail="a batch reads what is there",
                    hint="`tailrace topic list` shows what exists",
                )
            )
        ids = {topic: by.id for topic, by in bounds.items()}
        start = self.resolve(self.options.get("start", "earliest"), bounds, _EARLIEST)
        end = self.resolve(self.options.get("end", "latest"), bounds, _LATEST)
        for topic, by in end.items():
            for partition, until in by.items():
                by[partition] = max(until, start[topic][partition])
        return self.ranges(Position(start, ids), Position(end, ids), bounds)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return self.batches(partition.range)


class LogStreamReader(Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The log as an unbounded stream."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._target: Position | None = None

    def waiting(self) -> dict[str, TopicBounds]:
        """The topic of records to be tried again, if there is one."""
        again = self.options.get("retry")
        return {} if again is None else self.log().bounds(self.log().named([again]))

    def now(self) -> Position:
        """The stable end of everything, of the retry topic what is due."""
        bounds = self.bounds()
        found = self.resolve("latest", bounds, _LATEST)
        waiting = self.waiting()
        if waiting:
            due = SYSTEM.wall_ms() - int(self.options.get("pause", "0"))
            ready = self.log().offsets_at(waiting, due + 1)
            bounds |= waiting
            found |= {t: {str(p): offset for p, offset in by.items()} for t, by in ready.items()}
        return Position(found, {topic: by.id for topic, by in bounds.items()})

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        bounds = self.bounds() | self.waiting()
        start = self.resolve(self.options.get("start", "latest"), bounds, _EARLIEST)
        return Position(start, {topic: by.id for topic, by in bounds.items()}).document()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self.now()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if "limit" in self.options:
            return ReadMaxRows(int(self.options["limit"]))
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        done, latest = Position.of(start), self._target or self.now()
        moved = Position.of(start)
        available: dict[tuple[str, str], int] = {}
        for topic in done.offsets:
            if topic not in latest.offsets and self._target is None:
                self.lose(f"topic {topic} is gone", "it was deleted while it was read")
        for topic, by in latest.offsets.items():
            known = done.ids.get(topic)
            if known is not None and known != latest.ids[topic]:
                self.lose(
                    f"topic {topic} is not the one that was read",
                    "it was deleted and created again with the same name",
                )
                moved.offsets[topic] = {}
            moved.ids[topic] = latest.ids[topic]
            for partition, end in by.items():
                at = moved.offsets.setdefault(topic, {}).setdefault(partition, 0)
                if end < at and self._target is None and topic != self.options.get("retry"):
                    self.lose(
                        f"{topic}/{partition} ends at {end}, before {at} which was read already",
                        "its log was truncated",
                    )
                    moved.offsets[topic][partition] = at = end
                available[topic, partition] = max(0, end - at)
        total = sum(available.values())
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else total
        for (topic, partition), count in available.items():
            share = count if total <= most else -(-count * most // total)
            moved.offsets[topic][partition] += share
        return moved.document()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        bounds = self.bounds() | self.waiting()
        return self.ranges(Position.of(start), Position.of(end), bounds)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return self.batches(partition.range)
