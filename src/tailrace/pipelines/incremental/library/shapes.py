"""Geometries and geographies: WKB that is checked, turned around and given an SRID.

A value is its SRID (4 bytes, little-endian) and its WKB, little-endian throughout. Points may be
empty (NaN); no other coordinate is NaN, none is infinite, those of a geography are degrees.
"""

from __future__ import annotations

import math
import struct

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import Scalar, made
from tailrace.pipelines.incremental.types import GEOGRAPHY

WORLD = 4326
SRIDS = {
    0, WORLD, 3857, 2154, 3035, 3395, 4258, 4269, 25832, 25833, 27700, 28992, 31370, 5070,
    *range(32601, 32661), *range(32701, 32761),
}  # fmt: skip
GEOGRAPHIC = {WORLD, 4258, 4269}
_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_PARTS = {4: _POINT, 5: _LINE, 6: _POLYGON, _COLLECTION: None}  # of which a geometry is made
_LEAST_RING, _LEAST_LINE = 4, 2
_DEEPEST = 800  # geometries in geometries
_TOO_DEEP = "WKB of geometries in geometries, too deep to read"


class _Reader:
    """WKB of either byte order, written again in one."""

    def __init__(self, data: bytes, order: str, degrees: bool) -> None:
        self.data, self.at, self.degrees = data, 0, degrees
        self.to = order
        self.depth = 0
        self.out: list[bytes] = []

    def take(self, form: str, order: str) -> tuple[float, ...]:
        size = struct.calcsize(form)
        if self.at + size > len(self.data):
            raise EvaluationError(f"WKB ends at byte {len(self.data)}")
        found = struct.unpack_from(order + form, self.data, self.at)
        self.at += size
        self.out.append(struct.pack(self.to + form, *found))
        return found

    def geometry(self, wanted: int | None, family: int | None) -> None:
        """One geometry; `wanted` its kind, `family` whether it has Z and M."""
        mark = self.data[self.at : self.at + 1]
        if mark not in (b"\0", b"\1"):
            raise EvaluationError(f"WKB has no byte order at byte {self.at}")
        self.at += 1
        self.out.append(b"\1" if self.to == "<" else b"\0")
        order = "<" if mark == b"\1" else ">"
        (code,) = self.take("i", order)
        dimensions, kind = divmod(int(code), 1000)
        known = 1 <= kind <= _COLLECTION and 0 <= dimensions <= 3
        if not known or (family is not None and dimensions != family):
            raise EvaluationError(f"WKB has no type {int(code)} there")
        if wanted is not None and kind != wanted:
            raise EvaluationError(f"WKB has a part of type {int(code)} that does not belong there")
        size = 2 + (dimensions > 0) + (dimensions == 3)
        if kind == _POINT:
            self.points(1, size, order, empty=True)
        elif kind == _LINE:
            count = self.count(order)
            if 0 < count < _LEAST_LINE:
                raise EvaluationError("a line of one point")
            self.points(count, size, order)
        elif kind == _POLYGON:
            for _ in range(self.count(order)):
                self.ring(size, order)
        else:
            self.depth += 1
            if self.depth > _DEEPEST:
                raise EvaluationError(_TOO_DEEP)
            for _ in range(self.count(order)):
                self.geometry(_PARTS[kind], dimensions)
            self.depth -= 1

    def count(self, order: str) -> int:
        (count,) = self.take("i", order)
        if count < 0:
            raise EvaluationError("WKB counts below zero")
        return int(count)

    def ring(self, size: int, order: str) -> None:
        count = self.count(order)
        if count < _LEAST_RING:
            raise EvaluationError("a ring of fewer than four points")
        ends = self.points(count, size, order)
        if ends[0][:2] != ends[1][:2]:  # Z and M may differ
            raise EvaluationError("a ring that is not closed")

    def points(
        self, count: int, size: int, order: str, *, empty: bool = False
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The first and the last of the points read."""
        first: tuple[float, ...] = ()
        last: tuple[float, ...] = ()
        for number in range(count):
            last = self.take("d" * size, order)
            if any(math.isinf(part) or (part != part and not empty) for part in last):
                raise EvaluationError("WKB has a coordinate that is no number")
            if self.degrees and (abs(last[0]) > 180 or abs(last[1]) > 90):
                raise EvaluationError("a geography lies between -180 and 180, -90 and 90 degrees")
            first = first if number else last
        return first, last


def rewritten(wkb: bytes, order: str, degrees: bool) -> bytes:
    """WKB in one byte order (`<` or `>`); what follows it is cut off."""
    reader = _Reader(wkb, order, degrees)
    try:
        reader.geometry(None, None)
    except RecursionError as error:
        raise EvaluationError(_TOO_DEEP) from error
    return b"".join(reader.out)


def order_of(name: str) -> str:
    """`<` for NDR, `>` for XDR."""
    found = {"NDR": "<", "XDR": ">"}.get(name.upper())
    if found is None:
        raise EvaluationError(f"a byte order is 'NDR' or 'XDR', not {name!r}")
    return found


def _value(srid: int, wkb: bytes, kind: pa.DataType) -> bytes | str:
    data = struct.pack("<i", srid) + wkb
    return data.hex() if kind == GEOGRAPHY else data


def _bytes(value: bytes | str) -> bytes:
    return bytes.fromhex(value) if isinstance(value, str) else value


@made("shape_of_wkb")
def _shape_of_wkb(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    degrees = kind == GEOGRAPHY
    return lambda wkb, srid: _value(srid, rewritten(wkb, "<", degrees), kind)


@made("st_setsrid")
def _st_setsrid(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda value, srid: _value(srid, _bytes(value)[4:], kind)


@made("st_srid")
def _st_srid(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda value: struct.unpack_from("<i", _bytes(value))[0]


@made("st_asbinary")
def _st_asbinary(kinds: list[pa.DataType], kind: pa.DataType) -> Scalar:
    return lambda value, order: rewritten(_bytes(value)[4:], order_of(order), False)
