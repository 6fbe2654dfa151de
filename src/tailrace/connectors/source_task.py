"""A source's task: polls, and writes records and offsets in one transaction.

The order at the start is what makes a source exactly once: first the transactional id is taken over,
which fences every earlier process of the task and ends what it left open; then the offsets are
read; then the task starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Protocol

import orjson

from tailrace.client.log import connect
from tailrace.client.writer import TransactionalWriter
from tailrace.clock import SYSTEM, Clock
from tailrace.connectors import converters, transforms
from tailrace.connectors.base import Connector, SourceConnector, SourceRecord
from tailrace.connectors.converters import Converter
from tailrace.connectors.errors import ConnectorError, RetriableError
from tailrace.connectors.names import OFFSETS
from tailrace.connectors.offsets import StoredOffsets, canonical, read_offsets
from tailrace.connectors.task import Spec, Surroundings
from tailrace.connectors.tolerance import PassedBy, Tolerance

QUIET_SECONDS = 0.05
LONGEST_SECONDS = 30.0  # of a transaction: the log aborts one that is open for a minute
Row = tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]


class Transaction(Protocol):
    """What a task writes with: the log's transactional writer, or a test's."""

    def send_columns(
        self,
        topic: str,
        partition: int | None,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[tuple[tuple[str, bytes | None], ...]] | None = None,
    ) -> None: ...

    def send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None
    ) -> None: ...

    def commit(self) -> object: ...


class Way:
    """The way of records from a task into a transaction: transforms, converters, the offsets."""

    def __init__(
        self,
        connector: str,
        settings: Mapping[str, str],
        worker: Mapping[str, str],
        own: Mapping[str, str],
        tolerance: Tolerance,
        stored: StoredOffsets,
        offsets_topic: str,
        clock: Clock = SYSTEM,
    ) -> None:
        self._connector = connector
        chosen = converters.chosen(settings, own, worker)
        self._key, self._value, self._header = (
            converters.make(*chosen[part], part) for part in ("key", "value", "header")
        )
        self._names = {part: converters.class_name(chosen[part][0]) for part in chosen}
        self._transforms = transforms.make(settings)
        self._tolerance = tolerance
        self._stored = stored
        self._offsets_topic = offsets_topic
        self._clock = clock
        self._moved: dict[bytes, bytes | None] = {}
        self.topics: set[str] = set()

    def add(self, records: Sequence[SourceRecord], to: Transaction) -> int:
        """Put records into the open transaction; how many."""
        rows: dict[tuple[str, int | None], list[Row]] = {}
        now = self._clock.wall_ms()
        last_partition: Mapping[str, Any] | None = None
        last_offset: Mapping[str, Any] | None = None
        for record in records:
            if not isinstance(record, SourceRecord):
                raise ConnectorError(
                    f"poll() returned a {type(record).__name__}",
                    hint="it returns a list of connectors.SourceRecord, or None",
                )
            if record.partition is not last_partition:
                self._move(last_partition, last_offset)
                last_partition = record.partition
            last_offset = record.offset
            if not record.topic:
                continue
            try:
                row = self._row(record, now)
            except PassedBy as passed:
                self._tolerance.tell(f"{canonical(record.partition).decode()}", passed)
                continue
            if row is not None:
                place, written = row
                found = rows.get(place)
                if found is None:
                    rows[place] = [written]
                else:
                    found.append(written)
        self._move(last_partition, last_offset)
        count = 0
        for (topic, partition), lines in rows.items():
            keys, values, times, headers = zip(*lines, strict=True)
            to.send_columns(
                topic,
                partition,
                keys,
                values,
                times,
                headers if any(headers) else None,
            )
            count += len(lines)
            self.topics.add(topic)
        return count

    def _row(self, record: SourceRecord, now: int) -> tuple[tuple[str, int | None], Row] | None:
        for name, transform in self._transforms:
            made = self._tolerance.step(
                "TRANSFORMATION", name, lambda call=transform, one=record: call(one)  # type: ignore[misc]
            )  # fmt: skip
            if made is None:
                return None
            if not isinstance(made, SourceRecord):
                raise ConnectorError(f"{name} returned a {type(made).__name__}, not a record")
            record = made
        topic = record.topic
        try:
            key = self._key.to_bytes(topic, record.key_schema, record.key)
        except Exception:
            key = self._converted("KEY_CONVERTER", self._key, topic, record.key_schema, record.key)
        try:
            value = self._value.to_bytes(topic, record.value_schema, record.value)
        except Exception:
            value = self._converted(
                "VALUE_CONVERTER", self._value, topic, record.value_schema, record.value
            )
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if record.headers:
            headers = tuple(
                (name, self._converted("HEADER_CONVERTER", self._header, topic, None, each))
                for name, each in record.headers
            )
        time = now if record.timestamp is None else record.timestamp
        return (topic, record.topic_partition), (key, value, time, headers)

    def _converted(
        self, stage: str, converter: Converter, topic: str, schema: Any, value: Any
    ) -> bytes | None:
        name = self._names[stage.partition("_")[0].lower()]
        return self._tolerance.step(stage, name, lambda: converter.to_bytes(topic, schema, value))

    def _move(self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any] | None) -> None:
        if partition is None:
            return
        try:
            self._moved[canonical(partition)] = (
                None if offset is None else orjson.dumps(dict(offset))
            )
        except (TypeError, ValueError) as error:
            raise ConnectorError(
                "a partition or an offset of a source is no JSON object", detail=str(error)
            ) from error

    @property
    def moved(self) -> bool:
        return bool(self._moved)

    def commit(self, to: Transaction) -> None:
        """Offsets go with their records; then all of it counts at once."""
        for own, offset in self._moved.items():
            to.send(self._offsets_topic, None, self._stored.key(own), offset)
        to.commit()
        for own, offset in self._moved.items():
            self._stored.apply(self._stored.key(own), offset)
        self._moved.clear()


def run(
    spec: Spec, connector: type[Connector], settings: dict[str, Any], around: Surroundings
) -> None:
    """The task's whole life; returns when it was told to stop."""
    assert issubclass(connector, SourceConnector)
    tolerance = Tolerance(settings, around.stopping.is_set)
    offsets_topic = spec.worker.get("offset.storage.topic", OFFSETS)
    with (
        connect(spec.bootstrap) as log,
        closing(log.transactional_writer(spec.transactional_id)) as writer,
    ):
        writer.init()
        stored = read_offsets(log, offsets_topic, spec.connector)
        way = Way(
            spec.connector,
            spec.settings,
            spec.worker,
            connector.defaults,
            tolerance,
            stored,
            offsets_topic,
        )
        task = around.call(f"{connector.__name__}.Task()", _seconds(settings, "start"), connector.Task)  # fmt: skip
        around.call("start()", _seconds(settings, "start"), lambda: task.start(settings, stored))
        around.say(state="PAUSED" if around.paused.is_set() else "RUNNING")
        try:
            _poll(task, way, writer, settings, tolerance, around, spec)
        finally:
            around.call("stop()", _seconds(settings, "poll"), task.stop)


def _seconds(settings: Mapping[str, Any], what: str) -> float:
    found: float = settings[f"task.{what}.timeout.ms"] / 1000
    return found


def _poll(
    task: Any,
    way: Way,
    writer: TransactionalWriter,
    settings: Mapping[str, Any],
    tolerance: Tolerance,
    around: Surroundings,
    spec: Spec,
) -> None:
    most = _seconds(settings, "poll")
    interval = 0.0
    if str(settings["transaction.boundary"]).lower() == "interval":
        given = settings["transaction.boundary.interval.ms"]
        interval = (given or int(spec.worker.get("offset.flush.interval.ms", 5000))) / 1000
        interval = min(interval, LONGEST_SECONDS)
    told_paused = around.paused.is_set()
    committed_at = SYSTEM.monotonic()

    def commit() -> None:
        nonlocal committed_at
        way.commit(writer)
        committed_at = SYSTEM.monotonic()
        for topic in way.topics:
            around.uses(topic)
        around.call("committed()", most, task.committed)

    while not around.stopping.is_set():
        if around.paused.is_set() != told_paused:
            told_paused = not told_paused
            if way.moved:
                commit()
            around.say(state="PAUSED" if told_paused else "RUNNING")
        if told_paused:
            around.wait(1.0)
            continue
        began = SYSTEM.monotonic()
        # Retriable errors of a poll may come without end, as Kafka Connect has it.
        try:
            records = around.call("poll()", most, task.poll)
        except RetriableError:
            around.wait(0.3)
            continue
        if records:
            way.add(records, writer)
        if way.moved and SYSTEM.monotonic() - committed_at >= interval:
            commit()
        if not records and SYSTEM.monotonic() - began < QUIET_SECONDS:
            around.wait(QUIET_SECONDS)
    if way.moved:
        commit()
