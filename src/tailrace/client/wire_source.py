"""A consumer's source on our own wire: used for the log in this process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tailrace.client.admin import Admin
from tailrace.client.cluster import Cluster, TryAgain
from tailrace.client.committed import visible_records
from tailrace.client.errors import (
    ClientError,
    OffsetOutOfRangeError,
    RequestError,
    UnknownTopicError,
    UnreadableBatchError,
)
from tailrace.client.fetcher import FETCH, MOVED
from tailrace.client.local_group import LocalGroups, Member
from tailrace.client.offsets import store_offsets, stored_offsets
from tailrace.client.record import LogRecord, Place
from tailrace.client.source import EARLIEST, LATEST, ConsumerSettings, Done, Rebalance
from tailrace.clock import SYSTEM, Clock
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

METADATA_SECONDS = 1.0  # how soon new topics and partitions are noticed


class WireSource:
    """`Source` on a `Cluster` and the groups of this process."""

    def __init__(
        self,
        cluster: Cluster,
        groups: LocalGroups,
        group: str | None,
        settings: ConsumerSettings,
        clock: Clock = SYSTEM,
    ) -> None:
        self._cluster = cluster
        self._admin = Admin.over(cluster)
        self._groups = groups
        self._group = group
        self._settings = settings
        self._clock = clock
        self._rebalance: Rebalance | None = None
        self._member: Member | None = None
        self._topics: list[str] = []
        self._pattern: re.Pattern[str] | None = None
        self._wanted: set[Place] = set()
        self._looked_at = -METADATA_SECONDS
        self._assigned: set[Place] = set()
        self._positions: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._answers: list[tuple[Done, ClientError | None]] = []
        self._turn = 0

    # Partitions ----------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], pattern: str | None, rebalance: Rebalance) -> None:
        assert self._group is not None
        self._rebalance = rebalance
        self._topics = list(topics)
        self._pattern = None if pattern is None else re.compile(pattern)
        self._member = self._groups.join(self._group, self._settings.max_poll_interval_ms / 1000)

    def assign(self, positions: Mapping[Place, int]) -> None:
        self._assigned = set(positions)
        self._positions = {}
        for place, offset in positions.items():
            self._positions[place] = self._resolve(place, offset)

    def assignment(self) -> set[Place]:
        return set(self._assigned)

    def partitions(self, topic: str) -> list[Place]:
        return [(topic, index) for index in range(len(self._cluster.topic(topic).leaders))]

    def _look(self) -> None:
        """Which partitions the subscription means now."""
        now = self._clock.monotonic()
        if now - self._looked_at < METADATA_SECONDS:
            return
        self._looked_at = now
        answers = self._cluster.refresh(None if self._pattern is not None else self._topics)
        wanted: set[Place] = set()
        for topic in answers:
            name = topic.name or ""
            if topic.error_code != ErrorCode.NONE:
                continue
            if self._pattern is not None and (topic.is_internal or not self._pattern.match(name)):
                continue
            wanted.update((name, each.partition_index) for each in topic.partitions)
        self._wanted = wanted

    def _follow_group(self) -> None:
        """Let go of and take partitions as the group wants it now."""
        if self._member is None or self._rebalance is None or self._group is None:
            return
        self._look()
        lost, excess = self._groups.poll(self._group, self._member, self._wanted)
        if lost:
            gone = sorted(self._assigned)
            self._drop(gone)
            self._rebalance.lost(gone)
        elif excess:
            self._rebalance.revoked(sorted(excess))
            self._drop(excess)
            self._groups.release(self._member, excess)
        new = self._groups.acquire(self._group, self._member)
        if new:
            self._assigned |= new
            self._rebalance.assigned(sorted(new))
            missing = [place for place in sorted(new) if place not in self._positions]
            stored = self.committed(missing)
            for place in missing:
                offset = stored[place]
                self._positions[place] = self._reset(place) if offset is None else offset

    def _drop(self, places: Iterable[Place]) -> None:
        for place in list(places):
            self._assigned.discard(place)
            self._positions.pop(place, None)
            self._paused.discard(place)

    def _resolve(self, place: Place, offset: int) -> int:
        if offset == EARLIEST:
            return self.bounds(place)[0]
        if offset == LATEST:
            return self.bounds(place)[1]
        return offset

    def _reset(self, place: Place) -> int:
        """Where to read without a stored offset, or after one that is gone."""
        match self._settings.auto_offset_reset:
            case "earliest":
                return self.bounds(place)[0]
            case "latest":
                return self.bounds(place)[1]
            case _:
                raise OffsetOutOfRangeError(
                    f'no valid offset to read "{place[0]}" partition {place[1]} from',
                    hint='seek, or let auto_offset_reset be "earliest" or "latest"',
                )

    # Records -------------------------------------------------------------------

    def fetch(self, timeout: float) -> list[LogRecord]:
        answers, self._answers = self._answers, []
        for done, error in answers:
            done(error)
        self._follow_group()
        places = sorted(self._assigned - self._paused)
        if not places:
            if timeout:
                self._clock.sleep(timeout)
            return []
        # Partitions take turns at the front: a response is filled in request order.
        self._turn = (self._turn + 1) % len(places)
        places = places[self._turn :] + places[: self._turn]
        return self._cluster.retry(lambda: self._fetch(places, timeout), "reading")

    def _fetch(self, places: list[Place], timeout: float) -> list[LogRecord]:
        settings = self._settings
        committed = settings.isolation_level == "read_committed"
        by_leader: dict[int, dict[str, list[FetchPartition]]] = {}
        for place in places:
            if place not in self._positions:
                continue
            try:
                leader = self._cluster.leader(*place)
            except UnknownTopicError:
                continue  # deleted under us; the subscription will notice
            by_leader.setdefault(leader, {}).setdefault(place[0], []).append(
                FetchPartition(
                    partition=place[1],
                    fetch_offset=self._positions[place],
                    partition_max_bytes=settings.max_partition_fetch_bytes,
                )
            )
        found: list[LogRecord] = []
        wait_ms = int(min(timeout * 1000, settings.fetch_max_wait_ms))
        for leader, topics in by_leader.items():
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=0 if found or len(by_leader) > 1 else wait_ms,
                min_bytes=settings.fetch_min_bytes,
                max_bytes=52_428_800,
                isolation_level=int(committed),
                session_id=0,
                session_epoch=-1,
                topics=[FetchTopic(topic=name, partitions=each) for name, each in topics.items()],
            )
            response = self._cluster.broker(leader).request(FETCH, request, 12)
            assert isinstance(response, FetchResponse)
            if response.error_code != ErrorCode.NONE:
                raise RequestError.of(response.error_code, "reading")
            for topic in response.responses:
                for answer in topic.partitions:
                    place = (topic.topic, answer.partition_index)
                    if not self._usable(place, answer.error_code):
                        continue
                    aborted = [
                        (each.producer_id, each.first_offset)
                        for each in answer.aborted_transactions or ()
                    ]
                    try:
                        records, following = visible_records(
                            answer.records or b"",
                            self._positions[place],
                            None,
                            aborted if committed else None,
                            place=place,
                        )
                    except UnreadableBatchError:
                        if found:
                            continue  # told at the next call; what was found is not lost
                        raise
                    self._positions[place] = following
                    found.extend(LogRecord._make((*place, *record)) for record in records)
        return found

    def _usable(self, place: Place, error_code: int) -> bool:
        if error_code == ErrorCode.NONE:
            return place in self._positions
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[place] = self._reset(place)
            return False
        if error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._cluster.forget(place[0])
            return False
        if error_code in MOVED:
            self._cluster.forget(place[0])
            raise TryAgain(error_code)
        raise RequestError.of(error_code, f'reading "{place[0]}" partition {place[1]}')

    def position(self, place: Place) -> int | None:
        return self._positions.get(place)

    def seek(self, place: Place, offset: int) -> None:
        if place not in self._assigned:
            raise RequestError.of(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'"{place[0]}" partition {place[1]} is not assigned'
            )  # fmt: skip
        self._positions[place] = self._resolve(place, offset)

    def pause(self, places: Iterable[Place]) -> None:
        self._paused |= set(places)

    def resume(self, places: Iterable[Place]) -> None:
        self._paused -= set(places)

    # Offsets -------------------------------------------------------------------

    def commit(self, offsets: Mapping[Place, int]) -> None:
        assert self._group is not None
        store_offsets(self._cluster, self._group, offsets)

    def commit_async(self, offsets: Mapping[Place, int], done: Done) -> None:
        error: ClientError | None = None
        try:
            self.commit(offsets)
        except ClientError as failed:
            error = failed
        self._answers.append((done, error))

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]:
        wanted = list(places)
        if not wanted:
            return {}
        if self._group is None:
            return dict.fromkeys(wanted)
        return stored_offsets(self._cluster, self._group, wanted)

    def bounds(self, place: Place) -> tuple[int, int]:
        first = self._admin.start_offsets([place])[place]
        return first, self._admin.end_offsets([place], self._settings.isolation_level)[place]

    def offset_for_time(self, place: Place, timestamp: int) -> int | None:
        found = self._admin.offsets_for_times({place: timestamp})[place].offset
        return found if found >= 0 else None

    def group_member(self) -> tuple[int, str, str | None]:
        # Groups of one process have no member at the coordinator.
        return -1, "", None

    def close(self) -> None:
        answers, self._answers = self._answers, []
        for done, error in answers:
            done(error)
        if self._member is not None and self._group is not None:
            self._groups.leave(self._group, self._member)
        self._assigned.clear()
        self._cluster.close()
