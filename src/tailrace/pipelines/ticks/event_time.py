"""Event time in ticks: watermarks, stragglers, and how large a share they are.

What a tick's rows say about time (the largest event time of each partition, watermarks that
producers sent) goes into its row and counts from the next tick on. So time is data, and the
same for every operator of a tick.

A producer that knows better than a delay may send its own watermark in a record's headers,
`tailrace.watermark` (milliseconds since 1970, decimal) and `tailrace.producer` (its name): no
later record of it in that partition is older. While a partition has such producers, its
watermark is the smallest of theirs; one that is silent for `idle` is left out. A record
without a value carries a watermark alone.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.declare.time import PRODUCER_HEADER, WATERMARK_HEADER
from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.reading.reader import Records

SHARE_SECONDS = 300.0
_NEVER = -(1 << 52)  # milliseconds; long before any event

Newest = Mapping[str, tuple[int, int]]


@dataclass(slots=True)
class Timing:
    """What one task has learnt about time."""

    newest: dict[str, int] = field(default_factory=dict)  # by place, see `place`
    rows: dict[str, int] = field(default_factory=dict)  # rows with an event time, by topic
    late_rows: dict[str, int] = field(default_factory=dict)  # of those, too late
    late: list[DeadRecord] = field(default_factory=list)  # those to be put aside
    ahead: dict[str, int] = field(default_factory=dict)  # rows too far in the future, by topic

    def add(self, other: Timing) -> None:
        for topic, count in other.rows.items():
            self.rows[topic] = self.rows.get(topic, 0) + count
        for topic, count in other.late_rows.items():
            self.late_rows[topic] = self.late_rows.get(topic, 0) + count
        for topic, count in other.ahead.items():
            self.ahead[topic] = self.ahead.get(topic, 0) + count
        for place, at in other.newest.items():
            self.newest[place] = max(at, self.newest.get(place, at))
        self.late += other.late


def place(topic: str, partition: int, producer: str | None = None) -> str:
    """The name of a partition, or of a producer's watermark in it, in a tick row."""
    return f"{topic}/{partition}" if producer is None else f"{topic}/{partition}@{producer}"


def on_time(
    rows: pa.Table,
    indices: Sequence[int],
    records: Records,
    policy: EventTime,
    mark: int | None,
    timing: Timing,
    now: int,
) -> pa.Table:
    """The rows that are not too late, as the stream's policy says; `mark` is its watermark,
    `now` the time of the tick."""
    topic = records.topic
    times = pc.cast(rows[policy.column], pa.int64())  # microseconds; null is never late
    last = now + policy.ahead_ms
    newest = pc.max(times).as_py()
    if newest is not None and newest > last * 1000:
        possible = pc.less_equal(times, last * 1000)
        timing.ahead[topic] = timing.ahead.get(topic, 0) + pc.sum(pc.invert(possible)).as_py()
        newest = pc.max(times.filter(possible)).as_py()
    if newest is not None:
        _learn(timing, place(topic, records.partition), newest // 1000)
    _learn_producers(records, timing, last)
    timing.rows[topic] = timing.rows.get(topic, 0) + rows.num_rows
    limit = oldest(policy, mark)
    if limit is None:
        return rows
    late = pc.fill_null(pc.less(times, limit * 1000), False)
    count = pc.sum(late).as_py() or 0
    if not count:
        return rows
    assert mark is not None
    timing.late_rows[topic] = timing.late_rows.get(topic, 0) + count
    if policy.late == "side":
        for index, is_late, at in zip(indices, late.to_pylist(), times.to_pylist(), strict=True):
            if is_late:
                reason = f"{mark - at // 1000} ms behind the watermark of {topic}"
                timing.late.append(
                    DeadRecord(
                        topic, records.partition, records.offsets[index],
                        reason, records.keys[index], records.values[index],
                    )
                )  # fmt: skip
    return rows.filter(pc.invert(late))


def oldest(policy: EventTime, mark: int | None) -> int | None:
    """The event time (milliseconds) before which a row is too late; None: none is."""
    if mark is None:
        return None
    if policy.late != "correct":
        return mark - policy.lateness_ms
    return None if policy.keep_ms is None else mark - policy.keep_ms


def horizons(
    times: Mapping[str, EventTime], marks: Mapping[str, int]
) -> dict[str, tuple[str, int]]:
    """By topic, its event-time column and the time before which nothing is taken any more:
    for streams whose windows are forgotten."""
    return {
        topic: (policy.column, marks[topic] - policy.keep_ms if topic in marks else _NEVER)
        for topic, policy in times.items()
        if policy.keep_ms is not None
    }


def renewed(
    before: Newest, seen: Mapping[str, int], times: Mapping[str, EventTime], now: int
) -> dict[str, tuple[int, int]]:
    """What is known of every partition and producer, with when it was last heard of."""
    found = dict(before)
    for where, at in seen.items():
        found[where] = (max(at, before.get(where, (at, 0))[0]), now)
    longest = max((policy.idle_ms for policy in times.values()), default=0)
    # A producer that vanished is not remembered for ever.
    return {
        where: (at, seen_at)
        for where, (at, seen_at) in found.items()
        if "@" not in where or now - seen_at <= 100 * longest
    }


def watermarks(
    times: Mapping[str, EventTime], newest: Newest, before: Mapping[str, int], now: int
) -> dict[str, int]:
    """The watermark of every stream for the next tick; none goes back."""
    found = dict(before)
    for topic, policy in times.items():
        partitions: dict[str, int] = {}
        promised: dict[str, list[int]] = {}
        for where, (at, seen_at) in newest.items():
            partition, _, producer = where.partition("@")
            if partition.rpartition("/")[0] != topic or now - seen_at > policy.idle_ms:
                continue
            if producer or "@" in where:
                promised.setdefault(partition, []).append(at)
            else:
                partitions[partition] = at - policy.delay_ms
        for partition, marks in promised.items():
            partitions[partition] = min(marks)
        if partitions:
            found[topic] = max(min(partitions.values()), found.get(topic, _NEVER))
    return found


def _learn(timing: Timing, where: str, at: int) -> None:
    timing.newest[where] = max(at, timing.newest.get(where, at))


def _learn_producers(records: Records, timing: Timing, last: int) -> None:
    for headers in records.headers:
        if not headers:
            continue
        found = dict(headers)
        sent = found.get(WATERMARK_HEADER)
        if sent is not None and sent.lstrip(b"-").isdigit() and int(sent) <= last:
            producer = (found.get(PRODUCER_HEADER) or b"").decode(errors="replace")
            _learn(timing, place(records.topic, records.partition, producer), int(sent))


@dataclass(slots=True)
class LateShare:
    """Which share of a stream's rows of the last five minutes came too late."""

    _recent: collections.deque[tuple[float, int, int]] = field(default_factory=collections.deque)

    def add(self, at: float, rows: int, late: int) -> float:
        """Take in a tick's rows at a monotonic time; the share now."""
        self._recent.append((at, rows, late))
        while self._recent[0][0] < at - SHARE_SECONDS:
            self._recent.popleft()
        total = sum(rows for _, rows, _ in self._recent)
        return sum(late for _, _, late in self._recent) / total if total else 0.0
