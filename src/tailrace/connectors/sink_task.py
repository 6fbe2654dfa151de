"""A sink's task: a member of the group `connect-NAME`, which puts what it reads.

Offsets of the group are committed after `put` and `flush`, so a record is put at least once; where
the target itself remembers how far it is (`position`), reading goes on from there, and a record
is put exactly once. Records that fail on their way go to the topic of dead letters, whose
records are written before the offsets behind them are committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.client.consumer import Consumer
from tailrace.client.log import connect
from tailrace.client.producer import Producer
from tailrace.client.record import LogRecord, Place
from tailrace.clock import SYSTEM
from tailrace.connectors import converters, transforms
from tailrace.connectors.base import Connector, SinkConnector, SinkRecord, SinkTask
from tailrace.connectors.errors import ConnectorError, RetriableError
from tailrace.connectors.sink_group import group_of
from tailrace.connectors.task import Spec, Surroundings
from tailrace.connectors.tolerance import PassedBy, Tolerance, context_headers

FLUSH_SECONDS = 5.0


class Way:
    """The way of records from the log to a task: converters, transforms, dead letters."""

    def __init__(
        self,
        connector: str,
        number: int,
        settings: Mapping[str, str],
        worker: Mapping[str, str],
        own: Mapping[str, str],
        tolerance: Tolerance,
    ) -> None:
        self._connector, self._number = connector, number
        chosen = converters.chosen(settings, own, worker)
        self._key, self._value, self._header = (
            converters.make(*chosen[part], part) for part in ("key", "value", "header")
        )
        self._names = {part: converters.class_name(chosen[part][0]) for part in chosen}
        self._transforms = transforms.make(settings)
        self._tolerance = tolerance
        self._letters = settings.get("errors.deadletterqueue.topic.name", "")
        self._context = settings.get("errors.deadletterqueue.context.headers.enable", "").lower() == "true"  # fmt: skip
        self._producer: Producer | None = None
        self._log: Any = None
        self.raw: dict[tuple[str, int, int], LogRecord] = {}

    def use(self, log: Any) -> None:
        """Where dead letters are written."""
        self._log = log

    def make(self, raw: LogRecord) -> SinkRecord | None:
        """A record as the task gets it; None if it is dropped or passed by."""
        step = self._tolerance.step
        try:
            key_schema, key = step(
                "KEY_CONVERTER", self._names["key"], lambda: self._key.from_bytes(raw.topic, raw.key)
            )  # fmt: skip
            value_schema, value = step(
                "VALUE_CONVERTER", self._names["value"], lambda: self._value.from_bytes(raw.topic, raw.value)
            )  # fmt: skip
            headers = tuple(
                (name, step("HEADER_CONVERTER", self._names["header"], lambda each=each: self._header.from_bytes(raw.topic, each))[1])  # type: ignore[misc]
                for name, each in raw.headers
            )  # fmt: skip
            record = SinkRecord(
                raw.topic,
                raw.partition,
                raw.offset,
                key,
                value,
                headers,
                raw.timestamp,
                key_schema,
                value_schema,
            )
            for name, transform in self._transforms:
                made = step("TRANSFORMATION", name, lambda call=transform, one=record: call(one))  # type: ignore[misc]
                if made is None:
                    return None
                if not isinstance(made, SinkRecord):
                    raise ConnectorError(f"{name} returned a {type(made).__name__}, not a record")
                record = made
        except PassedBy as passed:
            self._pass_by(raw, passed)
            return None
        return record

    def report(self, record: SinkRecord, error: BaseException) -> None:
        """A record that the target does not take."""
        if not self._tolerance.passes:
            raise error
        raw = self.raw.get((record.topic, record.partition, record.offset))
        if raw is None:
            raise ConnectorError("a record was reported that is not of this put") from error
        self._pass_by(raw, PassedBy("TASK_PUT", "task", error))

    def _pass_by(self, raw: LogRecord, passed: PassedBy) -> None:
        self._tolerance.tell(f"{raw.topic}/{raw.partition}@{raw.offset}", passed)
        if not self._letters:
            return
        if self._producer is None:
            self._log.ensure_topic(self._letters, 1)
            self._producer = self._log.producer()
        headers = tuple(raw.headers)
        if self._context:
            headers += context_headers(
                raw.topic, raw.partition, raw.offset, self._connector, self._number, passed
            )
        self._producer.send(
            self._letters, value=raw.value, key=raw.key, headers=headers, timestamp=raw.timestamp
        )

    def flush(self) -> None:
        """Dead letters are written before what is behind them counts as done."""
        if self._producer is not None:
            self._producer.flush()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()


class _Listener:
    """Partitions that come and go."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def on_assigned(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self._run.opened(consumer, partitions)

    def on_revoked(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self._run.closed(consumer, partitions)

    def on_lost(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self._run.lost(partitions)


class _Run:
    """One task at work."""

    def __init__(
        self, task: SinkTask, way: Way, settings: Mapping[str, Any], tolerance: Tolerance,
        around: Surroundings, interval: float,
    ) -> None:  # fmt: skip
        self._task = task
        self._way = way
        self._most = settings["task.poll.timeout.ms"] / 1000
        self._tolerance = tolerance
        self._around = around
        self._interval = interval
        self._done: dict[Place, int] = {}
        self._flushed_at = SYSTEM.monotonic()

    def opened(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        call = self._around.call
        call("opened()", self._most, lambda: self._task.opened(partitions))
        for topic, partition in partitions:
            own = call("position()", self._most, lambda t=topic, p=partition: self._task.position(t, p))  # type: ignore[misc]  # fmt: skip
            if own is not None:
                consumer.seek(topic, partition, own)
            self._around.uses(topic)

    def closed(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        self.flush(consumer)
        self._around.call("closed()", self._most, lambda: self._task.closed(partitions))

    def lost(self, partitions: Sequence[Place]) -> None:
        for place in partitions:
            self._done.pop(place, None)
        self._around.call("closed()", self._most, lambda: self._task.closed(partitions))

    def put(self, batch: list[LogRecord]) -> None:
        self._way.raw = {(each.topic, each.partition, each.offset): each for each in batch}
        made = [record for raw in batch if (record := self._way.make(raw)) is not None]
        if made:
            put = lambda: self._around.call("put()", self._most, lambda: self._task.put(made))  # noqa: E731
            # As Kafka Connect: a sink that asks for it is given the same again without end.
            self._tolerance.retrying(put, without_end=True)
        for each in batch:
            self._done[each.place] = each.offset + 1

    def flush(self, consumer: Consumer) -> None:
        if not self._done:
            return
        self._around.call("flush()", self._most, self._task.flush)
        self._way.flush()
        consumer.commit(dict(self._done))
        self._done.clear()
        self._flushed_at = SYSTEM.monotonic()

    def is_due(self, idle: bool) -> bool:
        since = SYSTEM.monotonic() - self._flushed_at
        return bool(self._done) and (since >= self._interval or (idle and since >= 0.5))


def run(
    spec: Spec, connector: type[Connector], settings: dict[str, Any], around: Surroundings
) -> None:
    """The task's whole life; returns when it was told to stop."""
    assert issubclass(connector, SinkConnector)
    tolerance = Tolerance(settings, around.stopping.is_set)
    way = Way(
        spec.connector, spec.number, spec.settings, spec.worker, connector.defaults, tolerance
    )
    interval = int(spec.worker.get("offset.flush.interval.ms", FLUSH_SECONDS * 1000)) / 1000
    most = settings["task.start.timeout.ms"] / 1000
    pattern = settings["topics.regex"] or None
    with connect(spec.bootstrap) as log:
        way.use(log)
        task = around.call(f"{connector.__name__}.Task()", most, connector.Task)
        task._report = way.report
        around.call("start()", most, lambda: task.start(settings))
        at_work = _Run(task, way, settings, tolerance, around, interval)
        try:
            with log.consumer(
                group=group_of(spec.connector, settings),
                topics=() if pattern else settings["topics"],
                pattern=pattern,
                listener=_Listener(at_work),
                auto_offset_reset=spec.settings.get("consumer.override.auto.offset.reset", "earliest"),
                enable_auto_commit=False,
                # A sink may ask for the same batch again for hours; that it hangs is watched by us.
                max_poll_interval_ms=86_400_000,
            ) as consumer:  # fmt: skip
                _work(at_work, consumer, around)
        finally:
            way.close()
            around.call("stop()", most, task.stop)


def _work(at_work: _Run, consumer: Consumer, around: Surroundings) -> None:
    told_paused = around.paused.is_set()
    around.say(state="PAUSED" if told_paused else "RUNNING")
    while not around.stopping.is_set():
        if around.paused.is_set() != told_paused:
            told_paused = not told_paused
            at_work.flush(consumer)
            if not told_paused:
                consumer.resume()
            around.say(state="PAUSED" if told_paused else "RUNNING")
        if told_paused:
            consumer.pause()  # also what a rebalance has brought meanwhile
        batch = consumer.poll(0.2)
        if batch:
            try:
                at_work.put(batch)
            except RetriableError:
                return  # told to stop while it waited: what was not put is read again
        if at_work.is_due(idle=not batch):
            at_work.flush(consumer)
    at_work.flush(consumer)
