"""A consumer's source on librdkafka: any broker that speaks Kafka's protocol."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tailrace.client.errors import (
    BrokerUnavailableError,
    ClientError,
    CommitFailedError,
    OffsetOutOfRangeError,
    RequestError,
    RequestTimeoutError,
    UnknownTopicError,
    UnreadableBatchError,
)
from tailrace.client.record import LogRecord, Place
from tailrace.client.source import EARLIEST, LATEST, ConsumerSettings, Done, Rebalance
from tailrace.clock import SYSTEM, Clock
from tailrace.security import librdkafka_settings
from tailrace.wire.errors import ErrorCode

log = logging.getLogger(__name__)

MOST_AT_ONCE = 2_000
NO_OFFSET = -1001
# What librdkafka tells and then puts right by itself.
# librdkafka's codes for bytes it cannot make sense of, and the broker's.
BROKEN = frozenset({-199, -198, -170, 2})
PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError._TIMED_OUT,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
COMMIT_AGAIN = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._WAIT_COORD,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


def translate(error: Any, action: str) -> ClientError:
    """Our error for one of librdkafka's."""
    code = error.code()
    if code >= 0:
        return RequestError.of(code, action, detail=error.str())
    if code == KafkaError._AUTO_OFFSET_RESET:
        return OffsetOutOfRangeError(f"{action}: no valid offset to read from", detail=error.str())
    if code in (KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT_QUEUE):
        return RequestTimeoutError(f"{action} did not succeed in time", detail=error.str())
    if code in (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        return UnknownTopicError(f"{action}: unknown topic or partition", detail=error.str())
    if code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
        return BrokerUnavailableError(f"{action}: no broker answers", detail=error.str())
    return ClientError(f"{action} failed", detail=error.str())


class KafkaSource:
    """`Source` on a `confluent_kafka.Consumer`. Heartbeats run on librdkafka's thread."""

    def __init__(
        self,
        bootstrap: str,
        group: str | None,
        settings: ConsumerSettings,
        extra: Mapping[str, object] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._settings = settings
        # Without a group nothing of one is needed: that it may not be described is no matter.
        self._passing = PASSING if group else PASSING | {KafkaError.GROUP_AUTHORIZATION_FAILED}
        self._clock = clock
        self._cooperative = (
            "cooperative" in settings.partition_assignment_strategy
            or settings.group_protocol == "consumer"
        )
        self._rebalance: Rebalance | None = None
        self._positions: dict[Place, int] = {}
        self._assigning: dict[Place, int] | None = None
        self._answers: list[tuple[Mapping[Place, int], Done]] = []
        self._failure: ClientError | None = None
        self._closing = False
        configuration: dict[str, object] = {
            **librdkafka_settings(bootstrap),
            "group.id": group or "tailrace-reader",  # required, not joined without a group
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": {"none": "error"}.get(
                settings.auto_offset_reset, settings.auto_offset_reset
            ),
            "isolation.level": settings.isolation_level,
            "fetch.min.bytes": settings.fetch_min_bytes,
            "fetch.wait.max.ms": settings.fetch_max_wait_ms,
            "max.partition.fetch.bytes": settings.max_partition_fetch_bytes,
            "max.poll.interval.ms": max(settings.max_poll_interval_ms, settings.session_timeout_ms),
            "fetch.error.backoff.ms": 20,
            "fetch.queue.backoff.ms": 10,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 1_000,
            "topic.metadata.refresh.interval.ms": 2_000,  # how soon a pattern finds new topics
            "topic.metadata.refresh.fast.interval.ms": 50,
            "check.crcs": True,
            "on_commit": self._on_commit,
            "error_cb": self._on_error,
            "logger": log,
        }
        if settings.group_protocol == "consumer":
            configuration["group.protocol"] = "consumer"
        else:
            configuration["session.timeout.ms"] = settings.session_timeout_ms
            configuration["heartbeat.interval.ms"] = settings.heartbeat_interval_ms
            configuration["partition.assignment.strategy"] = settings.partition_assignment_strategy
        if settings.group_instance_id is not None:
            configuration["group.instance.id"] = settings.group_instance_id
        configuration.update(extra or {})
        self._timeout = settings.request_timeout_ms / 1000
        self._consumer: Any = Consumer(configuration)

    # Partitions ----------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], pattern: str | None, rebalance: Rebalance) -> None:
        self._rebalance = rebalance
        names = list(topics)
        if pattern is not None:
            names = [pattern if pattern.startswith("^") else f"^{pattern}"]
        self._consumer.subscribe(
            names, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        assert self._rebalance is not None
        places = [(each.topic, each.partition) for each in partitions]
        self._assigning = {}
        try:
            self._rebalance.assigned(places)
            chosen = [
                TopicPartition(each.topic, each.partition,
                               self._assigning.get((each.topic, each.partition), each.offset))
                for each in partitions
            ]  # fmt: skip
            if self._cooperative:
                self._consumer.incremental_assign(chosen)
            else:
                self._consumer.assign(chosen)
        finally:
            self._assigning = None

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        assert self._rebalance is not None
        places = [(each.topic, each.partition) for each in partitions]
        if not self._closing:
            self._rebalance.revoked(places)
        self._drop(places)

    def _on_lost(self, consumer: Any, partitions: list[Any]) -> None:
        assert self._rebalance is not None
        places = [(each.topic, each.partition) for each in partitions]
        if not self._closing:
            self._rebalance.lost(places)
        self._drop(places)

    def _drop(self, places: Iterable[Place]) -> None:
        for place in places:
            self._positions.pop(place, None)

    def assign(self, positions: Mapping[Place, int]) -> None:
        self._consumer.assign(
            [TopicPartition(*place, _offset(offset)) for place, offset in positions.items()]
        )
        self._positions = {place: offset for place, offset in positions.items() if offset >= 0}

    def assignment(self) -> set[Place]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def partitions(self, topic: str) -> list[Place]:
        try:
            found = self._consumer.list_topics(topic, timeout=self._timeout).topics[topic]
        except KafkaException as error:
            raise translate(error.args[0], f'asking for topic "{topic}"') from error
        if found.error is not None:
            raise UnknownTopicError(
                f'topic "{topic}" does not exist', hint="`tailrace topic list` shows what does"
            )
        return [(topic, index) for index in sorted(found.partitions)]

    # Records -------------------------------------------------------------------

    def fetch(self, timeout: float) -> list[LogRecord]:
        if self._failure is not None:
            self._raise_failure()
        # `consume` would wait until it is full: one record is waited for, more are taken.
        try:
            first = self._consumer.poll(timeout)
            messages = [] if first is None else [first, *self._consumer.consume(MOST_AT_ONCE, 0)]
        except KafkaException as error:
            raise translate(error.args[0], "reading") from error
        found: list[LogRecord] = []
        for message in messages:
            problem = message.error()
            if problem is None:
                place = (message.topic(), message.partition())
                offset = message.offset()
                found.append(
                    LogRecord(
                        *place, offset, message.timestamp()[1], message.key(), message.value(),
                        tuple(message.headers() or ()),
                    )
                )  # fmt: skip
                self._positions[place] = offset + 1
            elif problem.code() == KafkaError._PARTITION_EOF:
                place = (message.topic(), message.partition())
                self._positions[place] = max(message.offset(), self._positions.get(place, 0))
            elif problem.code() not in self._passing:
                broken = problem.code() in BROKEN
                self._failure = _unreadable(message) if broken else translate(problem, "reading")
        if self._failure is not None and not found:
            self._raise_failure()  # else at the next call: what was found must not be lost
        return found

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        assert failure is not None
        raise failure

    def _on_error(self, error: Any) -> None:
        if error.fatal() or error.code() == KafkaError._AUTHENTICATION:
            self._failure = translate(error, "reading")

    def position(self, place: Place) -> int | None:
        return self._positions.get(place)

    def seek(self, place: Place, offset: int) -> None:
        if self._assigning is not None:
            self._assigning[place] = _offset(offset)
        else:
            try:
                self._consumer.seek(TopicPartition(*place, _offset(offset)))
            except KafkaException as error:
                raise translate(error.args[0], f'seeking in "{place[0]}"') from error
        self._drop([place])
        if offset >= 0:
            self._positions[place] = offset

    def pause(self, places: Iterable[Place]) -> None:
        self._consumer.pause([TopicPartition(*place) for place in places])

    def resume(self, places: Iterable[Place]) -> None:
        owned = self.assignment()
        self._consumer.resume([TopicPartition(*place) for place in places if place in owned])

    # Offsets -------------------------------------------------------------------

    def commit(self, offsets: Mapping[Place, int]) -> None:
        until = self._clock.monotonic() + self._timeout
        while True:
            try:
                answers = self._consumer.commit(offsets=_partitions(offsets), asynchronous=False)
                failed = next((each.error for each in answers or () if each.error), None)
            except KafkaException as error:
                failed = error.args[0]
            if failed is None or failed.code() == KafkaError._NO_OFFSET:
                return
            if failed.code() in COMMIT_AGAIN and self._clock.monotonic() < until:
                self._clock.sleep(0.02)
                continue
            raise _commit_error(failed)

    def commit_async(self, offsets: Mapping[Place, int], done: Done) -> None:
        try:
            self._answers.append((offsets, done))
            self._consumer.commit(offsets=_partitions(offsets), asynchronous=True)
        except KafkaException as error:
            self._answers.pop()
            done(_commit_error(error.args[0]))

    def _on_commit(self, error: Any, partitions: list[Any]) -> None:
        answered = {(each.topic, each.partition): each.offset for each in partitions}
        for number, (offsets, done) in enumerate(self._answers):
            if dict(offsets) == answered:
                del self._answers[number]
                failed = error or next((each.error for each in partitions if each.error), None)
                done(None if failed is None else _commit_error(failed))
                return

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]:
        wanted = [TopicPartition(*place) for place in places]
        if not wanted:
            return {}
        try:
            found = self._consumer.committed(wanted, timeout=self._timeout)
        except KafkaException as error:
            raise translate(error.args[0], "asking for stored offsets") from error
        return {
            (each.topic, each.partition): each.offset if each.offset >= 0 else None
            for each in found
        }

    def bounds(self, place: Place) -> tuple[int, int]:
        try:
            found = self._consumer.get_watermark_offsets(TopicPartition(*place), self._timeout)
        except KafkaException as error:
            raise translate(error.args[0], f'asking for offsets of "{place[0]}"') from error
        if found is None:
            raise RequestTimeoutError(f'asking for offsets of "{place[0]}" took too long')
        return int(found[0]), int(found[1])

    def offset_for_time(self, place: Place, timestamp: int) -> int | None:
        try:
            (found,) = self._consumer.offsets_for_times(
                [TopicPartition(*place, timestamp)], timeout=self._timeout
            )
        except KafkaException as error:
            raise translate(error.args[0], f'asking for offsets of "{place[0]}"') from error
        return int(found.offset) if found.offset >= 0 else None

    def group_member(self) -> tuple[int, str, str | None]:
        # librdkafka's own form: magic, generation, then texts that end in a zero byte
        raw = self._consumer.consumer_group_metadata()
        rest = raw[len(b"CGMDv2:") :]
        generation = int.from_bytes(rest[:4], "little", signed=True)
        _, member_id, *_ = rest[4:].split(b"\x00")
        return generation, member_id.decode(), self._settings.group_instance_id

    def close(self) -> None:
        self._closing = True
        self._consumer.close()


def _offset(offset: int) -> int:
    return {EARLIEST: -2, LATEST: -1}.get(offset, offset)


def _partitions(offsets: Mapping[Place, int]) -> list[Any]:
    return [TopicPartition(*place, offset) for place, offset in offsets.items()]


def _commit_error(error: Any) -> ClientError:
    if error.code() in (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError._STATE,
    ):
        found = CommitFailedError("the offsets were not stored", detail=error.str())
        found.error_code = max(error.code(), -1)
        return found
    return translate(error, "storing offsets")


def _unreadable(message: Any) -> UnreadableBatchError:
    """librdkafka tells where the batch begins and not where it ends."""
    place = (message.topic(), message.partition())
    offset = message.offset()
    return UnreadableBatchError.at(*place, offset, offset, message.error().str())
