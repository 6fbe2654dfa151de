"""Plain PySpark streams: a declared function as streaming queries, exactly once.

The function gets one DataFrame per input and gives one back, or several: each output is a
query of its own, with a checkpoint of its own, and `writer` puts its rows into its topic.
Structured Streaming runs it with Spark's own state and watermarks. The same function over
a bounded range is a batch (`Streams.batch`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Stream
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.errors import (
    DataLostError,
    DeclarationError,
    NotDeterministicError,
    PipelineError,
    StreamChangedError,
    UserFunctionError,
)
from tailrace.pipelines.reading.catalog import Catalog
from tailrace.pipelines.reading.ranges import LogRanges, kept_ranges
from tailrace.pipelines.reading.reader import kept_reader
from tailrace.pipelines.streams import connector
from tailrace.pipelines.streams.beginnings import InputStart, Start, Wish, resolve, retry_topic
from tailrace.pipelines.streams.checkpoint import StreamFiles
from tailrace.pipelines.streams.failures import described, user_error
from tailrace.pipelines.streams.inputs import Inputs, Options, ViewColumns
from tailrace.pipelines.streams.time_limit import limited
from tailrace.pipelines.streams.writer import (
    MARKERS_CONFIG,
    MARKERS_TOPIC,
    BatchWriter,
    forget_markers,
    marker_name,
    read_markers,
)
from tailrace.pipelines.values.types import ddl, parse_type
from tailrace.records.stream_columns import (
    COLUMNS_CONFIG,
    COLUMNS_TOPIC,
    Columns,
    decode_versions,
    encode_versions,
    with_version,
)
from tailrace.security import reader_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)

AVAILABLE_NOW = "available now"
_PLAIN_TYPE = re.compile(r"[\w<>(),: ]+")
_UNREADABLE = re.compile(r"\b(VARIANT|VOID|INTERVAL|GEOMETRY|GEOGRAPHY)\b")
Bounded = Mapping[str, str]  # `start` and `end` of the data source
Load = Callable[[int, Options], "DataFrame"]


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Where streams read, write and keep their checkpoints."""

    bootstrap: str
    directory: Path
    output_partitions: int = 2
    topics: Mapping[str, Mapping[str, str]] | None = None
    views: Mapping[str, ViewColumns] | None = None
    events: Mapping[str, TableInput] | None = None


@dataclass(frozen=True, slots=True)
class RunningOutput:
    """One query of a stream: what writes one topic."""

    topic: str
    query: StreamingQuery
    sink: BatchWriter


@dataclass(frozen=True, slots=True)
class RunningStream:
    """A stream whose queries have started."""

    stream: Stream
    outputs: tuple[RunningOutput, ...]

    @property
    def query(self) -> StreamingQuery:
        """The query behind the stream's own topic."""
        return self.outputs[0].query

    @property
    def sink(self) -> BatchWriter:
        return self.outputs[0].sink

    @property
    def active(self) -> bool:
        return all(output.query.isActive for output in self.outputs)

    def failed(self) -> tuple[RunningOutput, BaseException] | None:
        """The output whose query ended by an error, and the error as it came."""
        for output in self.outputs:
            problem = output.sink.failure or output.query.exception()
            if problem is not None:
                return output, problem
        return None

    def failure(self) -> PipelineError | None:
        """Why a query ended, if one failed."""
        found = self.failed()
        return None if found is None else described(self.stream, found[1])


class Streams:
    """Builds and starts the streams of a project; knows the columns of each output."""

    def __init__(self, spark: SparkSession, catalog: Catalog, settings: StreamSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._inputs = Inputs(catalog, self.schema_of, settings.views or {}, settings.events or {})

    def files(self, stream: Stream) -> StreamFiles:
        return StreamFiles(self._settings.directory, stream.name)

    def start(self, stream: Stream) -> RunningStream:
        """Start one stream; it goes on from its checkpoint."""
        files = self.files(stream)
        options = self._streaming_options(stream, files)
        frames = self.build(stream, lambda number, _: self._load(options[number], streaming=True))
        for topic, frame in frames.items():
            _check(stream, topic, frame)
        self._ensure_topics(stream, frames)
        self._check_lost(stream, files, frames)
        self._describe(stream, frames)
        return RunningStream(
            stream,
            tuple(self._start(stream, topic, frame, files) for topic, frame in frames.items()),
        )

    def reset(self, stream: Stream) -> None:
        """Forget how far a stopped stream has come; it begins anew at its next start.

        What it has written stays in its topic.
        """
        self.files(stream).remove()
        forget_markers(self._settings.bootstrap, stream.name)

    def batch(self, stream: Stream, **bounded: str) -> dict[str, DataFrame]:
        """The stream's outputs over a range (`start=`, `end=`), by topic."""
        return self.build(
            stream,
            lambda number, options: self._load({**options, **bounded}, streaming=False),
        )

    def schema_of(self, stream: Stream) -> StructType:
        """The columns of a stream's own topic."""
        frames = self.build(stream, lambda _, options: self._load(options, streaming=True))
        return frames[stream.name].schema

    def options(self, stream: Stream) -> list[Options]:
        """The data source's options for every input, without where to start or stop."""
        settings = self._settings
        common = {**reader_options(settings.bootstrap), "dead": f"{stream.name}.dead"}
        common["on_loss"] = stream.on_loss
        return [{**common, **self._inputs.options(stream, one)} for one in stream.inputs]

    def build(self, stream: Stream, load: Load) -> dict[str, DataFrame]:
        """Call the function on its inputs, loaded one by one; its outputs by topic."""
        frames = [load(number, options) for number, options in enumerate(self.options(stream))]
        return self.call(stream, frames)

    def call(self, stream: Stream, frames: Sequence[DataFrame]) -> dict[str, DataFrame]:
        """The function on these frames; its outputs by topic.

        Raises UserFunctionError, with the place, for whatever it raises.
        """
        try:
            given = limited(lambda: stream.function(*frames), stream)
        except PipelineError:
            raise
        except Exception as problem:
            raise user_error(stream, problem) from problem
        return outputs_of(stream, given)

    def _load(self, options: Options, *, streaming: bool) -> DataFrame:
        if connector.chosen(self._spark):
            return connector.load(self._spark, options, streaming=streaming)
        reader: Any = self._spark.readStream if streaming else self._spark.read
        frame: DataFrame = reader.format("tailrace").options(**options).load()
        return frame

    def _streaming_options(self, stream: Stream, files: StreamFiles) -> list[Options]:
        """Options with the places where the stream begins, as they were written down."""
        options = self.options(stream)
        again = retry_topic(stream.name)
        ranges = kept_ranges(self._settings.bootstrap)
        starts = files.begin(
            [_input_start(one) for one in options], partial(resolve, ranges, stream.name)
        )
        held = files.held().held.encode()
        if files.batch_offsets(stream.name) is None:
            starts = [_same_topics(stream, start, ranges) for start in starts if start is not None]
            files.amend(starts)
        for one, start in zip(options, starts, strict=True):
            assert start is not None  # each input was given
            one |= {"start": start.encode(), "retry": again, "held": held}
            one["pause"] = str(stream.pause_ms if stream.retries else 0)
            if stream.limit is not None:
                one["limit"] = str(stream.limit)
        files.check_queries()
        return options

    def _ensure_topics(self, stream: Stream, frames: Mapping[str, DataFrame]) -> None:
        settings = self._settings
        with Admin(settings.bootstrap) as admin:
            admin.ensure_topic(MARKERS_TOPIC, 1, MARKERS_CONFIG)
            admin.ensure_topic(COLUMNS_TOPIC, 1, COLUMNS_CONFIG)
            admin.ensure_topic(f"{stream.name}.dead", 1, {"cleanup.policy": "compact"})
            for topic in frames:
                wished = dict((settings.topics or {}).get(topic, {}))
                partitions = int(wished.pop("partitions", settings.output_partitions))
                policy = {"cleanup.policy": "compact"} if key_of(stream, topic) else {}
                admin.ensure_topic(topic, partitions, {**policy, **wished})

    def _describe(self, stream: Stream, frames: Mapping[str, DataFrame]) -> None:
        """Say what the columns of each output are, before a row of them is written."""
        if stream.format == "raw":
            return
        reader, bootstrap = kept_reader(self._settings.bootstrap), self._settings.bootstrap
        news: dict[bytes, bytes] = {}
        for topic, frame in frames.items():
            held = reader.last_value(COLUMNS_TOPIC, 0, topic.encode())
            value = encode_versions(with_version(decode_versions(held), columns_of(frame.schema)))
            if value != held:
                news[topic.encode()] = value
        if news:
            with TransactionalWriter(bootstrap, f"tailrace.{stream.name}.columns") as writer:
                writer.init()
                for key, value in news.items():
                    writer.send(COLUMNS_TOPIC, 0, key, value)
                writer.commit()

    def _check_lost(
        self, stream: Stream, files: StreamFiles, frames: Mapping[str, DataFrame]
    ) -> None:
        """Refuse to begin anew behind what an earlier life of the stream has written."""
        for topic in frames:
            if (files.checkpoint(topic) / "metadata").exists():
                continue
            name = marker_name(stream.name, topic)
            if read_markers(self._settings.bootstrap, name):
                raise StreamChangedError(
                    f'the output of stream "{stream.name}" belongs to another checkpoint',
                    detail=f"{topic} has been written before, but the checkpoint is gone",
                    hint=f"put the checkpoint back, or `tailrace pipeline reset {stream.name}`",
                )

    def _start(
        self, stream: Stream, topic: str, frame: DataFrame, files: StreamFiles
    ) -> RunningOutput:
        name = marker_name(stream.name, topic)
        sink = BatchWriter(
            self._settings.bootstrap, name, key_of(stream, topic), topic, stream.format
        )
        writer = (
            frame.writeStream.foreachBatch(sink)
            .queryName(name)
            .outputMode(stream.output_mode)
            .option("checkpointLocation", str(files.checkpoint(topic)))
        )
        if stream.trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=stream.trigger)
        try:
            query = writer.start()
        except Exception as problem:
            raise described(stream, problem) from problem
        files.record_query(topic, str(query.id))
        sink.begin(str(query.id))
        log.info("stream started", extra={"stream": stream.name, "topic": topic})
        return RunningOutput(topic, query, sink)


def columns_of(schema: StructType) -> Columns:
    """The columns of an output in the words readers of its topic know. Spark's types that
    these lack (intervals, variants, odd names in structs) are left out: their columns are
    told from the rows."""
    found: list[tuple[str, str]] = []
    for field in schema:
        try:
            kind = ddl(parse_type(field.dataType.simpleString()))
        except ValueError:
            continue
        if _PLAIN_TYPE.fullmatch(kind) and not _UNREADABLE.search(kind):
            found.append((field.name, kind))
    return tuple(found)


def key_of(stream: Stream, topic: str) -> tuple[str, ...]:
    """The key columns of one output."""
    return stream.keys.get(topic, stream.key)


def outputs_of(stream: Stream, given: object) -> dict[str, DataFrame]:
    """What a function gave, by topic; see `declare.stream` for what it may give."""
    from pyspark.sql import DataFrame

    further = [topic.name for topic in stream.outputs]
    match given:
        case DataFrame():
            return dict.fromkeys([stream.name, *further], given)
        case dict():
            found: dict[object, object] = dict(given)
        case tuple() | list() if len(given) == len(further):
            found = dict(zip(further, given, strict=True))
        case tuple() | list() if len(given) == len(further) + 1:
            found = dict(zip([stream.name, *further], given, strict=True))
        case tuple() | list():
            raise _wrong_result(
                stream, f"{len(given)} DataFrames for {len(further)} topics in `to`"
            )
        case _:
            raise _wrong_result(stream, f"{type(given).__name__}, not a DataFrame")
    for topic, frame in found.items():
        if topic not in (stream.name, *further):
            raise _wrong_result(stream, f"rows for {topic!r}, which is not a topic in its `to`")
        if not isinstance(frame, DataFrame):
            raise _wrong_result(stream, f"{type(frame).__name__} for {topic!r}, not a DataFrame")
    ordered = sorted(found, key=lambda topic: topic != stream.name)
    return {str(topic): frame for topic in ordered if isinstance(frame := found[topic], DataFrame)}


def _wrong_result(stream: Stream, what: str) -> UserFunctionError:
    return UserFunctionError(
        f'stream "{stream.name}" gave {what}',
        detail=f"its function is at {stream.declared_at}",
        hint="return the DataFrame; for several outputs one per topic in `to`",
    )


def _check(stream: Stream, topic: str, frame: DataFrame) -> None:
    """Refuse an output that cannot be written, or not the same twice."""
    if not frame.isStreaming:
        raise UserFunctionError(
            f'stream "{stream.name}" gave a DataFrame that does not come from its inputs',
            detail=f"its function is at {stream.declared_at}",
            hint="make the result from the parameters; they are streams when it runs",
        )
    missing = [name for name in key_of(stream, topic) if name not in frame.columns]
    if missing:
        raise DeclarationError(
            f'stream "{stream.name}" has no column {", ".join(missing)} for its key',
            detail=f"its columns are {', '.join(frame.columns)}",
            hint=f"declared at {stream.declared_at}",
        )
    if stream.format == "raw" and "value" not in frame.columns:
        raise DeclarationError(
            f'stream "{stream.name}" writes raw records but has no column value',
            detail=f"its columns are {', '.join(frame.columns)}",
            hint="give value and, if wanted, key and headers; or leave format= out",
        )
    plan: Any = frame._jdf.queryExecution().analyzed()
    if not plan.deterministic():
        raise NotDeterministicError(
            f'stream "{stream.name}" gives other rows each time it runs',
            detail=f"its function, at {stream.declared_at}, uses rand(), uuid() or the like",
            hint="derive such values from the row (xxhash64 of its columns), or let the producer set them",
        )


def _input_start(options: Options) -> InputStart:
    wish: Wish = "earliest" if options["start"] == "earliest" else "latest"
    if "pattern" in options:
        return InputStart((options["pattern"],), wish, pattern=True)
    return InputStart(tuple(options["topics"].split(",")), wish)


def _same_topics(stream: Stream, start: Start, ranges: LogRanges) -> Start:
    """Where to begin, if no topic was deleted and made again since that was written down:
    what came into the old one meanwhile is lost."""
    now = ranges.bounds(ranges.named(list(start.ids)))
    other = [topic for topic, by in now.items() if by.id != start.ids[topic]]
    if not other:
        return start
    if stream.on_loss == "fail":
        raise DataLostError(
            f'topic {", ".join(other)} is not the one that stream "{stream.name}" was to read',
            detail="it was deleted and created again before the stream's first batch",
            hint=f"`tailrace pipeline reset {stream.name}` begins with the new one",
        )
    kept = {topic: by for topic, by in start.offsets.items() if topic not in other}
    return Start(kept, {**start.ids, **{topic: now[topic].id for topic in other}})
