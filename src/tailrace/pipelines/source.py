"""`spark.read.format("tailrace")`: the log as a Spark data source, batch and streaming.

Arrow batches, committed records only, exact ranges. Options:

    bootstrap       where the log answers
    topics          names, comma separated; or `pattern`, a regular expression
    form            raw (default), json, inserts or changes; typed forms need `columns`
    columns         JSON: [["name", "Spark type"], …]
    start, end      earliest, latest, a time (`@` and milliseconds) or {"topic": {"0": 17}}
    limit           most records a trigger
    on_loss         fail (default) or continue, when retention removed what was not read
    dead            a topic for records that cannot be read; without one they are an error

A streaming offset is {"topic": {"0": next}}. New partitions and topics of a pattern are
taken in as they appear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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

from tailrace.pipelines.decode import DeadRecord, dead_key, dead_letter
from tailrace.pipelines.errors import DataLostError, DeclarationError, UndecodableRecordError
from tailrace.pipelines.incremental.types import parse_type
from tailrace.pipelines.reader import LogReader, Range, Records, kept_reader
from tailrace.records.rows import read_objects

RAW = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, "
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
)
FORMS = ("raw", "json", "inserts", "changes")
Offsets = dict[str, dict[str, int]]

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_WHERE = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
_RAW_SCHEMA = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("headers", _HEADERS), *_WHERE]
)


class RangePartition(InputPartition):
    """One range of one topic partition: the work of one task."""

    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        self.range = Range(topic, partition, start, end)


class LogSource(DataSource):
    """The data source itself; registered by `session.start`."""

    @classmethod
    def name(cls) -> str:
        return "tailrace"

    def schema(self) -> str:
        form = self.options.get("form", "raw")
        if form == "raw":
            return RAW
        columns = ", ".join(f"`{name}` {kind}" for name, kind in columns_of(self.options))
        if form == "changes":
            row = ", ".join(f"`{name}`: {kind}" for name, kind in columns_of(self.options))
            return (
                f"op STRING, before STRUCT<{row}>, after STRUCT<{row}>, "
                "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
            )
        return columns

    def reader(self, schema: StructType) -> LogBatchReader:
        return LogBatchReader(dict(self.options))

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802
        return LogStreamReader(dict(self.options))


def columns_of(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """The declared columns of a typed form."""
    try:
        return [(name, kind) for name, kind in orjson.loads(options["columns"])]
    except (KeyError, ValueError) as missing:
        raise DeclarationError(
            f"form {options.get('form')!r} needs columns",
            hint='option("columns", \'[["user", "STRING"]]\')',
        ) from missing


class _Reading:
    """What batch and streaming readers share."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        if "bootstrap" not in options or not ({"topics", "pattern"} & options.keys()):
            raise DeclarationError(
                "the data source needs `bootstrap` and `topics` or `pattern`",
                hint='spark.read.format("tailrace").option("bootstrap", …).option("topics", …)',
            )
        if options.get("form", "raw") not in FORMS:
            raise DeclarationError(
                f"unknown form {options['form']!r}", hint=f"one of {', '.join(FORMS)}"
            )

    def log(self) -> LogReader:
        return kept_reader(self.options["bootstrap"])

    def topic_names(self) -> list[str]:
        if "pattern" in self.options:
            pattern = re.compile(self.options["pattern"])
            return sorted(name for name in self.log().topics() if pattern.fullmatch(name))
        return [name.strip() for name in self.options["topics"].split(",")]

    def bounds(self) -> dict[str, dict[int, tuple[int, int]]]:
        return {topic: self.log().bounds(topic) for topic in self.topic_names()}

    def resolve(self, wish: str) -> Offsets:
        """Offsets for a `start` or `end` option."""
        bounds = self.bounds()
        if wish.startswith("@"):
            return {t: _texts(self.log().offsets_at(t, int(wish[1:]))) for t in bounds}
        if wish == "earliest":
            return {t: {str(p): first for p, (first, _) in by.items()} for t, by in bounds.items()}
        latest = {t: {str(p): end for p, (_, end) in by.items()} for t, by in bounds.items()}
        if wish == "latest":
            return latest
        given: Offsets = orjson.loads(wish)
        return {
            t: {p: given.get(t, {}).get(p, n) for p, n in by.items()} for t, by in latest.items()
        }

    def ranges(self, start: Offsets, end: Offsets) -> list[RangePartition]:
        """One partition per topic partition, in a fixed order, empty ones too: the number
        of a write task is then the same in every replay of a batch."""
        found: list[RangePartition] = []
        bounds = self.bounds()
        for topic in sorted(end):
            for partition in sorted(end[topic], key=int):
                first = bounds.get(topic, {}).get(int(partition), (0, 0))[0]
                begin, until = start.get(topic, {}).get(partition, 0), end[topic][partition]
                if begin < first < until or begin < until <= first:
                    if self.options.get("on_loss", "fail") == "fail" and begin:
                        raise DataLostError(
                            f"records {begin} to {first - 1} of {topic}/{partition} are gone",
                            detail="retention removed them before they were read",
                            hint='option("on_loss", "continue") goes on from what is left',
                        )
                    begin = min(first, until)
                found.append(RangePartition(topic, int(partition), begin, until))
        return found

    def batches(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        for records in self.log().read([wanted]):
            table = to_table(records, self.options)
            yield from table.to_batches()


class LogBatchReader(_Reading, DataSourceReader):
    """A bounded range as a batch."""

    def partitions(self) -> Sequence[InputPartition]:
        start = self.resolve(self.options.get("start", "earliest"))
        end = self.resolve(self.options.get("end", "latest"))
        return self.ranges(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return self.batches(partition.range)


class LogStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The log as an unbounded stream."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._target: Offsets | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self.resolve(self.options.get("start", "latest"))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self.resolve("latest")

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if "limit" in self.options:
            return ReadMaxRows(int(self.options["limit"]))
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        latest = self._target or self.resolve("latest")
        moved: Offsets = {t: dict(by) for t, by in start.items()}
        available: dict[tuple[str, str], int] = {}
        for topic, by in latest.items():
            for partition, end in by.items():
                at = moved.setdefault(topic, {}).setdefault(partition, 0)
                if end < at and self._target is None:
                    raise DataLostError(
                        f"{topic}/{partition} ends at {end}, before {at} which was read already",
                        detail="the topic was deleted and created again, or its log was truncated",
                        hint="`tailrace pipeline reset NAME` starts it from the new topic",
                    )
                available[topic, partition] = max(0, end - at)
        total = sum(available.values())
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else total
        for (topic, partition), count in available.items():
            share = count if total <= most else -(-count * most // total)
            moved[topic][partition] += share
        return moved

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [] if start == end else self.ranges(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return self.batches(partition.range)


def to_table(records: Records, options: Mapping[str, str]) -> pa.Table:
    """Records in the form the options ask for."""
    form = options.get("form", "raw")
    if form == "raw":
        headers = [
            None if h is None else [{"key": k, "value": v} for k, v in h] for h in records.headers
        ]
        return pa.table(
            [
                pa.array(records.keys, pa.binary()),
                pa.array(records.values, pa.binary()),
                pa.array(headers, _HEADERS),
                *_where(records, range(len(records.offsets))),
            ],
            schema=_RAW_SCHEMA,
        )
    row = pa.schema([(name, parse_type(kind)) for name, kind in columns_of(options)])
    live = [i for i, value in enumerate(records.values) if value is not None]
    values = [records.values[i] for i in live]
    if form == "json":
        parsed, refused = read_objects(values, row)  # type: ignore[arg-type]
        _bury(records, live, refused, options)
        return parsed
    kind = pa.struct(list(row))
    envelope = pa.schema([("op", pa.string()), ("before", kind), ("after", kind)])
    if form == "inserts":
        envelope = pa.schema([("op", pa.string()), ("after", kind)])
    parsed, refused = read_objects(values, envelope)  # type: ignore[arg-type]
    _bury(records, live, refused, options)
    bad = {r.index for r in refused}
    live = [index for number, index in enumerate(live) if number not in bad]
    if form == "changes":
        where = [pa.chunked_array([column]) for column in _where(records, live)]
        return pa.table([*parsed.columns, *where], schema=pa.schema([*envelope, *_WHERE]))
    wanted = {"c", "r"} if options.get("snapshot") == "true" else {"c"}
    facts = [number for number, op in enumerate(parsed["op"].to_pylist()) if op in wanted]
    after = parsed["after"].combine_chunks().take(pa.array(facts, pa.int64()))
    return pa.table(after.flatten(), schema=row)


def _where(records: Records, indices: Sequence[int] | range) -> list[pa.Array]:
    count = len(indices)
    return [
        pa.repeat(pa.scalar(records.topic, pa.string()), count),
        pa.repeat(pa.scalar(records.partition, pa.int32()), count),
        pa.array([records.offsets[i] for i in indices], pa.int64()),
        pa.array([records.timestamps[i] * 1000 for i in indices], pa.timestamp("us", "UTC")),
    ]


def _bury(
    records: Records, live: list[int], refused: Sequence[Any], options: Mapping[str, str]
) -> None:
    """Send records that cannot be read to the dead-letter topic, keyed by position: a
    replayed batch overwrites its own letters."""
    if not refused:
        return
    dead = [
        DeadRecord(
            records.topic, records.partition, records.offsets[index], r.reason,
            records.keys[index], records.values[index],
        )
        for r in refused
        for index in (live[r.index],)
    ]  # fmt: skip
    if "dead" not in options:
        first = dead[0]
        raise UndecodableRecordError(
            f"record {first.offset} of {first.topic}/{first.partition} cannot be read",
            detail=first.reason,
            hint='option("dead", TOPIC) sends such records there and goes on',
        )
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": options["bootstrap"], "log_level": 0})
    for record in dead:
        producer.produce(options["dead"], dead_letter(record), dead_key(record))
    producer.flush(30)


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}
