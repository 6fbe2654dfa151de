"""A topic as a work queue: a share group (KIP-932).

    with log.queue("jobs", group="workers") as queue:
        for job in queue:
            try:
                work(job.value)
                job.ack()
            except Temporary:
                job.release(delay=30)       # again later, perhaps to somebody else
            except ValueError:
                job.reject()                # never again

Members of a group share single records, not partitions: any number of workers can take
from one partition. A job is locked for the worker that has it (`lock`, usually 30 s); one
that is neither acknowledged nor renewed in time goes to somebody else, with a higher
`delivery_count`, until the group's limit. Order is lost wherever a job is released or its
worker dies; where order matters, use a consumer.

Answers travel with the next `poll`, or with `flush`; a `for` loop sends them as it goes.
One thread takes jobs; heartbeats have a thread of their own.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from types import TracebackType

from tailrace.client.admin import Admin
from tailrace.client.cluster import COORDINATOR_MOVED, GROUP, Cluster, TryAgain
from tailrace.client.committed import visible_records
from tailrace.client.connection import Connection
from tailrace.client.errors import (
    BrokerUnavailableError,
    ClientClosedError,
    ClientError,
    RequestError,
    TransactionStateError,
)
from tailrace.client.record import LogRecord
from tailrace.client.sender import is_retriable
from tailrace.clock import SYSTEM, Clock
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import uuid_text
from tailrace.wire.messages import share_acknowledge, share_fetch, share_group_heartbeat

HEARTBEAT = APIS[ApiKey.SHARE_GROUP_HEARTBEAT]
SHARE_FETCH = APIS[ApiKey.SHARE_FETCH]
SHARE_ACKNOWLEDGE = APIS[ApiKey.SHARE_ACKNOWLEDGE]

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
SLICE_SECONDS = 0.1
SESSION_LOST = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
REJOIN = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})

TopicPartition = tuple[bytes, int]  # topic id and partition
Answers = dict[TopicPartition, dict[int, int]]  # offset → acknowledgement


class Job:
    """A record this worker holds, and the three ways to answer for it."""

    __slots__ = ("_queue", "answered", "delivery_count", "locked_until", "place", "record")

    def __init__(
        self,
        queue: Queue,
        record: LogRecord,
        place: TopicPartition,
        delivery_count: int,
        locked_until: float,
    ) -> None:
        self._queue = queue
        self.record = record
        self.place = place
        self.delivery_count = delivery_count
        self.locked_until = locked_until
        self.answered = False

    def __repr__(self) -> str:
        return f"Job({self.record!r}, delivery_count={self.delivery_count})"

    @property
    def key(self) -> bytes | None:
        key: bytes | None = self.record.key
        return key

    @property
    def value(self) -> bytes | None:
        value: bytes | None = self.record.value
        return value

    def ack(self) -> None:
        """Done: nobody gets it again."""
        self._queue._answer(self, ACCEPT)

    def release(self, delay: float | timedelta = 0.0) -> None:
        """Not done: somebody gets it again, not before `delay` seconds have passed.

        While a delay runs, this worker keeps the lock and must go on polling.
        """
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        self._queue._release(self, seconds)

    def reject(self) -> None:
        """It cannot be done: nobody gets it again."""
        self._queue._answer(self, REJECT)

    def renew(self) -> None:
        """Keep the lock for another `lock` seconds; sent at once."""
        self._queue._renew([self])


class Queue:
    """See the module. Made by `log.queue(…)`."""

    def __init__(
        self,
        cluster: Cluster,
        heartbeats: Cluster,
        topics: Sequence[str],
        group: str,
        *,
        max_records: int = 100,
        start: str = "earliest",
        clock: Clock = SYSTEM,
    ) -> None:
        self.group = group
        self.topics = list(topics)
        self.member_id = uuid_text(os.urandom(16))
        self.lock = timedelta(seconds=30)
        self.lost: deque[LogRecord] = deque(maxlen=1000)
        self._cluster = cluster
        self._max_records = max_records
        self._clock = clock
        self._names: dict[bytes, str] = {}
        self._epochs: dict[int, int] = {}
        self._sessions: dict[int, Connection] = {}
        self._answers: Answers = {}
        self._held: dict[tuple[TopicPartition, int], Job] = {}
        self._delayed: list[tuple[float, Job]] = []
        self._ready: deque[Job] = deque()
        self._closed = False
        Admin.over(cluster).alter_group_config(group, {"share.auto.offset.reset": start})
        self._membership = Membership(heartbeats, group, self.member_id, self.topics, clock)

    # Taking --------------------------------------------------------------------

    def poll(self, timeout: float | timedelta = 1.0) -> list[Job]:
        """Some jobs, locked for this worker; empty when none came in time."""
        self._check()
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        until = self._clock.monotonic() + seconds
        while True:
            self._membership.raise_failure()
            self._look_after_delays()
            left = until - self._clock.monotonic()
            jobs = self._fetch(max(0.0, min(left, SLICE_SECONDS)))
            if jobs or left <= 0:
                return jobs

    def __iter__(self) -> Iterator[Job]:
        return self.jobs()

    def jobs(self, timeout: float | timedelta | None = None) -> Iterator[Job]:
        """One job after another; ends after `timeout` without one (None: never)."""
        while True:
            found = self.poll(timeout if timeout is not None else 60.0)
            if not found and timeout is not None:
                return
            self._ready.extend(found)
            while self._ready:
                yield self._ready.popleft()

    def flush(self) -> None:
        """Send the answers given so far, and wait until they are stored."""
        self._check()
        self._look_after_delays()
        self._acknowledge()

    def close(self) -> None:
        """Store the answers, give back every job without one, leave the group."""
        if self._closed:
            return
        try:
            for job in list(self._held.values()):
                if not job.answered:
                    self._answer(job, RELEASE)
            for _, job in self._delayed:
                self._answers.setdefault(job.place, {})[job.record.offset] = RELEASE
            self._delayed.clear()
            self._acknowledge()
        finally:
            self._closed = True
            self._membership.close()
            self._cluster.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Answers -------------------------------------------------------------------

    def _answer(self, job: Job, kind: int) -> None:
        if job.answered:
            raise TransactionStateError("this job was answered already")
        self._check()
        job.answered = True
        self._answers.setdefault(job.place, {})[job.record.offset] = kind

    def _release(self, job: Job, seconds: float) -> None:
        if seconds <= 0:
            self._answer(job, RELEASE)
            return
        if job.answered:
            raise TransactionStateError("this job was answered already")
        job.answered = True
        self._delayed.append((self._clock.monotonic() + seconds, job))

    def _look_after_delays(self) -> None:
        """Release what is due; keep the locks of what is not."""
        now = self._clock.monotonic()
        waiting = [(due, job) for due, job in self._delayed if due > now]
        for due, job in self._delayed:
            if due <= now:
                self._answers.setdefault(job.place, {})[job.record.offset] = RELEASE
        self._delayed = waiting
        third = self.lock.total_seconds() / 3
        aging = [job for _, job in waiting if job.locked_until - now < third]
        if aging:
            self._renew(aging)

    def _renew(self, jobs: Sequence[Job]) -> None:
        answers: Answers = {}
        for job in jobs:
            answers.setdefault(job.place, {})[job.record.offset] = RENEW
        until = self._clock.monotonic() + self.lock.total_seconds()
        self._send_answers(answers, renewing=True)
        for job in jobs:
            job.locked_until = until

    def _acknowledge(self) -> None:
        answers, self._answers = self._answers, {}
        self._send_answers(answers)

    def _send_answers(self, answers: Answers, *, renewing: bool = False) -> None:
        left = {place: given for place, given in answers.items() if given}

        def ask() -> None:
            for leader, places in self._by_leader(list(left)).items():
                connection = self._session(leader)
                epoch = self._epochs.get(leader, 0)
                if connection is None or epoch == 0:
                    # The session that held these locks is gone, and they with it.
                    for place in places:
                        self._forget(place, left.pop(place), lost=True)
                    continue
                topics: dict[bytes, list[share_acknowledge.AcknowledgePartition]] = {}
                for place in places:
                    batches = [
                        share_acknowledge.AcknowledgementBatch(*run) for run in _runs(left[place])
                    ]
                    topics.setdefault(place[0], []).append(
                        share_acknowledge.AcknowledgePartition(place[1], batches)
                    )
                request = share_acknowledge.ShareAcknowledgeRequest(
                    group_id=self.group,
                    member_id=self.member_id,
                    share_session_epoch=epoch,
                    is_renew_ack=renewing,
                    topics=[
                        share_acknowledge.AcknowledgeTopic(topic, each)
                        for topic, each in topics.items()
                    ],
                )
                response = connection.request(SHARE_ACKNOWLEDGE, request)
                assert isinstance(response, share_acknowledge.ShareAcknowledgeResponse)
                if response.error_code in SESSION_LOST:
                    self._epochs[leader] = 0
                    raise TryAgain(response.error_code)
                self._judge(response.error_code)
                self._epochs[leader] = epoch + 1
                for topic in response.responses:
                    for each in topic.partitions:
                        place = (topic.topic_id, each.partition_index)
                        if is_retriable(each.error_code):
                            self._cluster.forget(self._names.get(place[0], ""))
                            raise TryAgain(each.error_code)
                        given = left.pop(place, {})
                        if not renewing or each.error_code != ErrorCode.NONE:
                            self._forget(place, given, lost=each.error_code != ErrorCode.NONE)

        self._cluster.retry(ask, f'acknowledging for group "{self.group}"')

    def _forget(self, place: TopicPartition, given: dict[int, int], *, lost: bool) -> None:
        for offset, kind in given.items():
            job = self._held.pop((place, offset), None)
            if lost and job is not None and kind in (ACCEPT, REJECT, RENEW):
                self.lost.append(job.record)

    # Fetching ------------------------------------------------------------------

    def _fetch(self, wait: float) -> list[Job]:
        places = self._membership.assignment()
        if not places:
            if wait:
                self._clock.sleep(min(wait, 0.02))
            return []
        self._learn_names()
        if self._answers.keys() - places:
            self._acknowledge()  # for partitions that went to other members
        try:
            by_leader = self._by_leader(sorted(places))
        except TryAgain as again:
            self._clock.sleep(again.pause)
            return []
        jobs: list[Job] = []
        for leader, mine in by_leader.items():
            try:
                waited = wait if len(by_leader) == 1 else 0.0
                jobs += self._fetch_from(leader, mine, waited)
            except (BrokerUnavailableError, TryAgain):
                self._sessions.pop(leader, None)
                self._epochs[leader] = 0
                for topic in self.topics:
                    self._cluster.forget(topic)
                self._clock.sleep(0.05)
        return jobs

    def _fetch_from(self, leader: int, places: list[TopicPartition], wait: float) -> list[Job]:
        connection = self._session(leader) or self._open_session(leader)
        epoch = self._epochs.get(leader, 0)
        topics: dict[bytes, list[share_fetch.FetchPartition]] = {}
        sent: Answers = {}
        for place in places:
            batches: list[share_fetch.AcknowledgementBatch] = []
            if epoch and place in self._answers:
                sent[place] = self._answers.pop(place)
                batches = [share_fetch.AcknowledgementBatch(*run) for run in _runs(sent[place])]
            topics.setdefault(place[0], []).append(share_fetch.FetchPartition(place[1], 0, batches))
        request = share_fetch.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=epoch,
            max_wait_ms=int(wait * 1000),
            min_bytes=1,
            max_bytes=52_428_800,
            max_records=self._max_records,
            batch_size=self._max_records,
            share_acquire_mode=1,
            topics=[share_fetch.FetchTopic(topic, each) for topic, each in topics.items()],
        )
        try:
            response = connection.request(SHARE_FETCH, request)
        except BrokerUnavailableError:
            for place, given in sent.items():
                self._forget(place, given, lost=True)
            raise
        assert isinstance(response, share_fetch.ShareFetchResponse)
        if response.error_code != ErrorCode.NONE:
            for place, given in sent.items():
                self._forget(place, given, lost=True)
            if response.error_code in SESSION_LOST:
                raise TryAgain(response.error_code)
            self._judge(response.error_code)
        self._epochs[leader] = epoch + 1
        if response.acquisition_lock_timeout_ms > 0:
            self.lock = timedelta(milliseconds=response.acquisition_lock_timeout_ms)
        jobs: list[Job] = []
        for topic in response.responses:
            for answer in topic.partitions:
                place = (topic.topic_id, answer.partition_index)
                given = sent.pop(place, {})
                refused = answer.acknowledge_error_code != ErrorCode.NONE
                self._forget(place, given, lost=refused)
                if answer.error_code != ErrorCode.NONE:
                    self._cluster.forget(self._names.get(topic.topic_id, ""))
                    if not is_retriable(answer.error_code):
                        self._judge(answer.error_code)
                    continue
                jobs += self._acquired(place, answer)
        for place, given in sent.items():
            self._forget(place, given, lost=False)
        return jobs

    def _acquired(self, place: TopicPartition, answer: share_fetch.PartitionData) -> list[Job]:
        if not answer.acquired_records:
            return []
        until = self._clock.monotonic() + self.lock.total_seconds()
        name = self._names[place[0]]
        records, _ = visible_records(answer.records or b"", 0, place=(name, place[1]))
        by_offset = {record.offset: record for record in records}
        jobs: list[Job] = []
        for run in answer.acquired_records:
            for offset in range(run.first_offset, run.last_offset + 1):
                record = by_offset.get(offset)
                if record is None:
                    # a marker, or compacted away: nobody can work on it
                    self._answers.setdefault(place, {})[offset] = GAP
                    continue
                job = Job(
                    self,
                    LogRecord._make((name, place[1], *record)),
                    place,
                    run.delivery_count,
                    until,
                )
                self._held[place, offset] = job
                jobs.append(job)
        return jobs

    def _session(self, leader: int) -> Connection | None:
        """The connection whose session with a leader is alive."""
        connection = self._sessions.get(leader)
        if connection is None or connection.closed:
            self._epochs[leader] = 0
            return None
        return connection

    def _open_session(self, leader: int) -> Connection:
        connection = self._sessions[leader] = self._cluster.broker(leader)
        self._epochs[leader] = 0
        return connection

    def _learn_names(self) -> None:
        for topic in self.topics:
            self._names[self._cluster.topic(topic).id] = topic

    def _by_leader(self, places: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for place in places:
            name = self._names.get(place[0])
            if name is None:
                continue  # deleted and made anew under another id
            found.setdefault(self._cluster.leader(name, place[1]), []).append(place)
        return found

    def _judge(self, error_code: int) -> None:
        if error_code == ErrorCode.NONE:
            return
        if is_retriable(error_code):
            raise TryAgain(error_code)
        raise RequestError.of(error_code, f'taking jobs for group "{self.group}"')

    def _check(self) -> None:
        if self._closed:
            raise ClientClosedError("the queue is closed")


class Membership:
    """Heartbeats of one member, on a thread; keeps the assignment."""

    def __init__(
        self, cluster: Cluster, group: str, member_id: str, topics: Sequence[str], clock: Clock
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._member_id = member_id
        self._topics = list(topics)
        self._clock = clock
        self._epoch = 0
        self._interval = 1.0
        self._assignment: frozenset[TopicPartition] = frozenset()
        self._failure: ClientError | None = None
        self._stopping = threading.Event()
        self._beat(0)
        self._thread = threading.Thread(target=self._serve, name="queue-member", daemon=True)
        self._thread.start()

    def assignment(self) -> frozenset[TopicPartition]:
        return self._assignment

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self._thread.join()
        try:
            self._beat(-1)
        except ClientError:
            pass  # the group notices by its session time-out
        finally:
            self._cluster.close()

    def _serve(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                self._beat(self._epoch)
            except ClientError as error:
                self._failure = error
                return

    def _beat(self, epoch: int) -> None:
        joining = epoch == 0

        def ask() -> None:
            nonlocal joining, epoch
            request = share_group_heartbeat.ShareGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self._member_id,
                member_epoch=epoch,
                subscribed_topic_names=sorted(self._topics) if joining else None,
            )
            try:
                connection = self._cluster.coordinator(self._group, GROUP)
                response = connection.request(HEARTBEAT, request)
            except BrokerUnavailableError:
                self._cluster.forget_coordinator(self._group, GROUP)
                raise
            assert isinstance(response, share_group_heartbeat.ShareGroupHeartbeatResponse)
            code = response.error_code
            if code in COORDINATOR_MOVED:
                self._cluster.forget_coordinator(self._group, GROUP)
                raise TryAgain(code)
            if code in REJOIN and epoch >= 0:
                epoch, joining = 0, True
                self._assignment = frozenset()
                raise TryAgain(code)
            if is_retriable(code):
                raise TryAgain(code)
            if code != ErrorCode.NONE:
                raise RequestError.of(
                    code, f'joining group "{self._group}"', detail=response.error_message or ""
                )
            self._epoch = response.member_epoch
            # Until partitions are there, look often: somebody waits for the first job.
            known = response.heartbeat_interval_ms / 1000
            if response.assignment is not None:
                self._assignment = frozenset(
                    (each.topic_id, partition)
                    for each in response.assignment.topic_partitions
                    for partition in each.partitions
                )
            self._interval = known if self._assignment else min(known, 0.1)

        self._cluster.retry(ask, f'heartbeat of group "{self._group}"', 1.0 if epoch < 0 else None)


def _runs(given: dict[int, int]) -> list[tuple[int, int, list[int]]]:
    """Neighbouring offsets as (first, last, kinds); one kind stands for all if equal."""
    found: list[tuple[int, int, list[int]]] = []
    for offset in sorted(given):
        if found and found[-1][1] == offset - 1:
            first, _, kinds = found[-1]
            found[-1] = (first, offset, [*kinds, given[offset]])
        else:
            found.append((offset, offset, [given[offset]]))
    return [
        (first, last, kinds[:1] if len(set(kinds)) == 1 else kinds) for first, last, kinds in found
    ]
