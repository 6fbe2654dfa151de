"""Fetch: what is there now, or as soon as enough is there, or when time is up.

A fetch that finds less than `min_bytes` is parked with the partitions it reads and
looks again when they have grown by as much as it lacks; the append that wakes it has
been acknowledged by then. Nothing of a parked fetch is held but its list.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tailrace.broker.authorization.acls import READ
from tailrace.broker.cold import is_warm
from tailrace.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    FetchSessions,
    Wanted,
)
from tailrace.broker.handlers.fetch_response import TOPIC_IDS, Outcome, encode
from tailrace.broker.router import Request, Route, Timer
from tailrace.errors import TailraceError
from tailrace.log.verification import Broken, settle
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from tailrace.broker.authorization.authorizer import Authorizer
    from tailrace.broker.connection import Connection
    from tailrace.broker.server import Broker
    from tailrace.log.partition import Partition, Slice
    from tailrace.log.transactions import AbortedTransaction

MINIMUM, MAXIMUM = 4, 18
READ_COMMITTED = 1


class Fetching:
    """One fetch on its way: what it wants, and while parked what it still lacks."""

    __slots__ = (
        "credit_bytes", "max_bytes", "min_bytes", "parked_on", "ready_bytes", "request", "session",
        "timer", "wanted", "woken",
    )  # fmt: skip

    def __init__(
        self, request: Request[FetchRequest], wanted: list[Wanted], session: FetchSession | None
    ) -> None:
        self.request = request
        self.wanted = wanted
        self.session = session
        self.min_bytes = request.body.min_bytes
        self.max_bytes = request.body.max_bytes
        self.timer: Timer | None = None
        self.parked_on: list[Partition] = []
        self.ready_bytes = 0
        self.credit_bytes = 0
        self.woken = False


class Fetch:
    """The handler, and the place where fetches wait."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.sessions = FetchSessions(
            broker.settings.integer("max.incremental.fetch.session.cache.slots")
        )
        self._parked: dict[Partition, set[Fetching]] = {}
        self._by_connection: dict[Connection, set[Fetching]] = {}
        self._woken: list[Fetching] = []
        self.watchers: list[Callable[[Partition], None]] = []  # others who wait for growth

    @property
    def parked_count(self) -> int:
        """How many fetches wait."""
        return sum(map(len, self._by_connection.values()))

    # requests

    def handle(self, request: Request[FetchRequest]) -> None:
        body = request.body
        wanted = _wanted(body, request.version)
        session: FetchSession | None = None
        epoch = body.session_epoch if request.version >= 7 else FINAL_EPOCH
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self.sessions.drop(body.session_id)
            if epoch == INITIAL_EPOCH and request.version >= 7:
                session = self.sessions.create(wanted)
        else:
            found = self.sessions.advance(body.session_id, epoch)
            if isinstance(found, int):
                request.answer_parts(encode(request.version, request.correlation_id, found, 0, ()))
                return
            session = found
            self.sessions.update(session, wanted, _forgotten(body, request.version))
            wanted = list(session.wanted.values())
        self._serve(Fetching(request, wanted, session), final=body.max_wait_ms <= 0)

    def _serve(self, fetching: Fetching, *, final: bool) -> None:
        """Answer if there is enough (or it is `final`), else park."""
        outcomes, size, urgent = self._collect(fetching)
        if final or urgent or size >= fetching.min_bytes or not fetching.wanted:
            self._answer(fetching, outcomes)
            return
        for outcome in outcomes:
            if outcome.records is not None:
                outcome.records.release()
        fetching.ready_bytes = size
        fetching.credit_bytes = 0
        fetching.woken = False
        if fetching.timer is None:
            self._park(fetching)

    def _collect(self, fetching: Fetching) -> tuple[list[Outcome], int, bool]:
        """Every partition's outcome, the bytes found, and whether the client must know now."""
        broker = self._broker
        committed = fetching.request.body.isolation_level == READ_COMMITTED
        left = min(fetching.max_bytes, broker.fetch_limit_bytes)
        if broker.metering:
            left = min(left, broker.quotas.fetch_limit(fetching.request.connection))
        outcomes: list[Outcome] = []
        size = 0
        urgent = False
        authorizer = broker.authorizer
        readable: set[str | bytes] = set()
        if authorizer is not None:
            readable = authorizer.proven(fetching.request.connection, READ)
        for wanted in fetching.wanted:
            if (
                authorizer is not None
                and wanted.topic not in readable
                and not self._permitted(authorizer, fetching, wanted)
            ):
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                outcomes.append(Outcome(wanted, int(code), aborted=()))
                urgent = True
                continue
            partition = self._find(wanted)
            if partition is None:
                unknown_id = isinstance(wanted.topic, bytes) and not broker.knows_id(wanted.topic)
                code = (
                    ErrorCode.UNKNOWN_TOPIC_ID
                    if unknown_id
                    else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                outcomes.append(Outcome(wanted, int(code)))
                urgent = True
                continue
            outcome = _read(partition, wanted, left, first=size == 0, committed=committed)
            if outcome.error or outcome.diverging is not None:
                urgent = True
            if outcome.records is not None:
                size += outcome.records.length
                left -= outcome.records.length
            outcomes.append(outcome)
        return outcomes, size, urgent

    def _permitted(self, authorizer: Authorizer, fetching: Fetching, wanted: Wanted) -> bool:
        """Whether the client may read there. A parked fetch is asked again whenever it is
        served, for the rules may have changed. An id that nobody has is nobody's secret."""
        name = wanted.topic
        if isinstance(name, bytes):
            topic = self._broker.topic_by_id(name)
            if topic is None:
                return True
            name = topic.name
        return authorizer.prove(fetching.request.connection, READ, name, wanted.topic, ApiKey.FETCH)

    def _find(self, wanted: Wanted) -> Partition | None:
        if isinstance(wanted.topic, bytes):
            return self._broker.partition_by_id(wanted.topic, wanted.index)
        return self._broker.partition_by_name(wanted.topic, wanted.index)

    def _answer(self, fetching: Fetching, outcomes: list[Outcome]) -> None:
        self._unpark(fetching)
        request = fetching.request
        if request.abandoned:
            for outcome in outcomes:
                if outcome.records is not None:
                    outcome.records.release()
            return
        cold = [
            (outcome.wanted, records)
            for outcome in outcomes
            if (records := outcome.records) is not None
            and (records.unchecked or not is_warm(records))
        ]
        if cold:
            self._broker.cold.warm(
                [records for _, records in cold],
                lambda broken: self._send_checked(fetching, outcomes, cold, broken),
            )
        else:
            self._send(fetching, outcomes)

    def _send_checked(
        self,
        fetching: Fetching,
        outcomes: list[Outcome],
        cold: list[tuple[Wanted, Slice]],
        broken: list[list[Broken]],
    ) -> None:
        """Records came from the disk: what is broken is not sent, but looked for again, which
        ends before it or tells the client."""
        for (wanted, records), found in zip(cold, broken, strict=True):
            partition = self._find(wanted)
            if partition is not None:
                settle(partition, records, found)
        if not any(broken):
            self._send(fetching, outcomes)
            return
        for outcome in outcomes:
            if outcome.records is not None:
                outcome.records.release()
        self._serve(fetching, final=True)

    def _send(self, fetching: Fetching, outcomes: list[Outcome]) -> None:
        request = fetching.request
        session = fetching.session
        session_id = 0
        if self._broker.metering and self._throttled(fetching, outcomes):
            return
        count = self._broker.traffic_out
        for outcome in outcomes:
            if outcome.records is not None:
                count(outcome.wanted.topic, outcome.records.length)
        if session is not None:
            session_id = session.id
            outcomes = _news(session, outcomes, full=request.body.session_epoch == INITIAL_EPOCH)
        request.answer_parts(
            encode(request.version, request.correlation_id, 0, session_id, outcomes)
        )

    def _throttled(self, fetching: Fetching, outcomes: list[Outcome]) -> bool:
        """Whether the reader is over its quota: then it gets an empty answer and a pause."""
        request, session = fetching.request, fetching.session
        size = sum(one.records.length for one in outcomes if one.records is not None)
        request.connection.client_id = request.client_id
        pause = self._broker.quotas.fetched(request.connection, size)
        if not pause:
            return False
        for outcome in outcomes:
            if outcome.records is not None:
                outcome.records.release()
        session_id = 0
        if session is not None:
            if request.body.session_epoch == INITIAL_EPOCH:
                self.sessions.drop(session.id)  # the client begins again, as with Kafka
            else:
                session_id = session.id
        request.connection.mute(pause)
        request.answer_parts(
            encode(request.version, request.correlation_id, 0, session_id, (), pause)
        )
        return True

    # waiting

    def grew(self, partition: Partition, size: int) -> None:
        """`partition` has `size` more bytes; whoever has enough now looks again."""
        for watch in self.watchers:
            watch(partition)
        waiting = self._parked.get(partition)
        if waiting:
            for fetching in waiting:
                fetching.credit_bytes += size
                if (
                    not fetching.woken
                    and fetching.ready_bytes + fetching.credit_bytes >= fetching.min_bytes
                ):
                    self._wake(fetching)

    def moved(self, partition: Partition) -> None:
        """A watermark or the topic itself changed: whoever reads it looks again."""
        for watch in self.watchers:
            watch(partition)
        for fetching in self._parked.get(partition, ()):
            if not fetching.woken:
                self._wake(fetching)

    def _wake(self, fetching: Fetching) -> None:
        fetching.woken = True
        if not self._woken:
            self._broker.call_soon(self._serve_woken)
        self._woken.append(fetching)

    def _serve_woken(self) -> None:
        woken, self._woken = self._woken, []
        for fetching in woken:
            if fetching.timer is not None:
                self._serve(fetching, final=False)

    def _park(self, fetching: Fetching) -> None:
        broker = self._broker
        for wanted in fetching.wanted:
            partition = self._find(wanted)
            if partition is not None:
                self._parked.setdefault(partition, set()).add(fetching)
                fetching.parked_on.append(partition)
        self._by_connection.setdefault(fetching.request.connection, set()).add(fetching)
        fetching.timer = broker.call_later(
            fetching.request.body.max_wait_ms / 1000, lambda: self._serve(fetching, final=True)
        )

    def _unpark(self, fetching: Fetching) -> None:
        if fetching.timer is None:
            return
        fetching.timer.cancel()
        fetching.timer = None
        for partition in fetching.parked_on:
            waiting = self._parked.get(partition)
            if waiting is not None:
                waiting.discard(fetching)
                if not waiting:
                    del self._parked[partition]
        fetching.parked_on.clear()
        connection = fetching.request.connection
        others = self._by_connection.get(connection)
        if others is not None:
            others.discard(fetching)
            if not others:
                del self._by_connection[connection]

    def disconnected(self, connection: Connection) -> None:
        """Forget the fetches of a connection that closed."""
        for fetching in list(self._by_connection.get(connection, ())):
            self._unpark(fetching)


def _read(
    partition: Partition, wanted: Wanted, left: int, *, first: bool, committed: bool
) -> Outcome:
    epoch = partition.leader_epoch
    if wanted.leader_epoch >= 0 and wanted.leader_epoch != epoch:
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if wanted.leader_epoch < epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        return Outcome(wanted, int(code))
    if partition.failure is not None:
        return Outcome(wanted, partition.failure.kafka_code)
    high_watermark = partition.high_watermark
    stable = partition.last_stable_offset
    start = partition.log_start_offset
    limit = stable if committed else high_watermark
    if wanted.last_fetched_epoch >= 0:
        found_epoch, found_end = partition.epoch_end(wanted.last_fetched_epoch)
        if found_epoch < wanted.last_fetched_epoch or found_end < wanted.fetch_offset:
            return Outcome(
                wanted, 0, high_watermark, stable, start, diverging=(found_epoch, found_end)
            )
    offset = wanted.fetch_offset
    if offset == limit or (left <= 0 and not first):
        if not start <= offset <= partition.end_offset:
            return Outcome(wanted, int(ErrorCode.OFFSET_OUT_OF_RANGE))
        return Outcome(wanted, 0, high_watermark, stable, start, () if committed else None)
    try:
        most = max(1, min(left, wanted.max_bytes))
        found = partition.read(offset, most, limit, minimum_one_batch=first)
        if not first and found.length == most and _first_batch_bytes(found) > most:
            # Half a batch would be thrown away by the client, which asks again anyway.
            found.release()
            return Outcome(wanted, 0, high_watermark, stable, start, () if committed else None)
        aborted: Sequence[AbortedTransaction] | None = None
        if committed:
            aborted = partition.aborted_transactions(offset, limit) if found.length else ()
    except TailraceError as error:
        number: int = getattr(error, "kafka_code", -1)
        if number == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Outcome(wanted, number)
        return Outcome(wanted, number, high_watermark, stable, start)
    if found.length == 0:
        found.release()
        return Outcome(wanted, 0, high_watermark, stable, start, aborted)
    return Outcome(wanted, 0, high_watermark, stable, start, aborted, found)


def _first_batch_bytes(found: Slice) -> int:
    head = os.pread(found.descriptor, 12, found.position)
    return 12 + int.from_bytes(head[8:], "big")


def _news(session: FetchSession, outcomes: list[Outcome], *, full: bool) -> list[Outcome]:
    """What an incremental answer carries: data, errors, and what changed since the last one."""
    news: list[Outcome] = []
    for outcome in outcomes:
        wanted = outcome.wanted
        told = (outcome.error, outcome.high_watermark, outcome.log_start_offset)
        if (
            full
            or outcome.records is not None
            or outcome.error
            or outcome.diverging is not None
            or told != wanted.told
        ):
            news.append(outcome)
        wanted.told = told
        if (
            outcome.records is not None
            and session.wanted.get((wanted.topic, wanted.index)) is wanted
        ):
            session.serve_last(wanted)
    return news


def _wanted(body: FetchRequest, version: int) -> list[Wanted]:
    return [
        Wanted(
            topic.topic_id if version >= TOPIC_IDS else topic.topic,
            one.partition,
            one.fetch_offset,
            one.partition_max_bytes,
            one.current_leader_epoch,
            one.last_fetched_epoch,
        )
        for topic in body.topics
        for one in topic.partitions
    ]


def _forgotten(body: FetchRequest, version: int) -> Iterable[tuple[str | bytes, int]]:
    for topic in body.forgotten_topics_data:
        key = topic.topic_id if version >= TOPIC_IDS else topic.topic
        for index in topic.partitions:
            yield key, index


def install(broker: Broker) -> Fetch:
    """Route Fetch to a new handler."""
    handler = Fetch(broker)
    broker.router.add([Route(ApiKey.FETCH, MINIMUM, MAXIMUM, handler.handle)])
    return handler
