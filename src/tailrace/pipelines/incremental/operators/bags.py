"""Multisets of rows by key, for operators that must remember their inputs.

    key                -> 00 + marshal {row bytes: weight}        a small bag, whole
    key                -> 02 + entries (1 byte) + frames          a small bag that only grew:
                          a frame is 4 bytes of length and a marshalled dict as above
    key                -> 01 + count of distinct rows (8 bytes)   a large one: its rows follow
    key + hash(row)    -> marshal (weight, row bytes)

A small bag is read and written as one value, and rows that come are put behind the others
without looking at them. A hot key costs no more per change than a cold one, because only the
touched rows of a large bag are read and written. A bag that empties leaves the state.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from tailrace.pipelines.incremental.rows import Row, dumps
from tailrace.pipelines.state.store import OperatorState

SPILL_ROWS = 48
Delta = Mapping[bytes, int]


class Bag:
    """One key's rows as they were before this tick, and what `change` makes of them."""

    __slots__ = ("_found", "_header", "_key", "_rows", "_state")

    def __init__(self, state: OperatorState, key: bytes, header: bytes | None) -> None:
        self._state, self._key, self._header = state, key, header
        self._rows: dict[bytes, int] | None = None
        self._found: dict[bytes, bytes | None] | None = None

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
        if header is None and len(delta) == 1 and (frame := _single(delta)) is not None:
            puts.append((self._key, frame))
            return True
        if header is not None and header[0] == 1:
            return self._change_large(delta, puts)
        grows = len(delta) <= SPILL_ROWS and min(delta.values(), default=0) > 0
        if grows and (header is None or header[0] == 2):
            entries = len(delta) + (header[1] if header is not None else 0)
            if entries <= SPILL_ROWS:
                frame = dumps(dict(sorted(delta.items())) if len(delta) > 1 else dict(delta))
                before = header[2:] if header is not None else b""
                value = b"\x02%c%b%b%b" % (entries, before, len(frame).to_bytes(4, "big"), frame)
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
            puts.append((self._key, b"\x01" + len(rows).to_bytes(8, "big")))
            puts.extend(
                (self._key + _hash(row), dumps((weight, row))) for row, weight in rows.items()
            )
        elif rows:
            puts.append((self._key, _framed(rows)))
        elif header is not None:
            puts.append((self._key, None))
        return bool(rows)

    def _change_large(self, delta: Delta, puts: list[tuple[bytes, bytes | None]]) -> bool:
        touched = sorted((self._key + _hash(row), row, weight) for row, weight in delta.items())
        keys = [key for key, _, _ in touched]
        if self._found is None:
            found = self._state.get_many(keys)
        else:
            found = [self._found[key] for key in keys]
        assert self._header is not None
        count = int.from_bytes(self._header[1:], "big")
        for (key, row, weight), value in zip(touched, found, strict=True):
            before = marshal.loads(value)[0] if value is not None else 0
            after = before + weight
            count += (after != 0) - (before != 0)
            puts.append((key, dumps((after, row)) if after else None))
        puts.append((self._key, b"\x01" + count.to_bytes(8, "big") if count else None))
        return count > 0


def _single(delta: Delta) -> bytes | None:
    """A new bag of one row that came; None for one that went."""
    frame = dumps(dict(delta))
    if next(iter(delta.values())) <= 0:
        return None
    return b"\x02\x01%b%b" % (len(frame).to_bytes(4, "big"), frame)


def _framed(rows: Mapping[bytes, int]) -> bytes:
    """A small bag in one frame."""
    frame = dumps(dict(sorted(rows.items())) if len(rows) > 1 else dict(rows))
    return b"\x02%c%b%b" % (len(rows), len(frame).to_bytes(4, "big"), frame)


def _decoded(header: bytes) -> dict[bytes, int]:
    if header[0] == 0:
        return cast("dict[bytes, int]", marshal.loads(header[1:]))
    end = 6 + int.from_bytes(header[2:6], "big")
    rows: dict[bytes, int] = marshal.loads(header[6:end])
    at = end  # most bags have one frame
    while at < len(header):
        end = at + 4 + int.from_bytes(header[at : at + 4], "big")
        for row, weight in marshal.loads(header[at + 4 : end]).items():
            rows[row] = rows.get(row, 0) + weight
        at = end
    return rows


def _hash(row: bytes) -> bytes:
    return hashlib.blake2b(row, digest_size=16).digest()


def matching(state: OperatorState, key: bytes, header: bytes) -> list[tuple[Row, int]]:
    """The rows of a key that has some, read, with their weights."""
    if header[0] == 2 and header[1] == 1:  # one row, as under a primary key
        row, weight = marshal.loads(header[6:]).popitem()
        return [(marshal.loads(row), weight)]
    loads = marshal.loads
    return [(loads(row), weight) for row, weight in Bag(state, key, header).rows()]


def read_bags(state: OperatorState, keys: Sequence[bytes]) -> dict[bytes, Bag]:
    """The bags of `keys` (sorted), in one read."""
    return {
        key: Bag(state, key, header) for key, header in zip(keys, state.get_many(keys), strict=True)
    }


def read_touched(state: OperatorState, changed: Iterable[tuple[Bag, Delta]]) -> None:
    """Read the rows of large bags that `change` will ask for, all at once."""
    large = [(bag, delta) for bag, delta in changed if bag.large and delta]
    if len(large) < 2:
        return
    keys = sorted(bag._key + _hash(row) for bag, delta in large for row in delta)
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
