from __future__ import annotations

import pytest

from tailrace.sinks.widen import change_of


@pytest.mark.parametrize(
    ("held", "wanted", "change"),
    [
        ("integer", "bigint", "widen"),
        ("bigint", "integer", "keep"),
        ("int(11)", "BIGINT", "widen"),
        ("tinyint(1)", "BOOLEAN", "keep"),
        ("real", "double precision", "widen"),
        ("integer", "double precision", "widen"),
        ("double precision", "bigint", "keep"),
        ("numeric(6,2)", "numeric(14,2)", "widen"),
        ("numeric(14,2)", "numeric(6,2)", "keep"),
        ("numeric(14,2)", "numeric(14,6)", "park"),
        ("numeric", "numeric(38,10)", "keep"),
        ("numeric(20,0)", "bigint", "keep"),
        ("integer", "numeric(12,2)", "widen"),
        ("bigint", "numeric(6,2)", "park"),
        ("numeric(12,2)", "double precision", "park"),
        ("date", "timestamp", "widen"),
        ("timestamp without time zone", "timestamptz", "keep"),
        ("boolean", "text", "widen"),
        ("bigint", "text", "widen"),
        ("text", "bigint", "keep"),
        ("character varying(10)", "text", "keep"),
        ("date", "boolean", "park"),
        ("uuid", "text", "keep"),
        ("hstore", "bigint", "keep"),
    ],
)
def test_a_column_is_kept_widened_or_parked_at(held: str, wanted: str, change: str) -> None:
    assert change_of(held, wanted) == change
