"""Generated decoders against the slow, general reader."""

from __future__ import annotations

import struct

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from tailrace.sources.postgres.columns import ColumnDecoder
from tailrace.sources.postgres.copy import Snapshot
from tailrace.sources.postgres.decoder import ColumnPlan, generate, masked
from tailrace.sources.postgres.pgoutput import read_values
from tailrace.sources.postgres.types import TypeTable

TYPES = TypeTable()
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = {
    23: st.integers(-(2**31), 2**31 - 1).map(str),
    1700: st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    25: TEXT,
    16: st.sampled_from(["t", "f"]),
    17: st.binary().map(lambda raw: "\\x" + raw.hex()),
    701: st.floats().map(lambda x: {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(x), repr(x))),
}  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], list[bool], list[int], list[str | bool | None]]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=8))
    captured = [draw(st.booleans()) for _ in types]
    key = draw(st.lists(st.sampled_from(range(len(types))), unique=True, max_size=3))
    values: list[str | bool | None] = []
    for number, kind in enumerate(types):
        choices = [VALUES[kind]]
        if number not in key:
            choices += [st.none()]
            if TYPES.toastable(kind):
                choices += [st.just(True)]
        values.append(draw(st.one_of(choices)))
    return types, captured, key, values


@given(tables())
def test_a_generated_decoder_reads_what_the_general_one_reads(
    table: tuple[list[int], list[bool], list[int], list[str | bool | None]],
) -> None:
    types, captured, key, values = table
    plans = [
        ColumnPlan(f'c"{i}', TYPES.splice(t), TYPES.converter(t), TYPES.toastable(t), captured[i])
        for i, t in enumerate(types)
    ]
    decoder = generate(plans, key)
    data = struct.pack(">H", len(values))
    for value in values:
        if isinstance(value, bool):
            data += b"u"
        elif value is None:
            data += b"n"
        else:
            raw = value.encode()
            data += b"t" + struct.pack(">I", len(raw)) + raw
    general, end = read_values(data + b"\0\0\0\0", 0)
    parsed = decoder.json_values(general)
    found_key, row, found_end = decoder.row(data + b"\0\0\0\0", 0)
    assert found_end == end == len(data)
    used = [captured[i] or i in key for i in range(len(types))]
    if any(isinstance(v, bool) and u for v, u in zip(values, used, strict=True)):
        assert row is None
        return
    assert found_key == decoder.key_of(parsed)
    assert row is not None
    assert orjson.loads(row) == orjson.loads(decoder.assemble(parsed))
    if not any(isinstance(v, bool) for v in values):
        escapes = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
        line = "\t".join(
            "\\N" if v is None else "".join(escapes.get(c, c) for c in str(v)) for v in values
        )
        assert decoder.line(line.encode()) == (found_key, row)


VALUES_OF_COLUMNS = {
    **VALUES,
    1082: st.sampled_from(["2026-11-15", "0044-03-15 BC", "infinity", "12026-01-01"]),
    1114: st.sampled_from(["2026-11-15 10:20:30", "2026-11-15 10:20:30.5", "-infinity",
                           "0044-03-15 10:20:30 BC", "12026-11-15 10:20:30"]),
    1184: st.sampled_from(["2026-11-15 10:20:30+00", "2026-11-15 10:20:30.123456+00", "infinity",
                           "0044-03-15 10:20:30+00 BC", "12026-11-15 10:20:30+00"]),
    3802: st.sampled_from(['{"a": 1}', "[]", '"\\\\ \\n"', "null"]),
}  # fmt: skip
SIMPLE = {25: st.sampled_from(["", "abc", "Zoë"]), 1082: st.just("2026-11-15"),
          1114: st.just("2026-11-15 10:20:30.5"), 1184: st.just("2026-11-15 10:20:30+00")}  # fmt: skip


@st.composite
def many_rows(draw: st.DrawFn) -> tuple[list[int], list[bool], list[int], list[list[str | None]]]:
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES_OF_COLUMNS)), min_size=1, max_size=5))
    captured = [draw(st.booleans()) for _ in kinds]
    key = draw(st.lists(st.sampled_from(range(len(kinds))), unique=True, max_size=2))
    columns = []
    for number, kind in enumerate(kinds):
        values = VALUES_OF_COLUMNS[kind]
        if kind in SIMPLE and draw(st.booleans()):
            values = SIMPLE[kind]  # so that whole columns are taken, too
        columns.append(values if number in key or draw(st.booleans()) else st.none() | values)
    rows = draw(st.lists(st.tuples(*columns).map(list), min_size=1, max_size=12))
    return kinds, captured, key, rows


@given(many_rows())
def test_columns_are_decoded_as_single_rows_are(
    table: tuple[list[int], list[bool], list[int], list[list[str | None]]],
) -> None:
    kinds, captured, key, rows = table
    plans = [
        ColumnPlan(f'c"{i}', TYPES.splice(t), TYPES.converter(t), TYPES.toastable(t), captured[i])
        for i, t in enumerate(kinds)
    ]
    single, columns = generate(plans, key), ColumnDecoder(plans, key)
    data, starts, lines = b"", [], b""
    escapes = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
    for row in rows:
        data += b"gap"
        starts.append(len(data))
        data += struct.pack(">H", len(row))
        for value in row:
            raw = b"" if value is None else value.encode()
            data += b"n" if value is None else b"t" + struct.pack(">I", len(raw)) + raw
        escaped = ["\\N" if v is None else "".join(escapes.get(c, c) for c in v) for v in row]
        lines += "\t".join(escaped).encode() + b"\n"
    data += bytes(5)
    expected = [single.row(data, start)[:2] for start in starts]
    for found in (columns.from_tuples(data, np.array(starts)), columns.from_lines(lines)):
        assert found is not None
        keys = [None] * len(rows) if found.key is None else found.key.to_pylist()
        assert list(zip(keys, found.objects().to_pylist(), strict=True)) == expected


def test_a_table_without_columns_has_rows_too() -> None:
    assert ColumnDecoder([], []).from_lines(b"\n\n").objects().to_pylist() == [b"{}", b"{}"]


@given(st.integers(0, 2**40), st.integers(-(2**30), 2**30))
def test_short_transaction_ids_are_widened_to_the_nearest(xmax: int, distance: int) -> None:
    xid = max(xmax + distance, 0)
    snapshot = Snapshot(0, xmax, frozenset())
    assert snapshot.widen(xid & 0xFFFFFFFF) == xid
    assert snapshot.sees(xid & 0xFFFFFFFF) == (xid < xmax)


def test_masks_hide_values_and_still_join() -> None:
    assert masked("null", b"s")(b"x") == b"null"
    assert masked("redact", b"s")(b"x") == b'"***"'
    assert masked("sha256", b"s")(b"x") == masked("sha256", b"s")(b"x")
    assert masked("sha256", b"s")(b"x") != masked("sha256", b"t")(b"x")
