"""The rows of one partition in their order, in blocks, each row with the attempt that began there.

    "h" + key            -> marshal (0, orders, rows, attempts)                 one block
                            marshal (next number, ((number, order, row, rows, reach, matches) …),
                                     growing)
    "b" + key + number   -> marshal (orders, rows, attempts)                    one of several

A change reads and writes the blocks that it touches. The header tells of each block its first
row, how many rows, how far any of its attempts looked (from the block's first row), and how
many matches begin in it. A row of weight n stands n times.

`growing`: of an attempt that lives beyond the last row, where it began, which match it is, and
how far its threads have come, or None (or not there at all). It holds for these rows alone, and
for more at their end.

The attempt of a row: None (none began there), how many rows a failed one looked at, or a tuple
(see `Record`). Rows looked at are counted from its own; `FOREVER`: beyond the last row.
"""

from __future__ import annotations

import marshal
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias, cast

from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.rows import Row, decode_rows, dumps

BLOCK_ROWS = 128
FOREVER = -1
_FAR = 1 << 62


class Record(NamedTuple):
    """An attempt. `kind`: 0 it failed, 1 a match without rows, 2 a match of `length` rows;
    `covered`: rows from its own on that belong to earlier matches (if that is kept); `shown`:
    the rows of the result."""

    reach: int
    kind: int
    length: int
    covered: int
    shown: tuple[bytes, ...]


Stored: TypeAlias = "int | tuple[int, int, int, int, tuple[bytes, ...]] | None"


def _record(stored: Stored) -> Record | None:
    if stored is None:
        return None
    if isinstance(stored, int):
        return Record(stored, 0, 0, 0, ())
    return Record(*stored)


# Number, first row (order, row), how many, how far attempts look, matches.
Told: TypeAlias = "tuple[int, bytes, bytes, int, int, int]"


class Block:
    """Some rows in a line."""

    # There are many in a large partition, and few of them are touched: `orders`, `attempts` and
    # `rows` are not there before `fill`.
    __slots__ = (
        "attempts", "changed", "count", "data", "first", "matches", "number", "orders", "reach",
        "rows", "told",
    )  # fmt: skip

    orders: list[bytes]
    attempts: list[Stored]
    rows: list[Row] | None

    def __init__(self, told: Told) -> None:
        self.told = told
        self.number, order, row, self.count, self.reach, self.matches = told
        self.first = (order, row)
        self.changed = False
        self.data: list[bytes] | None = None

    def fill(self, orders: list[bytes], data: list[bytes], attempts: list[Stored]) -> None:
        self.orders, self.data, self.attempts = orders, data, attempts
        self.count, self.rows = len(orders), None

    def summarise(self) -> None:
        """Set what the header tells, once the rows stay as they are."""
        assert self.data is not None
        self.count = len(self.orders)
        self.first = (self.orders[0], self.data[0])
        self.reach = self.matches = 0
        for at, stored in enumerate(self.attempts):
            if stored is None:
                continue
            if isinstance(stored, int):
                reach = stored
            else:
                reach = stored[0]
                self.matches += stored[1] > 0
            self.reach = max(self.reach, _FAR if reach == FOREVER else at + reach)
        self.told = (self.number, *self.first, self.count, self.reach, self.matches)


class Change(NamedTuple):
    """A row that came or went: nothing changed before `at`, nor behind `until`. `matches` that
    began there went with it."""

    at: int
    until: int
    matches: int


class Partition:
    """One partition during a tick. After `change`, `rows[at]` is the row at a place."""

    def __init__(self, state: OperatorState, key: bytes, header: bytes | None) -> None:
        self._state, self._key = state, key
        self._next = 1
        self._gone: list[int] = []  # numbers of blocks that leave the state
        self._blocks: list[Block] = []
        self._known = header is not None
        self._several = False
        self.appended = False  # whether all that changed is rows behind the last one
        self.growing: tuple[int, int, Any] | None = None
        if header is not None:
            content = marshal.loads(header)
            if content[0] == 0:
                block = Block((0, b"", b"", 0, 0, 0))
                block.fill(content[1], content[2], content[3])
                self._blocks.append(block)
            else:
                self._several = True
                self._next = content[0]
                self.growing = content[2] if len(content) > 2 else None
                self._blocks = [Block(told) for told in content[1]]
        self._place()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, at: int) -> Row:
        if not self._low <= at < self._high:
            self._turn_to(at)
        return self._here[at - self._low]

    # Blocks -------------------------------------------------------------------------------

    def _place(self) -> None:
        self._ends = list(accumulate([block.count for block in self._blocks]))
        self._low = self._high = 0
        self._here: list[Row] = []

    def _load(self, block: Block) -> Block:
        if block.data is None:
            content = self._state.get(self._block_key(block.number))
            if content is None:
                raise KeyError(f"block {block.number} of a partition is missing")
            block.fill(*marshal.loads(content))
        return block

    def _block_key(self, number: int) -> bytes:
        return b"b" + self._key + number.to_bytes(4, "big")

    def _block_at(self, at: int) -> tuple[Block, int]:
        """The block that holds a place, and the place of its first row."""
        number = bisect_right(self._ends, at)
        block = self._blocks[number]
        return self._load(block), self._ends[number] - block.count

    def _turn_to(self, at: int) -> None:
        block, low = self._block_at(at)
        if block.rows is None:
            assert block.data is not None
            block.rows = decode_rows(block.data)
        self._low, self._high, self._here = low, low + block.count, block.rows

    # Changes ------------------------------------------------------------------------------

    def change(
        self, deltas: Iterable[tuple[bytes, bytes, int]]
    ) -> tuple[list[Change], list[bytes]]:
        """Let rows (order, row, weight) come and go. Where that was, by place, and the results
        of the attempts of rows that went."""
        known = len(self)
        lost: list[bytes] = []
        touched: list[tuple[bytes, bytes, int]] = []  # order, row, matches lost
        firsts = [block.first for block in self._blocks]
        for order, row, weight in sorted(deltas):
            block = self._of(order, row, firsts)
            for _ in range(abs(weight)):
                matched = 0
                if weight > 0:
                    self._insert(block, order, row)
                else:
                    stored = self._remove(block, order, row)
                    if stored is not None and not isinstance(stored, int):
                        matched = int(stored[1] > 0)
                        lost.extend(stored[4])
                touched.append((order, row, matched))
        self._settle()
        firsts = [block.first for block in self._blocks]
        changes: list[Change] = []
        for order, row, matches in touched:
            # A row came or went among its equals, which cannot be told apart.
            at = self._position(order, row, firsts, behind=False)
            until = self._position(order, row, firsts, behind=True) - 1
            changes.append(Change(at, max(at, until), matches))
        self.appended = all(change.at >= known for change in changes)
        if not self.appended or (self.growing is not None and self.growing[2][0] != known):
            self.growing = None
        return changes, lost

    def _of(self, order: bytes, row: bytes, firsts: list[tuple[bytes, bytes]]) -> Block:
        """The block in which a row stands or would stand."""
        if not self._blocks:
            block = Block((0, order, row, 0, 0, 0))
            block.fill([], [], [])
            self._blocks.append(block)
            return block
        if len(self._blocks) == 1:
            return self._load(self._blocks[0])
        at = bisect_right(firsts, (order, row)) - 1
        return self._load(self._blocks[max(at, 0)])

    def _insert(self, block: Block, order: bytes, row: bytes) -> None:
        """Put a row behind its equals."""
        assert block.data is not None
        at = _place_in(block, order, row, behind=True)
        block.orders.insert(at, order)
        block.data.insert(at, row)
        block.attempts.insert(at, None)
        block.changed, block.rows = True, None

    def _remove(self, block: Block, order: bytes, row: bytes) -> Stored:
        """Take the last of equal rows away. Equals may stand in the blocks before, too."""
        at = _place_in(block, order, row, behind=True) - 1
        while True:
            assert block.data is not None
            if at >= 0 and block.orders[at] == order and block.data[at] == row:
                break
            number = next(i for i, one in enumerate(self._blocks) if one is block)
            if not number:
                raise KeyError("a row that is not in the partition cannot leave it")
            block = self._load(self._blocks[number - 1])
            at = len(block.orders) - 1
        del block.orders[at], block.data[at]
        block.changed, block.rows = True, None
        return block.attempts.pop(at)

    def _settle(self) -> None:
        """Cut blocks that grew, drop those that are empty."""
        whole = True
        for block in self._blocks:
            if block.changed:
                block.count = len(block.orders)
                whole = whole and 0 < block.count <= 2 * BLOCK_ROWS
                if block.count:
                    block.first = (block.orders[0], cast("list[bytes]", block.data)[0])
        if not whole:
            self._blocks = list(self._cut_blocks())
        self._place()

    def _cut_blocks(self) -> Iterator[Block]:
        for block in self._blocks:
            if not block.changed or 0 < block.count <= 2 * BLOCK_ROWS:
                yield block
                continue
            self._gone.append(block.number)
            assert block.data is not None
            for at in range(0, block.count, BLOCK_ROWS):
                part = Block((self._next, block.orders[at], block.data[at], 0, 0, 0))
                self._next += 1
                end = at + BLOCK_ROWS
                part.fill(block.orders[at:end], block.data[at:end], block.attempts[at:end])
                part.changed = True
                yield part

    def _position(
        self, order: bytes, row: bytes, firsts: list[tuple[bytes, bytes]], *, behind: bool
    ) -> int:
        """The place of the first row that is not before this one, or that is behind it."""
        number = (bisect_right if behind else bisect_left)(firsts, (order, row))
        if not number:
            return 0
        block = self._load(self._blocks[number - 1])
        at = _place_in(block, order, row, behind=behind)
        return self._ends[number - 1] - block.count + at

    @property
    def large(self) -> bool:
        """Whether it is kept in several blocks."""
        return len(self._blocks) > 1

    def cut(self, count: int) -> int:
        """Let the first rows go, with the attempts that began at them; how many matches these
        were."""
        matches, left = 0, count
        while left and self._blocks:
            block = self._load(self._blocks[0])
            taken = min(left, len(block.orders))
            matches += sum(
                1
                for stored in block.attempts[:taken]
                if stored is not None and not isinstance(stored, int) and stored[1] > 0
            )
            if taken == len(block.orders):
                self._gone.append(block.number)
                del self._blocks[0]
            else:
                assert block.data is not None
                del block.orders[:taken], block.data[:taken], block.attempts[:taken]
                block.changed, block.rows = True, None
                block.count, block.first = len(block.orders), (block.orders[0], block.data[0])
            left -= taken
        self._place()
        return matches

    # Attempts -----------------------------------------------------------------------------

    def record(self, at: int) -> Record | None:
        """The attempt that began at a place."""
        block, low = self._block_at(at)
        return _record(block.attempts[at - low])

    def set_record(self, at: int, record: Record | None, *, plain: bool) -> None:
        """`plain`: what is covered is not kept, so a failed attempt is a number."""
        block, low = self._block_at(at)
        stored: Stored = None
        if record is not None:
            failed = plain and not record.kind and not record.shown
            stored = record.reach if failed else (*record,)
        if block.attempts[at - low] != stored:
            block.attempts[at - low] = stored
            block.changed = True

    def last_record(self, before: int) -> tuple[int, Record] | None:
        """The last attempt that began before a place."""
        for at in range(before - 1, -1, -1):
            record = self.record(at)
            if record is not None:
                return at, record
        return None

    def first_beyond(self, begin: int, end: int, limit: int) -> int | None:
        """The first attempt that began in [begin, end) and looked at the row `limit` or behind."""
        number = bisect_right(self._ends, begin)
        for block, stop in zip(self._blocks[number:], self._ends[number:], strict=True):
            low = stop - block.count
            if low >= end:
                break
            if block.data is None or not block.changed:
                far = block.reach if block.data is None or self._several else _FAR
                if low + far <= limit:
                    continue
            self._load(block)
            for at in range(max(begin, low), min(end, stop)):
                stored = block.attempts[at - low]
                if stored is None:
                    continue
                reach = stored if isinstance(stored, int) else stored[0]
                if reach == FOREVER or at + reach > limit:
                    return at
        return None

    def matches_before(self, at: int) -> int:
        """How many matches begin before a place."""
        total = 0
        for block, end in zip(self._blocks, self._ends, strict=True):
            low = end - block.count
            if low >= at:
                break
            if block.data is None:
                if end <= at:
                    total += block.matches
                    continue
                self._load(block)
            total += sum(
                1
                for stored in block.attempts[: at - low]
                if stored is not None and not isinstance(stored, int) and stored[1] > 0
            )
        return total

    # State --------------------------------------------------------------------------------

    def write(self, puts: list[tuple[bytes, bytes | None]]) -> None:
        """What has to be written, after all."""
        head = b"h" + self._key
        if len(self._blocks) <= 1:
            whole = self._load(self._blocks[0]) if self._blocks else None
            if self._several:
                self._gone += [block.number for block in self._blocks]
            if whole is not None:
                puts.append((head, dumps((0, whole.orders, whole.data, whole.attempts))))
            elif self._known:
                puts.append((head, None))
        else:
            for block in self._blocks:
                if not block.changed and self._several:
                    continue
                if not block.number:
                    block.number, self._next = self._next, self._next + 1
                block.summarise()
                content = dumps((block.orders, block.data, block.attempts))
                puts.append((self._block_key(block.number), content))
            told = tuple([block.told for block in self._blocks])
            puts.append((head, dumps((self._next, told, self.growing))))
        puts.extend((self._block_key(number), None) for number in self._gone if number)


def _place_in(block: Block, order: bytes, row: bytes, *, behind: bool) -> int:
    """Where a row stands in a block, or behind it and its equals."""
    data = cast("list[bytes]", block.data)
    low, high = bisect_left(block.orders, order), bisect_right(block.orders, order)
    return (bisect_right if behind else bisect_left)(data, row, low, high)
