from __future__ import annotations

import pytest

from tailrace.records.stream_columns import (
    decode_versions,
    encode_versions,
    holds,
    kind_in,
    merged,
    wider,
    with_version,
)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("INT", "BIGINT", "BIGINT"),
        ("TINYINT", "SMALLINT", "SMALLINT"),
        ("INT", "DOUBLE", "DOUBLE"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("DECIMAL(6,2)", "DECIMAL(8,4)", "DECIMAL(8,4)"),
        ("DECIMAL(10,2)", "DECIMAL(8,4)", "DECIMAL(12,4)"),
        ("DECIMAL(38,0)", "DECIMAL(38,10)", "STRING"),
        ("DATE", "STRING", "STRING"),
        ("VOID", "DATE", "DATE"),
        ("INT", "DECIMAL(6,2)", "STRING"),
    ],
)
def test_the_wider_of_two_types_holds_both(one: str, other: str, both: str) -> None:
    assert wider(one, other) == wider(other, one) == both


def test_versions_survive_the_log_and_the_newest_is_last() -> None:
    first, second = (("id", "INT"),), (("id", "BIGINT"), ("at", "TIMESTAMP"))
    versions = with_version(with_version([], first), second)
    assert decode_versions(encode_versions(versions)) == [first, second]
    assert with_version(versions, first) == [second, first]
    assert merged(versions) == {"id": "BIGINT", "at": "TIMESTAMP"}
    assert decode_versions(None) == []


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("INT", 2**31 - 1, True), ("INT", 2**31, False), ("INT", -(2**31), True), ("INT", True, False),
        ("DOUBLE", "NaN", True), ("DOUBLE", "x", False), ("BOOLEAN", 1, False), ("DATE", "2026-01-01", True),
        ("DECIMAL(6,2)", 1.5, False), ("ARRAY<INT>", [1], True), ("STRUCT<a: INT>", {"a": 1}, True),
        ("MAP<STRING, INT>", [], False), ("INT", None, True), ("STRING", 5, True),
    ],
)  # fmt: skip
def test_a_described_type_is_taken_while_it_holds_the_values(
    kind: str, value: object, fits: bool
) -> None:
    assert holds(kind, value) is fits
    found = kind_in({"c": kind}, "c", value)
    assert (found == kind) is fits or found == "STRING"


def test_rows_that_a_described_type_does_not_hold_widen_it() -> None:
    assert kind_in({"n": "INT"}, "n", 2**40) == "BIGINT"
    assert kind_in({"n": "INT"}, "n", 1.5) == "DOUBLE"
    assert kind_in({"n": "INT"}, "n", "old") == "STRING"
    assert kind_in({}, "n", 7) == "BIGINT"
