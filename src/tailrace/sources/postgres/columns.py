"""Rows decoded column by column: many rows of one table at a time.

The positions of a column's values in many rows are found with a few array operations,
its text becomes JSON as a whole column, and one element-wise join makes the rows. What a
column operation cannot do (a text that needs escapes, a date before Christ, a type of the
user's own) goes through the converter of single values, for that column alone. The
decoder generated for single rows (`tailrace.sources.postgres.decoder`) is the naive twin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy
import numpy.typing
import orjson
import pyarrow
import pyarrow.compute

from tailrace.records.columns import EMPTY, bytes_array, constant, mask_array, number_array
from tailrace.sources.postgres import types
from tailrace.sources.postgres.decoder import ColumnPlan, unescape
from tailrace.sources.postgres.types import Converter

Positions = numpy.typing.NDArray[numpy.int64]
Bytes = numpy.typing.NDArray[numpy.uint8]
Piece: TypeAlias = bytes | pyarrow.Array
# A column as JSON: constant bytes before each value, the values, constant bytes behind.
JsonColumn: TypeAlias = tuple[bytes, pyarrow.Array, bytes]

_BINARY = pyarrow.binary()
_BACKSLASH = 92


def read_u32(raw: Bytes, places: Positions) -> Positions:
    """Big-endian numbers of four bytes at these places."""
    value: Positions = raw[places].astype(numpy.int64) << 24
    value |= raw[places + 1].astype(numpy.int64) << 16
    value |= raw[places + 2].astype(numpy.int64) << 8
    value |= raw[places + 3]
    return value


def join(pieces: Sequence[Piece]) -> pyarrow.Array:
    """Arrays and constants joined row by row; one of them must be an array."""
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += piece
        elif not isinstance(piece, bytes) or piece:
            merged.append(piece)
    arguments = [constant(p) if isinstance(p, bytes) else p for p in merged]
    return pyarrow.compute.binary_join_element_wise(*arguments, EMPTY)


def decimal(numbers: Positions) -> pyarrow.Array:
    """Numbers as the bytes of their decimal text."""
    return number_array(numbers).cast(pyarrow.string()).cast(_BINARY)


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows as pieces that `join` makes objects of, and their record keys."""

    count: int
    pieces: list[Piece]
    key: pyarrow.Array | None

    def objects(self) -> pyarrow.Array:
        """The rows as JSON objects."""
        return join(self.pieces)


class ColumnDecoder:
    """Decodes many rows of one version of one table."""

    def __init__(self, columns: Sequence[ColumnPlan], key: Sequence[int]) -> None:
        self._columns = tuple(columns)
        self._key = tuple(key)
        self._used = frozenset(
            number for number, plan in enumerate(columns) if plan.captured or number in key
        )

    def from_tuples(self, data: bytes, starts: Positions) -> DecodedRows | None:
        """Rows of pgoutput whose number of columns stands at `starts`; None when a value
        was left out of one (unchanged TOAST)."""
        raw = numpy.frombuffer(data, numpy.uint8)
        place = starts + 2
        found: dict[int, JsonColumn] = {}
        for number, plan in enumerate(self._columns):
            kinds = raw[place]
            given = kinds == 0x74
            begins = place + 5
            ends = begins + read_u32(raw, place + 1)
            if bool(given.all()):
                place = ends
                if number in self._used:
                    found[number] = _json(plan, _gather(data, begins, ends))
                continue
            if not bool((given | (kinds == 0x6E)).all()):
                return None
            place = numpy.where(given, ends, place + 1)
            if number in self._used:
                found[number] = _with_nulls(plan, data, begins, ends, given)
        return self._assembled(len(starts), found)

    def from_lines(self, data: bytes) -> DecodedRows:
        """Lines of COPY's text format: whole ones, at least one."""
        raw = numpy.frombuffer(data, numpy.uint8)
        width = len(self._columns)
        if not width:  # a table without columns has rows, too
            return self._assembled(len(data), {})
        # Inside values both are escaped.
        marks = numpy.flatnonzero((raw == 9) | (raw == 10)).reshape(-1, width)
        escapes = bool((raw == _BACKSLASH).any())
        found: dict[int, JsonColumn] = {}
        for number in self._used:
            plan, ends = self._columns[number], marks[:, number]
            if number:
                begins = marks[:, number - 1] + 1
            else:
                begins = numpy.concatenate(([0], marks[:-1, width - 1] + 1))
            if not escapes:
                found[number] = _json(plan, _gather(data, begins, ends))
                continue
            second = raw[numpy.minimum(begins + 1, len(raw) - 1)]
            given = (ends - begins != 2) | (raw[begins] != _BACKSLASH) | (second != 78)
            if bool(given.all()):
                found[number] = _json(plan, _gather(data, begins, ends), escaped=True)
            else:
                found[number] = _with_nulls(plan, data, begins, ends, given, escaped=True)
        return self._assembled(len(marks), found)

    def _assembled(self, count: int, found: Mapping[int, JsonColumn]) -> DecodedRows:
        captured = [n for n, plan in enumerate(self._columns) if plan.captured]
        key = join(self._object(self._key, found)) if self._key else None
        if not captured:
            return DecodedRows(count, [_repeated(b"{}", count)], key)
        return DecodedRows(count, self._object(captured, found), key)

    def _object(self, numbers: Sequence[int], found: Mapping[int, JsonColumn]) -> list[Piece]:
        pieces: list[Piece] = []
        glue = b"{"
        for number in numbers:
            before, values, behind = found[number]
            name = orjson.dumps(self._columns[number].name)
            pieces += [glue + name + b":" + before, values, behind]
            glue = b","
        return [*pieces, b"}"]


def _gather(data: bytes, begins: Positions, ends: Positions) -> pyarrow.Array:
    """The values between these positions as one column."""
    count = len(begins)
    # Every second value of this array is one of ours, the others lie between them.
    offsets = numpy.empty(2 * count + 1, numpy.int32)
    offsets[0:-1:2] = begins
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    wide = pyarrow.Array.from_buffers(
        _BINARY, 2 * count, [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    )
    return wide.take(number_array(numpy.arange(0, 2 * count, 2)))


def _repeated(value: bytes, count: int) -> pyarrow.Array:
    return bytes_array([value]).take(number_array(numpy.zeros(count, numpy.int64)))


def _with_nulls(
    plan: ColumnPlan,
    data: bytes,
    begins: Positions,
    ends: Positions,
    given: numpy.typing.NDArray[numpy.bool_],
    *,
    escaped: bool = False,
) -> JsonColumn:
    """A column of which some values are NULL."""
    nulls = _repeated(b"null", len(begins))
    if not bool(given.any()):
        return b"", nulls, b""
    values = join(_json(plan, _gather(data, begins[given], ends[given]), escaped=escaped))
    return b"", pyarrow.compute.replace_with_mask(nulls, mask_array(given), values), b""


def _json(plan: ColumnPlan, values: pyarrow.Array, *, escaped: bool = False) -> JsonColumn:
    """Values, none of them NULL, as JSON; `escaped` ones may hold COPY's backslashes."""
    if escaped and _BACKSLASH in _content(values):
        return _one_by_one(values, lambda value: plan.convert(unescape(value)))
    if plan.splice == "raw":
        return b"", values, b""
    if plan.splice == "quoted":
        return b'"', values, b'"'
    whole = _WHOLE_COLUMNS.get(plan.convert)
    made = None if whole is None else whole(values)
    return _one_by_one(values, plan.convert) if made is None else made


def _one_by_one(values: pyarrow.Array, convert: Converter) -> JsonColumn:
    return b"", bytes_array([convert(value) for value in values.to_pylist()]), b""


def _content(values: pyarrow.Array) -> Bytes:
    """All bytes of a column that `_gather` made."""
    content = values.buffers()[2]
    return numpy.frombuffer(b"" if content is None else content, numpy.uint8)


def _offsets(values: pyarrow.Array) -> numpy.typing.NDArray[numpy.int32]:
    return numpy.frombuffer(values.buffers()[1], numpy.int32)[: len(values) + 1]


# Whole columns, each for a converter of single values; None where one is needed.


def _text(values: pyarrow.Array) -> JsonColumn | None:
    content = _content(values)
    if bool(((content < 32) | (content == 34) | (content == _BACKSLASH)).any()):
        return None
    return b'"', values, b'"'


def _boolean(values: pyarrow.Array) -> JsonColumn | None:
    words = bytes_array([b"false", b"true"])
    return b"", words.take(number_array((_content(values) == 0x74).astype(numpy.int64))), b""


def _real(values: pyarrow.Array) -> JsonColumn | None:
    last = _content(values)[_offsets(values)[1:] - 1]
    return (b"", values, b"") if bool((last < 58).all()) else None


def _date(values: pyarrow.Array) -> JsonColumn | None:
    # 2026-11-15: none before Christ, nor infinity.
    if bool((numpy.diff(_offsets(values)) != 10).any()):
        return None
    return b'"', values, b'"'


def _timestamp(values: pyarrow.Array) -> JsonColumn | None:
    moments = _moments(values, 19)
    last = _content(values)[_offsets(values)[1:] - 1]
    return None if moments is None or bool((last > 57).any()) else (b'"', moments, b'"')


def _timestamptz(values: pyarrow.Array) -> JsonColumn | None:
    moments = _moments(values, 22)
    if (
        moments is None
        or not pyarrow.compute.all(pyarrow.compute.ends_with(values, b"+00")).as_py()
    ):
        return None
    return b'"', pyarrow.compute.binary_slice(moments, 0, -3), b'Z"'


def _moments(values: pyarrow.Array, shortest: int) -> pyarrow.Array | None:
    """With a T between date and time; None unless all have four digits in the year."""
    offsets = _offsets(values)
    if bool((numpy.diff(offsets) < shortest).any()):
        return None
    if bool((_content(values)[offsets[:-1] + 10] != 32).any()):
        return None
    return pyarrow.compute.binary_replace_slice(values, 10, 11, b"T")


_WHOLE_COLUMNS: Mapping[Converter, Callable[[pyarrow.Array], JsonColumn | None]] = {
    types.text: _text, types.boolean: _boolean, types.real: _real, types.date: _date,
    types.timestamp: _timestamp, types.timestamptz: _timestamptz,
}  # fmt: skip
