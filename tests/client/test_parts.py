"""The small structures inside the client, each against a naive twin."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tailrace.client.batches import Pending
from tailrace.client.committed import visible_records
from tailrace.client.delivery import DeliveryFuture
from tailrace.client.errors import RequestTimeoutError
from tailrace.client.local_group import LocalGroups, Member
from tailrace.client.pool import Progress
from tailrace.client.record import Delivery, Place
from tailrace.records.batch import (
    Record,
    check_batch,
    decode_records,
    encode_batch,
    encode_marker,
)
from tailrace.records.columns import RecordColumns


@given(st.lists(st.integers(1, 3), max_size=30), st.randoms())
def test_only_the_offset_below_the_lowest_unfinished_is_committable(
    gaps: list[int], chance: object
) -> None:
    offsets = [sum(gaps[: number + 1]) for number in range(len(gaps))]
    order = list(offsets)
    chance.shuffle(order)  # type: ignore[attr-defined]
    progress = Progress()
    for offset in offsets:
        progress.start(offset)
    finished: set[int] = set()
    for offset in order:
        progress.finish(offset)
        finished.add(offset)
        below = []
        for each in offsets:
            if each not in finished:
                break
            below.append(each)
        assert progress.committable == (below[-1] + 1 if below else None)
        assert progress.unfinished == len(offsets) - len(below)


@dataclass
class Written:
    """What a naive reader knows of one producer's open transaction."""

    records: list[Record] = field(default_factory=list)
    first: int | None = None


@given(st.data())
def test_aborted_records_and_markers_are_hidden(data: st.DataObject) -> None:
    log = bytearray()
    offset = 0
    aborted: list[tuple[int, int]] = []
    expected: dict[int, bytes] = {}
    open_transactions: dict[int, Written] = {}
    for _ in range(data.draw(st.integers(0, 25))):
        producer = data.draw(st.integers(0, 3))
        current = open_transactions.get(producer)
        if current is not None and data.draw(st.booleans()):
            commit = data.draw(st.booleans())
            log += encode_marker(commit, producer, 0, 0, base_offset=offset)
            offset += 1
            if commit:
                expected.update({r.offset: r.value or b"" for r in current.records})
            else:
                aborted.append((producer, current.first or 0))
            del open_transactions[producer]
            continue
        count = data.draw(st.integers(1, 3))
        values = [Record(offset + n, 0, None, b"%d" % (offset + n)) for n in range(count)]
        transactional = producer > 0
        log += encode_batch(
            values,
            base_offset=offset,
            producer_id=producer if transactional else -1,
            transactional=transactional,
        )
        if transactional:
            current = open_transactions.setdefault(producer, Written())
            current.first = offset if current.first is None else current.first
            current.records += values
        else:
            expected.update({r.offset: r.value or b"" for r in values})
        offset += count
    for producer in list(open_transactions):  # a stable end has no open transactions
        log += encode_marker(True, producer, 0, 0, base_offset=offset)
        offset += 1
        expected.update({r.offset: r.value or b"" for r in open_transactions[producer].records})
    start = data.draw(st.integers(0, offset))
    end = data.draw(st.integers(start, offset))
    # The log names a transaction only where it touches what was asked for.
    records, following = visible_records(bytes(log), start, end, aborted)
    assert {r.offset: r.value for r in records} == {
        at: value for at, value in expected.items() if start <= at < end
    }
    assert following >= end or following == offset
    everything, _ = visible_records(bytes(log), 0, None, None)
    assert len(everything) >= len(expected)


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=400)), min_size=1, max_size=40),
    st.integers(60, 2000),
)  # fmt: skip
def test_pending_records_leave_in_order_and_within_the_limit(
    pairs: list[tuple[bytes | None, bytes | None]], limit: int
) -> None:
    pending = Pending()
    for number, (key, value) in enumerate(pairs):
        if number % 5 == 4:
            pending.extend_columns(
                RecordColumns(pa.array([key], pa.binary()), pa.array([value], pa.binary()), number)
            )
            continue
        pending.add(key, value, number, (("n", b"%d" % number),) if number % 3 == 0 else ())
    out: list[Record] = []
    sequence = 0
    while len(pending):
        count = pending.take(limit, 15)
        batch = pending.encode(
            compression="none", producer_id=7, producer_epoch=0,
            base_sequence=sequence, transactional=False,
        )  # fmt: skip
        header = check_batch(batch)
        assert header.record_count == count
        assert count == 1 or len(batch) - 61 <= limit
        out += decode_records(batch)
        assert pending.done() == count
        sequence += count
    assert pending.size_bytes == 0
    assert [(r.key, r.value, r.timestamp) for r in out] == [
        (key, value, number) for number, (key, value) in enumerate(pairs)
    ]


class FakeTime:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class GroupsMachine(RuleBasedStateMachine):
    """Members come, go, sleep and poll; no partition ever has two owners."""

    def __init__(self) -> None:
        super().__init__()
        self.time = FakeTime()
        self.groups = LocalGroups(self.time)
        self.places: set[Place] = {("t", number) for number in range(5)}
        self.members: dict[str, Member] = {}
        self.believed: dict[str, set[Place]] = {}

    @precondition(lambda self: len(self.members) < 4)
    @rule()
    def join(self) -> None:
        member = self.groups.join("g", 10.0)
        self.members[member.name] = member
        self.believed[member.name] = set()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.members)))
        self.groups.leave("g", self.members.pop(name))
        del self.believed[name]

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        self.poll_one(data.draw(st.sampled_from(sorted(self.members))))

    @rule(seconds=st.sampled_from([0.1, 6.0]))
    def wait(self, seconds: float) -> None:
        self.time.now += seconds

    @rule()
    def everybody_polls_until_all_is_shared_out(self) -> None:
        for _ in range(3):
            for name in sorted(self.members):
                self.poll_one(name)
        if self.members:
            owned = [place for member in self.members.values() for place in member.owned]
            assert sorted(owned) == sorted(self.places)
            sizes = [len(member.owned) for member in self.members.values()]
            assert max(sizes) - min(sizes) <= 1

    def poll_one(self, name: str) -> None:
        member = self.members[name]
        lost, excess = self.groups.poll("g", member, self.places)
        if lost:
            self.believed[name] = set()
        else:
            self.groups.release(member, excess)
            self.believed[name] -= excess
        self.believed[name] |= self.groups.acquire("g", member)

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [place for member in self.members.values() for place in member.owned]
        assert len(owned) == len(set(owned))


TestLocalGroups = GroupsMachine.TestCase


class Counted:
    """Counts what futures tell."""

    def __init__(self) -> None:
        self.counts = [0, 0]

    def written(self, started: float | None) -> None:
        self.counts[0] += 1

    def failed(self) -> None:
        self.counts[1] += 1


def test_a_delivery_future_is_a_future_whoever_comes_first() -> None:
    counted = Counted()
    early = DeliveryFuture(counted)
    called: list[object] = []
    early.add_done_callback(called.append)
    assert not early.cancel()
    with pytest.raises(TimeoutError):
        early.result(0)
    timer = threading.Timer(0.05, early.resolve, (Delivery("t", 0, 1), None))
    timer.start()
    assert early.result(60) == (0, 1)
    timer.join()
    assert called == [early]
    late = DeliveryFuture(counted)
    late.resolve(None, RequestTimeoutError("too late"))
    assert isinstance(late.exception(0), RequestTimeoutError)
    with pytest.raises(RequestTimeoutError):
        late.result(0)
    assert wait([early, late], 0).done == {early, late}
    assert counted.counts == [1, 1]


def test_futures_and_waiters_never_miss_each_other() -> None:
    for _ in range(300):
        future = DeliveryFuture(Counted())
        thread = threading.Thread(target=future.resolve, args=(Delivery("t", 0, 1), None))
        thread.start()
        assert future.result(60) == (0, 1)
        thread.join()
