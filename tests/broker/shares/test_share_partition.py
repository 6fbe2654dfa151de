"""The state of a share-partition against a naive model: one row an offset."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tailrace.broker.shares.partition import (
    ACCEPT,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    FINAL,
    REJECT,
    RELEASE,
    RENEW,
    Run,
    SharePartition,
)
from tailrace.wire.errors import ErrorCode

MEMBERS = ("a", "b", "c")
LOCK = 10.0
MOST = 3
ROOM = 12


@dataclass
class Row:
    """What the naive model keeps of an offset."""

    state: str = "free"  # free, held, done
    member: str = ""
    deliveries: int = 0
    until: float = 0.0


class SharePartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.share = self.make(0)
        self.log: list[tuple[int, int, bool]] = []
        self.end = 0
        self.rows: dict[int, Row] = {}

    def make(self, start: int) -> SharePartition:
        return SharePartition(start, lock_seconds=LOCK, most_deliveries=MOST, most_in_flight=ROOM)

    @rule(size=st.integers(1, 4), data=st.booleans(), gap=st.integers(0, 2))
    def append(self, size: int, data: bool, gap: int) -> None:
        """A batch of data, or a marker, perhaps behind offsets that were compacted away."""
        self.end += gap
        size = size if data else 1
        self.log.append((self.end, self.end + size - 1, data))
        if data:
            for offset in range(self.end, self.end + size):
                self.rows[offset] = Row()
        self.end += size

    @rule(member=st.sampled_from(MEMBERS), most=st.integers(1, 6))
    def acquire(self, member: str, most: int) -> None:
        start = self.share.next_offset()
        window = [batch for batch in self.log if batch[1] >= start]
        given = self.share.acquire(member, window, most, self.now)
        offsets = [o for run in given for o in range(run.first, run.last + 1)]
        assert len(offsets) <= most
        assert offsets == sorted(set(offsets))
        for run in given:
            for offset in range(run.first, run.last + 1):
                row = self.rows[offset]
                assert row.state == "free", f"{offset} is {row.state}"
                row.state, row.member, row.until = "held", member, self.now + LOCK
                row.deliveries += 1
                assert row.deliveries == run.delivery_count <= MOST
        # the lowest free record is never passed over, unless there is no room
        free = [o for o, row in sorted(self.rows.items()) if row.state == "free"]
        if free and len(offsets) < most:
            assert free[0] - self.share.start >= ROOM or self.share.full

    @rule(
        member=st.sampled_from(MEMBERS),
        first=st.integers(0, 30),
        count=st.integers(1, 4),
        kind=st.sampled_from([0, ACCEPT, RELEASE, REJECT, RENEW]),
    )
    def acknowledge(self, member: str, first: int, count: int, kind: int) -> None:
        # What is done for already is passed over.
        offsets = range(max(first, self.share.start), first + count)
        mine = first + count <= self.share.end and all(
            offset in self.rows
            and self.rows[offset].state == "held"
            and self.rows[offset].member == member
            for offset in offsets
        )
        code = self.share.acknowledge(member, first, first + count - 1, [kind], self.now)
        assert (code is ErrorCode.NONE) == mine
        if mine:
            for offset in offsets:
                row = self.rows[offset]
                if kind == RENEW:
                    row.until = self.now + LOCK
                elif kind == RELEASE:
                    self.give_back(row)
                else:
                    row.state = "done"

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        self.share.release_member(member)
        for row in self.rows.values():
            if row.state == "held" and row.member == member:
                self.give_back(row)

    @rule(seconds=st.sampled_from([1.0, 6.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.share.expire(self.now)
        for row in self.rows.values():
            if row.state == "held" and row.until <= self.now:
                self.give_back(row)

    @rule()
    def restart(self) -> None:
        """Locks are gone, a delivery without an answer does not count; the rest stays."""
        runs: list[Run] = self.share.runs()
        start = self.share.start
        self.share = self.make(start)
        self.share.restore(runs)
        for row in self.rows.values():
            if row.state == "held":
                row.state = "free"
                row.deliveries -= 1

    @rule(data=st.data())
    def retention(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, self.end))
        self.log = [batch for batch in self.log if batch[1] >= start]
        if self.log:
            start = min(start, self.end)
        self.share.cut(start)
        for offset in [offset for offset in self.rows if offset < start]:
            del self.rows[offset]

    def give_back(self, row: Row) -> None:
        row.state = "done" if row.deliveries >= MOST else "free"

    @invariant()
    def states_agree(self) -> None:
        states = self.share.states()
        names = {AVAILABLE: "free", ACQUIRED: "held"}
        for offset, row in self.rows.items():
            if offset < self.share.start:
                assert row.state == "done", offset
            elif offset < self.share.end:
                state = states[offset]
                assert names.get(state, "done") == row.state, offset
            else:
                assert row.state == "free", offset
        assert self.share.in_flight <= ROOM
        assert len(states) == self.share.in_flight
        if self.share.in_flight:
            assert states[self.share.start] not in FINAL
        assert ARCHIVED in FINAL


TestSharePartition = SharePartitionMachine.TestCase


def test_an_answer_for_several_records_counts_for_all_or_for_none() -> None:
    share = SharePartition(0)
    share.acquire("a", [(0, 9, True)], 5, 0.0)
    share.acquire("b", [(0, 9, True)], 5, 0.0)
    assert share.acknowledge("a", 3, 6, [ACCEPT], 0.0) is ErrorCode.INVALID_RECORD_STATE
    assert share.start == 0
    assert share.acknowledge("a", 0, 2, [ACCEPT, RELEASE, REJECT], 0.0) is ErrorCode.NONE
    assert share.start == 1
    assert share.next_offset() == 1
    assert [gone.offset for gone in share.gone] == [2]
    assert share.acknowledge("a", 3, 4, [ACCEPT] * 3, 0.0) is ErrorCode.INVALID_REQUEST
    assert share.acknowledge("a", 4, 3, [ACCEPT], 0.0) is ErrorCode.INVALID_REQUEST
    assert share.acknowledge("a", 3, 3, [9], 0.0) is ErrorCode.INVALID_REQUEST


def test_a_long_gap_costs_no_memory() -> None:
    share = SharePartition(0)
    given = share.acquire("a", [(10_000_000, 10_000_004, True)], 10, 0.0)
    assert [(run.first, run.last) for run in given] == [(10_000_000, 10_000_004)]
    assert share.in_flight == 5


def test_renewing_in_a_loop_costs_no_memory() -> None:
    share = SharePartition(0)
    share.acquire("a", [(0, 9, True)], 10, 0.0)
    for step in range(10_000):
        assert share.acknowledge("a", 0, 9, [RENEW], step / 10_000) is ErrorCode.NONE
    assert share.deadline_count < 5_000
    assert not share.expire(30.0)
    assert share.expire(31.0)


def test_a_hot_loop_of_releases_ends_at_the_delivery_count() -> None:
    share = SharePartition(0, most_deliveries=5)
    rounds = 0
    while share.acquire("a", [(0, 99, True)], 100, 0.0):
        rounds += 1
        assert share.acknowledge("a", 0, 99, [RELEASE], 0.0) is ErrorCode.NONE
    assert rounds == 5
    assert share.start == share.end == 100
    assert {gone.reason for gone in share.gone} == {"delivered too often"}


def test_a_record_stays_until_its_dead_letter_is_written() -> None:
    share = SharePartition(0, most_deliveries=1)
    share.buries = True
    share.acquire("a", [(0, 2, True)], 3, 0.0)
    assert share.acknowledge("a", 0, 2, [REJECT, RELEASE, ACCEPT], 0.0) is ErrorCode.NONE
    assert [gone.offset for gone in share.gone] == [0, 1]
    assert (share.start, share.next_offset()) == (0, 3)  # neither done for nor given out
    again = SharePartition(0)
    again.restore(share.runs())
    assert again.next_offset() == 0  # a broker that ends before the letter gives it out again
    share.buried(1)
    assert share.start == 0
    share.buried(0)
    assert share.start == share.end == 3
    share.buried(0)  # of a record that retention took meanwhile


def test_acknowledging_far_ranges_costs_nothing() -> None:
    share = SharePartition(0)
    share.acquire("a", [(0, 9, True)], 10, 0.0)
    assert share.acknowledge("a", 0, 2**62, [ACCEPT], 0.0) is ErrorCode.INVALID_REQUEST
    assert share.acknowledge("a", -(2**62), 2**62, [ACCEPT], 0.0) is ErrorCode.INVALID_REQUEST
    assert share.acknowledge("a", -(2**62), 3, [ACCEPT], 0.0) is ErrorCode.NONE
    assert share.start == 4
