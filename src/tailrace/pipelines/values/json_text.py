"""Columns as the JSON text of their values, all values at once.

`json_texts` gives for every value what orjson writes for its JSON form (see
`changelog.json_values`, the naive twin that also serves the types that are rare). Whole numbers,
texts, decimals, dates and times are written by Arrow and NumPy without a Python object each.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.pipelines.values.types import DATE, STRING, TIMESTAMP, is_decimal, is_float
from tailrace.records.columns import EMPTY, bytes_array, constant, decimal_words

_SECOND = 1_000_000
_DAY = 86_400
_EPOCH = datetime.datetime(1970, 1, 1)
# Years of four digits: what lies outside is written by Python.
_FIRST_SECOND = int((datetime.datetime(1000, 1, 1) - _EPOCH).total_seconds())
_LAST_SECOND = int((datetime.datetime(9999, 12, 31) - _EPOCH).total_seconds())


def json_texts(column: pa.Array, slowly: Callable[[pa.Array], list[object]]) -> pa.Array:
    """The JSON of every value, as binary without NULL. `slowly` gives the values of a column
    of a rare kind in the form they have in JSON."""
    kind = column.type
    texts: pa.Array | None = None
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        texts = column.cast(pa.string()).cast(pa.binary())
    elif kind == STRING:
        texts = _strings(column)
    elif is_decimal(kind):
        texts = _decimals(column)
    elif pa.types.is_timestamp(kind) or kind == DATE:
        texts = _times(column)
    if texts is None:
        values = slowly(column)
        if is_float(kind):  # none of them holds a comma
            return bytes_array(orjson.dumps(values)[1:-1].split(b",") if values else [])
        return bytes_array([orjson.dumps(value) for value in values])
    return texts.fill_null(constant(b"null")) if texts.null_count else texts


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """The parts of every row behind one another."""
    return pc.binary_join_element_wise(*parts, EMPTY)


def _strings(column: pa.Array) -> pa.Array:
    data = column.cast(pa.binary())
    whole = joined(constant(b'"'), data, constant(b'"'))
    special = _with_special(data)
    if not special.any():
        return whole
    escaped = [orjson.dumps(value) for value in column.filter(pa.array(special)).to_pylist()]
    return pc.replace_with_mask(whole, pa.array(special), bytes_array(escaped))


def _with_special(data: pa.Array) -> np.ndarray:
    """Which values hold a character that JSON escapes."""
    found = np.zeros(len(data), dtype=bool)
    content = data.buffers()[2] if len(data) else None
    if content is None:
        return found
    offsets = np.frombuffer(data.buffers()[1], "<i4")[data.offset :][: len(data) + 1]
    raw = np.frombuffer(content, "u1")[offsets[0] : offsets[-1]]
    places = np.flatnonzero((raw < 0x20) | (raw == 0x22) | (raw == 0x5C))
    found[np.searchsorted(offsets, places + offsets[0], "right") - 1] = True
    return found


def _decimals(column: pa.Array) -> pa.Array | None:
    """Decimals whose digits fit a BIGINT; else None."""
    scale = column.type.scale
    low, fits = decimal_words(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if not fits or (low == -(1 << 63)).any():
        return None
    positive = np.abs(low)
    whole, rest = np.divmod(positive, 10**scale) if scale < 19 else (positive * 0, positive)
    signs = constant(b'"'), constant(b'"-')
    parts = [_chosen(low < 0, *signs), pa.array(whole).cast(pa.string()).cast(pa.binary())]
    if scale:
        digits = pc.utf8_lpad(pa.array(rest).cast(pa.string()), scale, "0")
        parts += [constant(b"."), digits.cast(pa.binary())]
    texts = joined(*parts, constant(b'"'))
    return texts if valid.all() else pc.if_else(pa.array(valid), texts, _nothing())


def _times(column: pa.Array) -> pa.Array | None:
    """Dates and timestamps of years with four digits; else None."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if column.type == DATE:
        micros = column.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        seconds, fractions = micros.astype("i8") * _DAY, None
    else:
        micros = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        seconds, fractions = np.divmod(micros, _SECOND)
    if len(seconds) and not _FIRST_SECOND <= seconds.min() <= seconds.max() < _LAST_SECOND:
        return None
    parts: list[pa.Array | pa.Scalar] = [constant(b'"'), _moments(seconds, column.type == DATE)]
    if fractions is not None:
        if fractions.any():
            parts.append(_fractions(fractions))
        if column.type == TIMESTAMP:
            parts.append(constant(b"Z"))
    texts = joined(*parts, constant(b'"'))
    return texts if valid.all() else pc.if_else(pa.array(valid), texts, _nothing())


def _moments(seconds: np.ndarray, dates: bool) -> pa.Array:
    """`2026-07-15T05:59:00` or the date alone."""
    width = 10 if dates else 19
    known = pa.array(seconds).dictionary_encode()
    texts = known.dictionary.cast(pa.timestamp("s")).cast(pa.string()).to_pylist()
    made = [text.replace(" ", "T", 1)[:width].encode() for text in texts]
    return bytes_array(made).take(known.indices)


def _fractions(micros: np.ndarray) -> pa.Array:
    """`.5` for half a second, nothing for none."""
    known = pa.array(micros).dictionary_encode()
    numbers = known.dictionary.to_pylist()
    texts = [b".%06d" % number if number else b"" for number in numbers]
    return bytes_array([text.rstrip(b"0") for text in texts]).take(known.indices)


def _chosen(mask: np.ndarray, no: pa.Scalar, yes: pa.Scalar) -> pa.Array | pa.Scalar:
    return pc.if_else(pa.array(mask), yes, no) if mask.any() else no


def _nothing() -> pa.Scalar:
    return pa.scalar(None, pa.binary())
