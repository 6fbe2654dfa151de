"""Rows copied to another topic, here or on another cluster, exactly once.

A batch and its position are one log transaction. The position is a record of the
compacted topic `__tailrace_markers` of the target cluster, keyed `sink/<name>`; the
transactional id `tailrace.sink.<name>` fences a writer that was replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar, Literal

import orjson
import pyarrow as pa

from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError, ProducerFencedError, RecordTooLargeError
from tailrace.client.fetcher import Fetcher
from tailrace.client.ranges import KafkaRanges, Range
from tailrace.client.writer import TransactionalWriter
from tailrace.config import resolve
from tailrace.records.json_bytes import json_bytes
from tailrace.records.partitioner import partition_for
from tailrace.records.rows import python_rows, read_rows
from tailrace.sinks.base import DELETED, Batch, Shape, SinkPosition
from tailrace.sinks.declare import Topic
from tailrace.sinks.errors import RowsRefusedError, SinkFencedError, TargetUnavailableError
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.sql import held_position, kept_position

MARKERS = "__tailrace_markers"


class TopicSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "every"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Topic)
        self._copy = copy
        self._topic = copy.declaration.topic
        declared = copy.declaration.bootstrap
        self._bootstrap = surroundings.bootstrap if declared is None else resolve(declared)
        self._key = f"sink/{copy.name}".encode()
        self._writer: TransactionalWriter | None = None
        self._held: SinkPosition | None = None

    def open(self, shape: Shape) -> None:
        with self._errors():
            with Admin(self._bootstrap, timeout=10) as admin:
                admin.ensure_topic(MARKERS, 1, {"cleanup.policy": "compact"})
                policy = {"cleanup.policy": "compact"} if shape.keyed else {}
                admin.ensure_topic(self._topic, 4, policy)
            self.close()
            self._writer = TransactionalWriter(self._bootstrap, f"tailrace.sink.{self._copy.name}")
            self._writer.init()
            self._held = self.position()

    def position(self) -> SinkPosition | None:
        with self._errors(), Fetcher(self._bootstrap, timeout=10) as fetcher:
            information = Admin.over(fetcher.cluster).describe_topic(MARKERS)
            if information is None:
                return None
            found: bytes | None = None
            partition = partition_for(self._key, len(information.leaders))
            for record in fetcher.read_all(MARKERS, partition):
                if record.key == self._key:
                    found = record.value
            return held_position(found.decode() if found else None, self._topic)

    def apply(self, batch: Batch) -> None:
        shape = batch.shape
        with self._errors():
            assert self._writer is not None
            if shape.keyed and self._held and self._held.lineage != batch.position.lineage:
                for old in self._keys_of_another_form(shape):
                    self._writer.send(self._topic, None, old, None)
            for row in python_rows(batch.changes):
                key = json_bytes({name: row[name] for name in shape.key}) if shape.keyed else None
                value = (
                    None if row[DELETED] else json_bytes({name: row[name] for name in shape.names})
                )
                self._writer.send(self._topic, None if key else 0, key, value)
            position = kept_position(batch.position, self._topic)
            self._writer.send(MARKERS, None, self._key, position.encode())
            self._writer.commit()
            self._held = batch.position

    def _keys_of_another_form(self, shape: Shape) -> list[bytes]:
        """Keys in the topic that have other columns than the rows' key has now: what a view
        left there before its key was changed."""
        alive: dict[bytes, bool] = {}
        reader = KafkaRanges(self._bootstrap)
        try:
            bounds = reader.bounds(self._topic)
            for chunk in reader.read([Range(self._topic, p, *b) for p, b in bounds.items()]):
                for key, value in zip(chunk.keys, chunk.values, strict=True):
                    if key is not None:
                        alive[key] = value is not None
        finally:
            reader.close()
        return [key for key, there in alive.items() if there and _columns_of(key) != set(shape.key)]

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        from tailrace.sinks.expected import ExpectedRows

        with self._errors():
            reader = KafkaRanges(self._bootstrap)
            try:
                ends = {p: end for p, (_, end) in reader.bounds(self._topic).items()}
                with ExpectedRows(reader, wrapped=False) as held:
                    held.advance(SinkPosition(self._topic, offsets=ends))
                    texts = (text for _, text in held.rows())
                    while part := list(islice(texts, 20_000)):
                        yield read_rows(part, shape.columns)[0]
            finally:
                reader.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ProducerFencedError as reason:
            raise SinkFencedError(
                f"another writer took sink {self._copy.name!r} over",
                detail=reason.message,
                hint="run a project only once",
            ) from reason
        except RecordTooLargeError as reason:
            if self._writer is not None:
                self._writer.abort()
            raise RowsRefusedError(
                f"topic {self._topic!r} refuses rows", detail=str(reason)
            ) from reason
        except ClientError as reason:
            self.close()
            raise TargetUnavailableError(
                f"topic {self._topic!r} cannot be written",
                detail=f"{reason.message}\n{reason.detail}".strip(),
                hint="the sink tries again until the log answers",
            ) from reason


def _columns_of(key: bytes) -> set[str] | None:
    """The columns of a record key as sinks write it; None for the key of another writer."""
    try:
        document = orjson.loads(key)
    except orjson.JSONDecodeError:
        return None
    return set(document) if isinstance(document, dict) else None
