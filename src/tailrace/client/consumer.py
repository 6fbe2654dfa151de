"""A consumer: a group member, or a reader of given partitions, never both.

    with log.consumer(group="mail", topics=["orders"]) as consumer:
        for record in consumer:
            send_mail(record.value)
            consumer.commit()

What is committed when. `commit()` and `commit_async()` store the position behind the
last record *handed out*. Auto-commit (on by default, every five seconds, when partitions
are taken away, and on close) stores only what is *finished*: with `poll`, the records of
earlier polls; with iteration, the records before the current one. A crash or an
exception therefore repeats records and never skips one.

One thread at a time; a second one gets ConcurrentUseError. Only `wakeup()` may be called
from anywhere: it makes a waiting `poll` raise WakeupError.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Protocol

from tailrace.client.deserializers import DecodeRecord
from tailrace.client.errors import (
    ClientClosedError,
    ClientError,
    CommitFailedError,
    ConcurrentUseError,
    WakeupError,
)
from tailrace.client.record import LogRecord, Place
from tailrace.client.source import EARLIEST, LATEST, ConsumerSettings, Source
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError

SLICE_SECONDS = 0.05  # how long a wakeup may take to be noticed

Seconds = float | timedelta
Offsets = Mapping[Place, int]
CommitDone = Callable[[Offsets, ClientError | None], None]


class RebalanceListener(Protocol):
    """Told, on the polling thread, when partitions come and go."""

    def on_revoked(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        """Still ours: finish and commit."""

    def on_assigned(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        """Ours now: `consumer.seek` to offsets kept elsewhere."""

    def on_lost(self, consumer: Consumer, partitions: Sequence[Place]) -> None:
        """Not ours any more: forget, do not commit."""


class Consumer:
    """See the module. Made by `log.consumer(…)`."""

    def __init__(
        self,
        source: Source,
        settings: ConsumerSettings,
        *,
        group: str | None,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        partitions: Iterable[Place] | Mapping[Place, int | None] | None = None,
        listener: RebalanceListener | None = None,
        decode: DecodeRecord | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        subscribing = bool(topics) or pattern is not None
        if subscribing and partitions is not None:
            raise UsageError("a consumer subscribes to topics or is given partitions, not both")
        if bool(topics) and pattern is not None:
            raise UsageError("a consumer takes topics or a pattern, not both")
        if subscribing and group is None:
            raise UsageError("subscribing needs a group", hint="give group=… or partitions=…")
        if isinstance(topics, str):
            raise UsageError("topics is a list of names", hint=f'topics=["{topics}"]')
        self.group = group
        self.settings = settings
        self._source = source
        self._decode = decode
        self._clock = clock
        self._listeners: list[RebalanceListener] = [] if listener is None else [listener]
        self._ready: deque[LogRecord] = deque()
        self._paused: set[Place] = set()
        self._handed_out: dict[Place, int] = {}
        self._finished: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self._committed_at = clock.monotonic()
        self._commits = 0
        self._look_at = 0.0  # when the source must be asked again, records waiting or not
        self._wakeup = threading.Event()
        self._user: int | None = None
        self._depth = 0
        self._guard = threading.Lock()
        self._closed = False
        if subscribing:
            source.subscribe(list(topics), pattern, self)
        elif partitions is not None:
            self._assign(partitions)

    # Reading -------------------------------------------------------------------

    def poll(self, timeout: Seconds = 1.0) -> list[LogRecord]:
        """At most `max_poll_records` records; empty when none came in time.

        Raises WakeupError, the log's final errors (OffsetOutOfRangeError with
        `auto_offset_reset="none"`, NotAllowedError, …), and DeserializationError for a
        record that cannot be read, again and again until `seek` passes it by.
        """
        with self._using():
            self._finished.update(self._handed_out)
            self._auto_commit()
            self._wait(_seconds(timeout))
            batch = self._decoded(self._take(self.settings.max_poll_records))
            for record in batch:
                self._handed_out[record[0], record[1]] = record[2] + 1
            return batch

    def records(self, timeout: Seconds | None = None) -> Iterator[LogRecord]:
        """One record after another; ends after `timeout` without one (None: never)."""
        me = threading.get_ident()
        while True:
            ready = self._ready
            if (
                ready
                and not self._paused
                and self._user in (None, me)
                and not self._wakeup.is_set()
                and self._clock.monotonic() < self._look_at
            ):
                record = self._decoded([ready.popleft()])[0]
            else:
                with self._using():
                    self._auto_commit()
                    self._wait(None if timeout is None else _seconds(timeout))
                    batch = self._decoded(self._take(1))
                if not batch:
                    return
                record = batch[0]
            place = (record.topic, record.partition)
            following = record.offset + 1
            self._handed_out[place] = following
            yield record
            if self._handed_out.get(place) == following:  # not sought away, not revoked
                self._finished[place] = following

    def __iter__(self) -> Iterator[LogRecord]:
        return self.records()

    def wakeup(self) -> None:
        """Make the `poll` that waits, or the next one, raise WakeupError. From any thread."""
        self._wakeup.set()

    # Offsets -------------------------------------------------------------------

    def commit(self, offsets: Offsets | None = None) -> None:
        """Store offsets and wait: those given, else behind everything handed out.

        Raises CommitFailedError when the group has moved on.
        """
        with self._using():
            self._commit(dict(self._handed_out if offsets is None else offsets))

    def commit_async(self, offsets: Offsets | None = None, callback: CommitDone | None = None) -> None:  # fmt: skip
        """Store offsets without waiting; `callback(offsets, error)` runs inside a later
        `poll`. A failed try is repeated only while no newer commit is on its way."""
        with self._using():
            given = dict(self._handed_out if offsets is None else offsets)
            self._commits += 1
            number = self._commits

            def done(error: ClientError | None) -> None:
                if error is None:
                    self._committed.update(given)
                elif number == self._commits and not isinstance(error, CommitFailedError):
                    self._source.commit_async(given, finally_done)
                    return
                finally_done(error)

            def finally_done(error: ClientError | None) -> None:
                if callback is not None:
                    callback(given, error)

            self._source.commit_async(given, done)

    def handed_out(self) -> dict[Place, int]:
        """The position behind the last record handed out, by partition."""
        return dict(self._handed_out)

    def committed(self, partitions: Iterable[Place] | None = None) -> dict[Place, int | None]:
        """The group's stored offsets; None where there is none."""
        with self._using():
            return self._source.committed(self.assignment() if partitions is None else partitions)

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record to be handed out."""
        with self._using():
            place = (topic, partition)
            for record in self._ready:
                if record.place == place:
                    return record.offset
            position = self._source.position(place)
            if position is not None:
                return max(position, self._handed_out.get(place, 0))
            stored = self._source.committed([place])[place] if self.group is not None else None
            if stored is not None:
                return stored
            first, end = self._source.bounds(place)
            return end if self.settings.auto_offset_reset == "latest" else first

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on from an offset; also inside `on_assigned`."""
        with self._using():
            place = (topic, partition)
            self._forget([place])
            if offset >= 0:
                self._handed_out[place] = offset
                self._finished[place] = offset
            self._source.seek(place, offset)

    def seek_to_beginning(self, partitions: Iterable[Place] | None = None) -> None:
        for topic, partition in partitions or sorted(self.assignment()):
            self.seek(topic, partition, self.bounds(topic, partition)[0])

    def seek_to_end(self, partitions: Iterable[Place] | None = None) -> None:
        for topic, partition in partitions or sorted(self.assignment()):
            self.seek(topic, partition, self.bounds(topic, partition)[1])

    def seek_to_time(self, time: datetime | int, partitions: Iterable[Place] | None = None) -> None:
        """Go on from the first record at or after a time (milliseconds, or aware); the
        end where there is none."""
        timestamp = int(time.timestamp() * 1000) if isinstance(time, datetime) else time
        for topic, partition in partitions or sorted(self.assignment()):
            with self._using():
                offset = self._source.offset_for_time((topic, partition), timestamp)
            if offset is None:
                offset = self.bounds(topic, partition)[1]
            self.seek(topic, partition, offset)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """First offset kept and end of a partition."""
        with self._using():
            return self._source.bounds((topic, partition))

    # Partitions ----------------------------------------------------------------

    def assignment(self) -> set[Place]:
        """The partitions this consumer reads now."""
        with self._using():
            return self._source.assignment()

    def pause(self, *partitions: Place) -> None:
        """Hand out nothing from these (all) partitions, without leaving the group."""
        with self._using():
            places = set(partitions) or self._source.assignment()
            self._paused |= places
            self._source.pause(places)

    def resume(self, *partitions: Place) -> None:
        with self._using():
            places = set(partitions) or set(self._paused)
            self._paused -= places
            self._source.resume(places)

    def paused(self) -> set[Place]:
        return set(self._paused)

    def add_listener(self, listener: RebalanceListener) -> None:
        """One more to be told of rebalances."""
        self._listeners.append(listener)

    def group_member(self) -> tuple[int, str, str | None]:
        """Generation, member id, instance id: with them a transaction's offsets are
        refused once this member has lost its partitions."""
        with self._using():
            return self._source.group_member()

    # The end -------------------------------------------------------------------

    def close(self) -> None:
        """Commit what is finished (auto-commit), leave the group at once, let go."""
        if self._closed:
            return
        with self._using():
            try:
                owned = sorted(self._source.assignment())
                if self.group is not None and owned:
                    self.revoked(owned)
            finally:
                self._closed = True
                self._ready.clear()
                self._source.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._finished.update(self._handed_out)
        self.close()

    # Rebalances, called by the source ------------------------------------------

    def assigned(self, places: Sequence[Place]) -> None:
        self._forget(places)
        for place in places:
            self._committed.pop(place, None)
        for listener in self._listeners:
            listener.on_assigned(self, places)

    def revoked(self, places: Sequence[Place]) -> None:
        if self._closed:
            return
        for listener in self._listeners:
            listener.on_revoked(self, places)
        if self.settings.enable_auto_commit:
            self._commit_finished(places)
        self._forget(places)

    def lost(self, places: Sequence[Place]) -> None:
        self._forget(places)
        for listener in self._listeners:
            listener.on_lost(self, places)

    # Inside --------------------------------------------------------------------

    def _assign(self, partitions: Iterable[Place] | Mapping[Place, int | None]) -> None:
        given = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions)
        reset = LATEST if self.settings.auto_offset_reset == "latest" else EARLIEST
        unknown = [place for place, offset in given.items() if offset is None]
        stored = self._source.committed(unknown) if self.group is not None and unknown else {}
        positions: dict[Place, int] = {}
        for place, offset in given.items():
            start = stored.get(place) if offset is None else offset
            positions[place] = reset if start is None else start
        self._source.assign(positions)

    def _wait(self, timeout: float | None) -> None:
        """Until something can be handed out, or the time is up."""
        until = None if timeout is None else self._clock.monotonic() + timeout
        first = True
        while True:
            if self._wakeup.is_set():
                self._wakeup.clear()
                raise WakeupError("the consumer was woken up")
            if self._can_hand_out():
                if first and self._clock.monotonic() >= self._look_at:
                    self._receive(0)  # rebalances and call-backs must not wait for the buffer
                if self._can_hand_out():
                    return
            left = SLICE_SECONDS
            if until is not None:
                left = min(left, until - self._clock.monotonic())
                if left <= 0 and not first:
                    return
            first = False
            self._receive(max(left, 0))

    def _can_hand_out(self) -> bool:
        if not self._paused:
            return bool(self._ready)
        return any(record.place not in self._paused for record in self._ready)

    def _receive(self, timeout: float) -> None:
        records = self._source.fetch(timeout)  # may take partitions, and their records, away
        self._ready.extend(records)
        self._look_at = self._clock.monotonic() + SLICE_SECONDS

    def _take(self, most: int) -> list[LogRecord]:
        if not self._paused:
            return [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        taken: list[LogRecord] = []
        kept: deque[LogRecord] = deque()
        for record in self._ready:
            if len(taken) < most and record.place not in self._paused:
                taken.append(record)
            else:
                kept.append(record)
        self._ready = kept
        return taken

    def _decoded(self, taken: list[LogRecord]) -> list[LogRecord]:
        """The records as the program wants them, up to one that cannot be read; that one
        goes back, and is told once it is the first."""
        if self._decode is None:
            return taken
        decoded: list[LogRecord] = []
        for record in taken:
            try:
                decoded.append(self._decode(record))
            except ClientError:
                self._ready.extendleft(reversed(taken[len(decoded) :]))
                if decoded:
                    break
                raise
        return decoded

    def _forget(self, places: Iterable[Place]) -> None:
        gone = set(places)
        self._ready = deque(record for record in self._ready if record.place not in gone)
        for place in gone:
            self._handed_out.pop(place, None)
            self._finished.pop(place, None)

    def _commit(self, offsets: dict[Place, int]) -> None:
        if self.group is None:
            raise UsageError("a consumer without a group has no offsets to commit")
        self._commits += 1
        if offsets:
            self._source.commit(offsets)
            self._committed.update(offsets)
        self._committed_at = self._clock.monotonic()

    def _commit_finished(self, places: Iterable[Place]) -> None:
        due = {
            place: self._finished[place]
            for place in places
            if place in self._finished and self._finished[place] != self._committed.get(place)
        }
        if due:
            try:
                self._commit(due)
            except CommitFailedError:
                pass  # the partitions have a new owner, who reads from the last commit

    def _auto_commit(self) -> None:
        settings = self.settings
        if self.group is None or not settings.enable_auto_commit:
            return
        now = self._clock.monotonic()
        if now - self._committed_at >= settings.auto_commit_interval_ms / 1000:
            self._committed_at = now
            self._commit_finished(self._source.assignment())

    @contextmanager
    def _using(self) -> Iterator[None]:
        me = threading.get_ident()
        with self._guard:
            if self._closed:
                raise ClientClosedError("the consumer is closed")
            if self._user not in (None, me):
                raise ConcurrentUseError(
                    "this consumer is in use by another thread",
                    hint="one consumer a thread; only wakeup() may be called from outside",
                )
            self._user = me
            self._depth += 1
        try:
            yield
        finally:
            with self._guard:
                self._depth -= 1
                if self._depth == 0:
                    self._user = None


def _seconds(time: Seconds) -> float:
    return time.total_seconds() if isinstance(time, timedelta) else float(time)
