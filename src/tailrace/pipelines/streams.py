"""Plain PySpark streams: a declared function as a streaming query, exactly once.

The function gets one DataFrame per input and gives one back; Structured Streaming runs it
with Spark's own state and watermarks, and `writer` puts its rows into the stream's topic.
The same function over a bounded range is a batch (`batch_frame`).
"""

from __future__ import annotations

import logging
import re
import shutil
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson

from tailrace.client.admin import Admin
from tailrace.pipelines.declare import Place, Stream, Topic
from tailrace.pipelines.errors import (
    DataLostError,
    DeclarationError,
    PipelineError,
    StreamChangedError,
    UndecodableRecordError,
    UnknownTableError,
    UserFunctionError,
)
from tailrace.pipelines.incremental.types import ddl
from tailrace.pipelines.ticks.catalog import Catalog
from tailrace.pipelines.writer import (
    MARKERS_CONFIG,
    MARKERS_TOPIC,
    BatchWriter,
    forget_markers,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_OURS: tuple[type[PipelineError], ...] = (
    DataLostError,
    StreamChangedError,
    UndecodableRecordError,
)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_FOREIGN = ("/site-packages/", "/pyspark/", "/tailrace/", "<frozen", "<string>", "/lib/python")


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Where streams read, write and keep their checkpoints."""

    bootstrap: str
    directory: Path
    output_partitions: int = 2
    topics: Mapping[str, Mapping[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class RunningStream:
    """A stream whose query has started."""

    stream: Stream
    query: StreamingQuery
    sink: BatchWriter

    def failure(self) -> PipelineError | None:
        """Why the query ended, if it failed."""
        problem = self.sink.failure or self.query.exception()
        if problem is None:
            return None
        known = "|".join(kind.__name__ for kind in _OURS)
        matched = re.search(rf"({known}): (.+)", str(problem))
        if matched:
            kind = next(kind for kind in _OURS if kind.__name__ == matched[1])
            return kind(matched[2].strip(), detail=f'stream "{self.stream.name}"')
        return user_error(self.stream, problem)


class Streams:
    """Builds and starts the streams of a project; knows the columns of each output."""

    def __init__(self, spark: SparkSession, catalog: Catalog, settings: StreamSettings) -> None:
        self._spark = spark
        self._catalog = catalog
        self._settings = settings

    def start(self, stream: Stream) -> RunningStream:
        """Start one stream; it goes on from its checkpoint."""
        frame = self.build(stream, streaming=True)
        missing = [name for name in stream.key if name not in frame.columns]
        if missing:
            raise DeclarationError(
                f'stream "{stream.name}" has no column {", ".join(missing)} for its key',
                detail=f"its columns are {', '.join(frame.columns)}",
                hint=f"declared at {stream.declared_at}",
            )
        settings = self._settings
        wished = dict((settings.topics or {}).get(stream.name, {}))
        partitions = int(wished.pop("partitions", settings.output_partitions))
        policy = {"cleanup.policy": "compact"} if stream.key else {}
        with Admin(settings.bootstrap) as admin:
            admin.ensure_topic(MARKERS_TOPIC, 1, MARKERS_CONFIG)
            admin.ensure_topic(stream.name, partitions, {**policy, **wished})
        checkpoint = settings.directory / stream.name / "checkpoint"
        sink = BatchWriter(settings.bootstrap, stream.name, stream.key)
        writer = (
            frame.writeStream.foreachBatch(sink)
            .queryName(stream.name)
            .outputMode(stream.output_mode)
            .option("checkpointLocation", str(checkpoint))
        )
        if stream.trigger == "available now":
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=stream.trigger)
        query = writer.start()
        sink.begin(str(query.id))
        log.info("stream started", extra={"stream": stream.name})
        return RunningStream(stream, query, sink)

    def reset(self, stream: Stream) -> None:
        """Forget how far a stopped stream has come; it begins anew at its next start.

        What it has written stays in its topic.
        """
        shutil.rmtree(self._settings.directory / stream.name, ignore_errors=True)
        forget_markers(self._settings.bootstrap, stream.name)

    def build(self, stream: Stream, *, streaming: bool, **range: str) -> DataFrame:
        """The stream's DataFrame, unbounded or over a range (`start=`, `end=`)."""
        frames = [self._input(stream, given, streaming, range) for given in stream.inputs]
        try:
            frame = stream.function(*frames)
        except Exception as problem:
            raise user_error(stream, problem) from problem
        from pyspark.sql import DataFrame

        if not isinstance(frame, DataFrame):
            raise UserFunctionError(
                f'stream "{stream.name}" gave {type(frame).__name__}, not a DataFrame',
                detail=f"its function is at {stream.declared_at}",
                hint="return the DataFrame",
            )
        return frame

    def _input(
        self, stream: Stream, given: object, streaming: bool, wanted: Mapping[str, str]
    ) -> DataFrame:
        options = {
            "bootstrap": self._settings.bootstrap,
            "dead": f"{stream.name}.dead",
            **self._form(stream, given),
            **wanted,
        }
        reader: Any = self._spark.readStream if streaming else self._spark.read
        frame: DataFrame = reader.format("tailrace").options(**options).load()
        return frame

    def _form(self, stream: Stream, given: object) -> dict[str, str]:
        kind = getattr(given, "kind", None)
        if isinstance(given, Topic):
            if given.schema is None or given.format == "raw":
                return {"topics": given.name, "form": "raw", "start": "earliest"}
            columns = _columns(given.schema)
            return {"topics": given.name, "form": "json", "columns": columns, "start": "earliest"}
        if isinstance(given, Stream):
            from pyspark.sql.types import StructType

            schema: StructType = self.build(given, streaming=True).schema
            columns = orjson.dumps(
                [[field.name, field.dataType.simpleString()] for field in schema]
            ).decode()
            return {"topics": given.name, "form": "json", "columns": columns, "start": "earliest"}
        if kind in ("inserts", "changes"):
            topic = str(getattr(given, "topic"))  # noqa: B009
            table = self._catalog.tables.get(topic)
            if table is None:
                raise UnknownTableError(
                    f'stream "{stream.name}" reads {topic}, which no source has described',
                    hint="is the source running, and does it capture the table?",
                )
            columns = orjson.dumps([[f.name, ddl(f.type)] for f in table.schema]).decode()
            wanted = {"topics": topic, "form": kind, "columns": columns, "start": "latest"}
            if getattr(given, "snapshot", False):
                wanted |= {"snapshot": "true", "start": "earliest"}
            return wanted
        raise DeclarationError(
            f'stream "{stream.name}" cannot read {given!r}',
            detail=f"declared at {stream.declared_at}",
            hint="a table's .inserts() or .changes(), tr.topic(…) or another stream",
        )


def _columns(schema: str) -> str:
    from pyspark.sql.types import StructType

    parsed = cast(StructType, StructType.fromDDL(schema))
    return orjson.dumps([[f.name, f.dataType.simpleString()] for f in parsed]).decode()


def user_error(stream: Stream, problem: BaseException) -> UserFunctionError:
    """An exception from a user's function, with the place in the user's file."""
    place = user_place(problem) or stream.declared_at
    text = str(problem).strip().splitlines() or [""]
    words = next((line for line in reversed(text) if line.strip()), "")
    name = type(problem).__name__
    if name == "PythonException":
        name = ""  # its last line names the user's own exception
    return UserFunctionError(
        f'stream "{stream.name}" failed: {name + ": " if name else ""}{words}',
        detail=f"at {place}",
        hint="correct the function; the stream goes on from its last complete batch",
    )


def user_place(problem: BaseException) -> Place | None:
    """The innermost place in a file of the user's, in the traceback or in its text."""
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if not any(part in frame.filename for part in _FOREIGN):
            return Place(frame.filename, frame.lineno or 0)
    for file, line in reversed(_FRAME.findall(str(problem))):
        if not any(part in file for part in _FOREIGN):
            return Place(file, int(line))
    return None
