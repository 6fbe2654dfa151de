"""Multisets of rows by key, for operators that must remember their inputs.

    key                -> 03 + entries (1 byte) + marshal {row bytes: weight}     a small bag
    key                -> 01                                      a large one: its rows follow
    key + hash(row)    -> marshal (weight, row bytes)

A small bag is read and written as one value, and rows that come are put behind the others
without looking at them: a row may then stand there twice, and its weights add up. (Earlier
versions wrote 00 + marshal {…}, 02 + entries + dicts, each behind 4 bytes of length, and 01 + a
count.) A hot key costs no more per change than a cold one, because only the
touched rows of a large bag are read and written. A bag that empties leaves the state.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from tailrace.pipelines.state.store import OperatorState
from tailrace.pipelines.values.rows import Row, dumps

SPILL_ROWS = 48
Delta = Mapping[bytes, int]


class Bag:
    """One key's rows as they were before this tick, and what `change` makes of them."""

    __slots__ = ("_found", "_header", "_key", "_rows", "_state", "_touched")

    def __init__(self, state: OperatorState, key: bytes, header: bytes | None) -> None:
        self._state, self._key, self._header = state, key, header
        self._rows: dict[bytes, int] | None = None
        self._found: dict[bytes, bytes | None] | None = None
        self._touched: list[tuple[bytes, bytes, int]] = []

    def __bool__(self) -> bool:
        return self._header is not None

    @property
    def large(self) -> bool:
        return self._header is not None and self._header[0] == 1

    def rows(self) -> Iterable[tuple[bytes, int]]:
        """The rows with their weights. A large bag reads the state: exhaust it before
        the next write."""
        if self.large:
            return self._scan()
        return self._small().items()

    def _scan(self) -> Iterator[tuple[bytes, int]]:
        for key, value in self._state.scan(self._key):
            if len(key) > len(self._key):
                weight, row = marshal.loads(value)
                yield row, weight

    def _small(self) -> dict[bytes, int]:
        """The rows of a small bag."""
        if self._rows is None:
            self._rows = _decoded(self._header) if self._header is not None else {}
        return self._rows

    def change(self, delta: Delta, puts: list[tuple[bytes, bytes | None]]) -> bool:
        """Add `delta`, appending what to write to `puts`; whether any row remains."""
        header = self._header
        if header is not None and header[0] == 1:
            return self._change_large(delta, puts)
        if len(delta) > 1:
            delta = dict(sorted(delta.items()))
        if min(delta.values(), default=0) > 0:
            if header is None and len(delta) <= SPILL_ROWS:
                puts.append((self._key, _framed(dict(delta))))
                return True
            if header is not None and header[0] == 3 and len(delta) + header[1] <= SPILL_ROWS:
                entries = dumps(dict(delta))[1:]
                value = b"\x03%c%b%b" % (header[1] + len(delta), header[2:-1], entries)
                puts.append((self._key, value))
                return True
        if self._rows is not None:
            rows = dict(self._rows)
        else:
            rows = _decoded(header) if header is not None else {}
        for row, weight in delta.items():
            total = rows.get(row, 0) + weight
            if total:
                rows[row] = total
            else:
                rows.pop(row, None)
        if len(rows) > SPILL_ROWS:
            puts.append((self._key, b"\x01"))
            puts.extend(
                (self._key + _hash(row), dumps((weight, row))) for row, weight in rows.items()
            )
        elif rows:
            puts.append((self._key, _framed(rows)))
        elif header is not None:
            puts.append((self._key, None))
        return bool(rows)

    def _change_large(self, delta: Delta, puts: list[tuple[bytes, bytes | None]]) -> bool:
        touched = self._touched or self._places(delta)
        keys = [key for key, _, _ in touched]
        if self._found is None:
            found = self._state.get_many(keys)
        else:
            found = [self._found[key] for key in keys]
        gone: set[bytes] = set()
        for (key, row, weight), value in zip(touched, found, strict=True):
            after = weight + (marshal.loads(value)[0] if value is not None else 0)
            if not after:
                gone.add(key)
            puts.append((key, dumps((after, row)) if after else None))
        if len(gone) < len(keys) or self._holds_more_than(gone):
            return True
        puts.append((self._key, None))
        return False

    def _places(self, delta: Delta) -> list[tuple[bytes, bytes, int]]:
        """Where the rows of `delta` stand in a large bag, in order, with them and their weights."""
        return sorted((self._key + _hash(row), row, weight) for row, weight in delta.items())

    def _holds_more_than(self, gone: Collection[bytes]) -> bool:
        """Whether a large bag has a row that is not `gone`: mostly its first."""
        size = len(self._key)
        return any(len(key) > size and key not in gone for key, _ in self._state.scan(self._key))


def by_one_row(header: bytes | None, row: bytes, weight: int) -> bytes | None:
    """What `Bag.change` makes of a small bag when one row comes or goes, by far the most common
    change; empty bytes if nothing remains, None if it is for `Bag.change` to find out."""
    if header is None:
        return b"\x03\x01" + marshal.dumps({row: weight}, 2)
    if header[0] != 3:
        return None
    count = header[1]
    if weight > 0:
        if count >= SPILL_ROWS:
            return None
        entry = marshal.dumps({row: weight}, 2)[1:]
        return b"\x03%c%b%b" % (count + 1, header[2:-1], entry)
    rows: dict[bytes, int] = marshal.loads(header[2:])
    if len(rows) != count or row not in rows:
        return None
    if rest := rows[row] + weight:
        rows[row] = rest
    else:
        del rows[row]
    return b"\x03%c%b" % (len(rows), marshal.dumps(rows, 2)) if rows else b""


def _framed(rows: dict[bytes, int]) -> bytes:
    """A small bag."""
    return b"\x03%c%b" % (len(rows), dumps(rows))


def _decoded(header: bytes) -> dict[bytes, int]:
    if header[0] == 3:
        rows: dict[bytes, int] = marshal.loads(header[2:])
        if len(rows) == header[1]:
            return rows
        flat = marshal.loads(b"[%b%b" % ((2 * header[1]).to_bytes(4, "little"), header[3:-1]))
        return _added_up(zip(flat[::2], flat[1::2], strict=True))
    if header[0] == 0:
        return cast("dict[bytes, int]", marshal.loads(header[1:]))
    found: list[tuple[bytes, int]] = []
    at = 2
    while at < len(header):
        end = at + 4 + int.from_bytes(header[at : at + 4], "big")
        found += marshal.loads(header[at + 4 : end]).items()
        at = end
    return _added_up(found)


def _added_up(pairs: Iterable[tuple[bytes, int]]) -> dict[bytes, int]:
    rows: dict[bytes, int] = {}
    for row, weight in pairs:
        rows[row] = rows.get(row, 0) + weight
    return rows


def _hash(row: bytes) -> bytes:
    return hashlib.blake2b(row, digest_size=16).digest()


def matching(state: OperatorState, key: bytes, header: bytes) -> list[tuple[Row, int]]:
    """The rows of a key that has some, read, with their weights."""
    if header[0] == 3 and header[1] == 1:  # one row, as under a primary key
        row, weight = marshal.loads(header[2:]).popitem()
        return [(marshal.loads(row), weight)]
    loads = marshal.loads
    return [(loads(row), weight) for row, weight in Bag(state, key, header).rows()]


class Matches:
    """The rows of keys, read; what many keys have alike is read once."""

    __slots__ = ("_known", "_state")

    def __init__(self, state: OperatorState) -> None:
        self._state = state
        self._known: dict[bytes, list[tuple[Row, int]]] = {}

    def of(self, key: bytes, header: bytes) -> list[tuple[Row, int]]:
        """The rows of a key that has some, with their weights."""
        if header[0] == 1:
            return matching(self._state, key, header)
        found = self._known.get(header)
        if found is None:
            found = self._known[header] = matching(self._state, key, header)
        return found


def read_bags(state: OperatorState, keys: Sequence[bytes]) -> dict[bytes, Bag]:
    """The bags of `keys` (sorted), in one read."""
    return {
        key: Bag(state, key, header) for key, header in zip(keys, state.get_many(keys), strict=True)
    }


def read_touched(state: OperatorState, changed: Iterable[tuple[Bag, Delta]]) -> None:
    """Read the rows of large bags that `change` will ask for with these changes, all at once."""
    large = [(bag, delta) for bag, delta in changed if bag.large and delta]
    if len(large) < 2:
        return
    for bag, delta in large:
        bag._touched = bag._places(delta)
    keys = sorted(key for bag, _ in large for key, _, _ in bag._touched)
    found = dict(zip(keys, state.get_many(keys), strict=True))
    for bag, _ in large:
        bag._found = found


def by_key(
    keys: Sequence[bytes], rows: Sequence[bytes], weights: Sequence[int]
) -> dict[bytes, dict[bytes, int]]:
    """The changes of each key, equal rows added up and zeros dropped."""
    deltas: dict[bytes, dict[bytes, int]] = {}
    for key, row, weight in zip(keys, rows, weights, strict=True):
        delta = deltas.get(key)
        if delta is None:
            deltas[key] = {row: weight}
        elif total := delta.get(row, 0) + weight:
            delta[row] = total
        else:
            del delta[row]
    return {key: delta for key, delta in deltas.items() if delta}
