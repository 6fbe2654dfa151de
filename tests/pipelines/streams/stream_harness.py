"""A topic in, a stream, what came out: for tests of streams on Spark."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pyspark.errors import StreamingQueryException

from tailrace import config
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.declare import Stream
from tailrace.pipelines.process.running_streams import RunningStreams
from tailrace.pipelines.reading.catalog import Catalog
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.streams.failures import passes
from tailrace.pipelines.streams.queries import Streams, StreamSettings
from tailrace.telemetry.part import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_to_end(streams: Streams, stream: Stream) -> None:
    """Run a stream until all that was there is processed; raise what it raised.

    Passing trouble is tried again, as a project does: Spark gives a new Python process ten
    seconds to connect, which a busy machine may not keep.
    """
    for attempts_left in reversed(range(8)):
        try:
            running = streams.start(stream)
        except Exception as problem:
            if attempts_left and passes(problem):
                continue
            raise
        for output in running.outputs:
            with contextlib.suppress(StreamingQueryException):
                output.query.awaitTermination(300)
            output.query.stop()
        found = running.failed()
        if found is None:
            return
        if not attempts_left or not passes(found[1]):
            problem = running.failure()
            assert problem is not None
            raise problem from found[1]


class Harness:
    """One log, one directory, names of one test."""

    def __init__(self, bootstrap: str, directory: Path, spark: SparkSession) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.spark = spark
        self.prefix = f"t{uuid.uuid4().hex[:6]}"
        self.streams = Streams(spark, Catalog({}, {}), StreamSettings(bootstrap, directory))

    def name(self, name: str) -> str:
        return f"{self.prefix}_{name}"

    def write(self, topic: str, *rows: object, key: str | None = None) -> None:
        with TransactionalWriter(self.bootstrap, f"test.{topic}") as writer:
            writer.init()
            for row in rows:
                value = row if isinstance(row, bytes) else orjson.dumps(row)
                named = row[key] if key is not None and isinstance(row, dict) else None
                writer.send(topic, None, None if named is None else str(named).encode(), value)
            writer.commit()

    def read(self, topic: str) -> list[dict[str, Any]]:
        with LogReader(self.bootstrap) as reader:
            return [
                orjson.loads(value)
                for records in read_all(reader, topic)
                for value in records.values
                if value is not None
            ]

    def run(self, stream: Stream) -> None:
        """Run a stream whose trigger is "available now" to its end; raise what it raised."""
        run_to_end(self.streams, stream)

    def look_after(self, stream: Stream, until: Callable[[RunningStreams], bool]) -> RunningStreams:
        """Run a stream as a project does, until something is true."""
        (self.directory / "tailrace.toml").write_text('[project]\nname = "p"\n')
        part = Part("p", "pipelines", self.prefix, self.bootstrap, self.directory / ".tailrace")
        running = RunningStreams([stream], part, self.spark, config.load(self.directory))
        patience = time.monotonic() + 300
        try:
            while time.monotonic() < patience:
                running.look_after()
                if until(running):
                    return running
                time.sleep(0.1)
            raise AssertionError(f"in vain: {running.progress()}")
        finally:
            running.close()
