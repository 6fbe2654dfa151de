"""What one share group knows of one partition: which records are whose, and how often.

Below `start` everything is done for; from `end` on nothing was ever given out. In between
every offset is in one of four states. A pure state machine: time comes in as a number,
nothing goes out but return values.

    AVAILABLE ──acquire──► ACQUIRED ──accept──► ACKNOWLEDGED ─┐
        ▲                      │ ├────reject──► ARCHIVED ─────┤ start moves over these
        └──release, time-out───┘ └─too often──► ARCHIVED ─────┘

With `buries` a record that is given up is DYING until its dead letter is written (`buried`);
a restart before that gives it out once more.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tailrace.wire.errors import ErrorCode

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
DYING = 5  # in memory only
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
FINAL = (ACKNOWLEDGED, ARCHIVED)


class InFlight:
    """One offset between `start` and `end`."""

    __slots__ = ("count", "deadline", "member", "state")

    def __init__(self, state: int, count: int = 0) -> None:
        self.state = state
        self.count = count
        self.member = ""
        self.deadline = 0.0


class Run(NamedTuple):
    """Neighbouring offsets in the same state, as kept in `__share_group_state`."""

    first: int
    last: int
    state: int
    delivery_count: int


class Given(NamedTuple):
    """Neighbouring offsets given to a member."""

    first: int
    last: int
    delivery_count: int


class Gone(NamedTuple):
    """A record nobody will get again though nobody accepted it."""

    offset: int
    delivery_count: int
    reason: str


class SharePartition:
    """See the module."""

    def __init__(
        self,
        start: int,
        *,
        lock_seconds: float = 30.0,
        most_deliveries: int = 5,
        most_in_flight: int = 2000,
    ) -> None:
        self.start = start
        self.end = start
        self.lock_seconds = lock_seconds
        self.most_deliveries = most_deliveries
        self.most_in_flight = most_in_flight
        self.buries = False
        """Whether what is given up goes to a dead-letter topic."""
        self.changed = False  # since the last `runs`
        self.gone: list[Gone] = []
        self._records: dict[int, InFlight] = {}
        self._available: list[int] = []  # a heap; may name offsets that are not any more
        self._deadlines: list[tuple[float, int]] = []  # a heap; the same

    # Giving out ----------------------------------------------------------------

    def next_offset(self) -> int:
        """The lowest offset that may be given out: a released one, else `end`."""
        while self._available:
            offset = self._available[0]
            record = self._records.get(offset)
            if record is not None and record.state == AVAILABLE:
                return offset
            heapq.heappop(self._available)
        return self.end

    @property
    def full(self) -> bool:
        """Whether nothing new may be given out until something is done for."""
        return self.end - self.start >= self.most_in_flight and self.next_offset() == self.end

    def acquire(
        self, member: str, ranges: Iterable[tuple[int, int, bool]], most: int, now: float
    ) -> list[Given]:
        """Lock up to `most` records for a member.

        `ranges` are (first, last, is data) of the batches that exist from `next_offset`
        on, in order; what lies between them, or is no data, is archived.
        """
        given: list[Given] = []
        deadline = now + self.lock_seconds
        cursor = self.next_offset()
        for first, last, data in ranges:
            if most <= 0:
                break
            if not self._pass_over(cursor, first):
                break
            cursor = last + 1
            for offset in range(max(first, self.start), last + 1):
                record = self._records.get(offset)
                if record is None:
                    if offset < self.end:
                        continue
                    if offset - self.start >= self.most_in_flight:
                        return given
                    record = self._records[offset] = InFlight(AVAILABLE)
                    self.end = offset + 1
                if record.state != AVAILABLE:
                    continue
                if not data:
                    record.state = ARCHIVED
                    self.changed = True
                    continue
                record.state = ACQUIRED
                record.count += 1
                record.member = member
                record.deadline = deadline
                heapq.heappush(self._deadlines, (deadline, offset))
                most -= 1
                if (
                    given
                    and given[-1].last == offset - 1
                    and given[-1].delivery_count == record.count
                ):
                    given[-1] = given[-1]._replace(last=offset)
                else:
                    given.append(Given(offset, offset, record.count))
                if most <= 0:
                    break
        self._advance()
        return given

    def _pass_over(self, first: int, following: int) -> bool:
        """Offsets from `first` up to `following` are not in the log (compacted away);
        False while there is no room to note that."""
        for offset in range(first, min(following, self.end)):
            record = self._records.get(offset)
            if record is not None and record.state == AVAILABLE:
                record.state = ARCHIVED
                self.changed = True
        if following > self.end:
            self._advance()
            if self.start == self.end:
                self.start = self.end = following
            elif following - self.start > self.most_in_flight:
                return False
            for offset in range(self.end, following):
                self._records[offset] = InFlight(ARCHIVED)
            self.end = following
            self.changed = True
        return True

    # Answers -------------------------------------------------------------------

    def acknowledge(
        self, member: str, first: int, last: int, kinds: Sequence[int], now: float
    ) -> ErrorCode:
        """Take a member's answer for offsets it holds: all of them, or none.

        What lies below `start` is done for already and is passed over, as Kafka does.
        """
        count = last - first + 1
        if count < 1 or len(kinds) not in (1, count) or any(not 0 <= k <= RENEW for k in kinds):
            return ErrorCode.INVALID_REQUEST
        if last >= self.end:
            return ErrorCode.INVALID_REQUEST
        if first < self.start:
            kinds = kinds if len(kinds) == 1 else kinds[self.start - first :]
            first = self.start
        held = [self._records.get(offset) for offset in range(first, last + 1)]
        for record in held:
            if record is None or record.state != ACQUIRED or record.member != member:
                return ErrorCode.INVALID_RECORD_STATE
        renewed = False
        for number, record in enumerate(held):
            assert record is not None
            offset = first + number
            kind = kinds[number] if len(kinds) > 1 else kinds[0]
            match kind:
                case 1:
                    record.state = ACKNOWLEDGED
                case 2:
                    self._release(offset, record)
                case 4:
                    record.deadline = now + self.lock_seconds
                    heapq.heappush(self._deadlines, (record.deadline, offset))
                    renewed = True
                    continue
                case 3:
                    self._give_up(offset, record, "rejected")
                case _:
                    record.state = ARCHIVED
            self.changed = True
        self._advance()
        if renewed and len(self._deadlines) > 2 * (self.in_flight + 1000):
            self._forget_old_deadlines()
        return ErrorCode.NONE

    def _forget_old_deadlines(self) -> None:
        """Whoever renews in a loop leaves a deadline behind each time."""
        self._deadlines = [
            (record.deadline, offset)
            for offset, record in self._records.items()
            if record.state == ACQUIRED
        ]
        heapq.heapify(self._deadlines)

    def release_member(self, member: str) -> bool:
        """Give back whatever a member holds; whether it held anything."""
        found = False
        for offset, record in self._records.items():
            if record.state == ACQUIRED and record.member == member:
                found = True
                self._release(offset, record)
        if found:
            self.changed = True
            self._advance()
        return found

    def expire(self, now: float) -> bool:
        """Give back what was locked for too long; whether there was any."""
        found = False
        while self._deadlines and self._deadlines[0][0] <= now:
            _, offset = heapq.heappop(self._deadlines)
            record = self._records.get(offset)
            if record is not None and record.state == ACQUIRED and record.deadline <= now:
                found = True
                self._release(offset, record)
        if found:
            self.changed = True
            self._advance()
        return found

    def next_deadline(self) -> float | None:
        """When a lock may run out; None if nothing is locked."""
        return self._deadlines[0][0] if self._deadlines else None

    def _release(self, offset: int, record: InFlight) -> None:
        record.member = ""
        if record.count >= self.most_deliveries:
            self._give_up(offset, record, "delivered too often")
        else:
            record.state = AVAILABLE
            heapq.heappush(self._available, offset)

    def _give_up(self, offset: int, record: InFlight, reason: str) -> None:
        record.state = DYING if self.buries else ARCHIVED
        record.member = ""
        self.gone.append(Gone(offset, record.count, reason))

    def buried(self, offset: int) -> None:
        """The dead letter of a record is in the log."""
        record = self._records.get(offset)
        if record is not None and record.state == DYING:
            record.state = ARCHIVED
            self.changed = True
            self._advance()

    def _advance(self) -> None:
        while self.start < self.end and self._records[self.start].state in FINAL:
            del self._records[self.start]
            self.start += 1
            self.changed = True

    # Moving and keeping --------------------------------------------------------

    def move_start(self, offset: int) -> None:
        """Forget everything and begin at `offset` (an administrator's wish)."""
        self._records.clear()
        self._available.clear()
        self._deadlines.clear()
        self.start = self.end = offset
        self.changed = True

    def cut(self, log_start: int) -> None:
        """Retention removed everything below `log_start`."""
        if log_start <= self.start:
            return
        if log_start >= self.end:
            self.move_start(log_start)
            return
        for offset in range(self.start, log_start):
            self._records.pop(offset, None)
        self.start = log_start
        self.changed = True
        self._advance()

    def runs(self) -> list[Run]:
        """What must survive a restart; a lock does not, its record is available again."""
        self.changed = False
        found: list[Run] = []
        for offset in range(self.start, self.end):
            record = self._records[offset]
            state = AVAILABLE if record.state in (ACQUIRED, DYING) else record.state
            # A delivery that was not answered counts only once it was given back.
            count = record.count - 1 if record.state == ACQUIRED else record.count
            if found and found[-1].last == offset - 1 and found[-1][2:] == (state, count):
                found[-1] = found[-1]._replace(last=offset)
            else:
                found.append(Run(offset, offset, state, count))
        return found

    def restore(self, runs: Iterable[Run]) -> None:
        """The state a broker left behind."""
        for run in runs:
            for offset in range(max(run.first, self.start), run.last + 1):
                self._records[offset] = InFlight(run.state, run.delivery_count)
                if run.state == AVAILABLE:
                    heapq.heappush(self._available, offset)
            self.end = max(self.end, run.last + 1)
        for offset in range(self.start, self.end):
            if offset not in self._records:
                self._records[offset] = InFlight(AVAILABLE)
                heapq.heappush(self._available, offset)
        self._advance()
        self.changed = False

    @property
    def deadline_count(self) -> int:
        """Deadlines remembered, old ones included."""
        return len(self._deadlines)

    @property
    def in_flight(self) -> int:
        return self.end - self.start

    def states(self) -> dict[int, int]:
        """State by offset, for tests and descriptions."""
        return {offset: record.state for offset, record in self._records.items()}
