"""Every built-in type has one JSON form, the same from a copy and from the stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.postgres import PostgresServer, start_postgres
from tailrace.sources.postgres.types import TypeTable, array, composite, text

FORMS: list[tuple[str, str, Any]] = [
    ("smallint", "-32768", -32768),
    ("integer", "2147483647", 2147483647),
    ("bigint", "-9223372036854775808", -9223372036854775808),
    ("oid", "4294967295", 4294967295),
    ("real", "'1.5'", 1.5),
    ("real", "'NaN'", "NaN"),
    ("double precision", "'0.1'", 0.1),
    ("double precision", "'1e300'", 1e300),
    ("double precision", "'1e-7'", 1e-7),
    ("double precision", "'Infinity'", "Infinity"),
    ("double precision", "'-Infinity'", "-Infinity"),
    ("numeric", "'12345678901234567890.123456789'", "12345678901234567890.123456789"),
    ("numeric(10,2)", "'1.5'", "1.50"),
    ("numeric", "'NaN'", "NaN"),
    ("numeric", "'Infinity'", "Infinity"),
    ("money", "'-1234567.89'", "-1234567.89"),
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("text", "E'quote \" back \\\\ tab \\t line \\n é ☃ 😀 \\x01'", 'quote " back \\ tab \t line \n é ☃ 😀 \x01'),
    ("text", "''", ""),
    ("varchar(10)", "'abc'", "abc"),
    ("char(5)", "'ab'", "ab   "),
    ('"char"', "'x'", "x"),
    ("name", "'n'", "n"),
    ("uuid", "'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("date", "'2026-11-15'", "2026-11-15"),
    ("date", "'infinity'", "infinity"),
    ("date", "'0044-03-15 BC'", "-0044-03-15"),
    ("date", "'10000-01-01'", "10000-01-01"),
    ("time", "'10:20:30.5'", "10:20:30.5"),
    ("timetz", "'10:20:30+02'", "10:20:30+02"),
    ("timestamp", "'2026-11-15 10:20:30.123456'", "2026-11-15T10:20:30.123456"),
    ("timestamp", "'infinity'", "infinity"),
    ("timestamp", "'0044-03-15 12:00:00 BC'", "-0044-03-15T12:00:00"),
    ("timestamptz", "'2026-11-15 10:20:30.123456+02'", "2026-11-15T08:20:30.123456Z"),
    ("timestamptz", "'-infinity'", "-infinity"),
    ("timestamptz", "'0044-03-15 12:00:00+00 BC'", "-0044-03-15T12:00:00Z"),
    ("timestamptz", "'1800-01-01 00:00:00+00'", "1800-01-01T00:00:00Z"),
    ("interval", "'1 year 2 months 3 days 04:05:06.5'", "P1Y2M3DT4H5M6.5S"),
    ("interval", "'-1 month +2 days'", "P-1M2D"),
    ("interval", "'40 days 30 hours'", "P40DT30H"),
    ("bytea", "'\\x00ff10'", "AP8Q"),
    ("bytea", "''", ""),
    ("json", "'{\"b\": [1, 2.50, null], \"a\": \"é\"}'", {"b": [1, 2.5, None], "a": "é"}),
    ("jsonb", "'[true, {\"x\": \"y\\\\z\"}]'", [True, {"x": "y\\z"}]),
    ("jsonb", "'\"text\"'", "text"),
    ("inet", "'192.168.0.1/24'", "192.168.0.1/24"),
    ("cidr", "'10.0.0.0/8'", "10.0.0.0/8"),
    ("macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
    ("macaddr8", "'08:00:2b:01:02:03:04:05'", "08:00:2b:01:02:03:04:05"),
    ("bit(4)", "B'1010'", "1010"),
    ("varbit", "B'101'", "101"),
    ("tsvector", "'a fat cat'::tsvector", "'a' 'cat' 'fat'"),
    ("tsquery", "'fat & rat'::tsquery", "'fat' & 'rat'"),
    ("point", "'(1,2)'", "(1,2)"),
    ("box", "'(1,1),(0,0)'", "(1,1),(0,0)"),
    ("int4range", "'[1,10)'", "[1,10)"),
    ("tstzrange", "'[2026-01-01 00:00+00,)'", '["2026-01-01 00:00:00+00",)'),
    ("int4multirange", "'{[1,3), [5,7)}'", "{[1,3),[5,7)}"),
    ("int4[]", "'{1,NULL,3}'", [1, None, 3]),
    ("int4[]", "'{}'", []),
    ("int4[]", "'{{1,2},{3,4}}'", [[1, 2], [3, 4]]),
    ("int4[]", "'[0:1]={7,8}'", [7, 8]),
    ("text[]", """'{"a,b","c\\"d",NULL,"NULL","","back\\\\slash"}'""", ["a,b", 'c"d', None, "NULL", "", "back\\slash"]),
    ("numeric[]", "'{1.50,NaN}'", ["1.50", "NaN"]),
    ("bool[]", "'{t,f}'", [True, False]),
    ("timestamptz[]", "'{2026-11-15 10:20:30+00}'", ["2026-11-15T10:20:30Z"]),
    ("bytea[]", "ARRAY['\\x00ff'::bytea]", ["AP8="]),
    ("jsonb[]", """ARRAY['{"a": 1}'::jsonb]""", [{"a": 1}]),
    ("box[]", "'{(1,1),(0,0);(2,2),(1,1)}'", ["(1,1),(0,0)", "(2,2),(1,1)"]),
    ("mood", "'so \"so\"'", 'so "so"'),
    ("mood[]", """'{happy,"so \\"so\\""}'""", ["happy", 'so "so"']),
    ("positive", "7", 7),
    ("price", "'9.9'", "9.90"),
    ("address", "ROW('Main \"St\" 1, a', 12, NULL)", {"street": 'Main "St" 1, a', "number": 12, "at": None}),
    ("address[]", "ARRAY[ROW('x', 1, '2026-11-15 10:00:00+00')::address]", [{"street": "x", "number": 1, "at": "2026-11-15T10:00:00Z"}]),
    ("house", "ROW(ROW('a(b)c', 2, NULL)::address, '{1,2}')", {"where": {"street": "a(b)c", "number": 2, "at": None}, "rooms": [1, 2]}),
    ("pg_lsn", "'0/16B3748'", "0/16B3748"),
    ("int2vector", "'1 2'", "1 2"),
    ("xid8", "'12345'", 12345),
]  # fmt: skip

# The wheel's server is built without libxml, and has no contrib extensions.
ON_DEBIAN: list[tuple[str, str, Any]] = [
    ("xml", "'<a b=\"1\">x</a>'", '<a b="1">x</a>'),
    ("hstore", "'a=>1, b=>NULL'", '"a"=>"1", "b"=>NULL'),
]

PREPARE = [
    "CREATE TYPE mood AS ENUM ('happy', 'so \"so\"')",
    "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
    "CREATE DOMAIN price AS numeric(10,2)",
    "CREATE TYPE address AS (street text, number int, at timestamptz)",
    'CREATE TYPE house AS ("where" address, rooms int[])',
]


@pytest.fixture(scope="module", params=[15, 18])
def postgres_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    yield from start_postgres(request.param)


def test_every_type_has_its_documented_form(
    postgres_server: PostgresServer, shared: Any, tmp_path: Path
) -> None:
    from servers.capture import SMALL, Database, Running
    from tailrace.sources import Postgres

    database = Database(postgres_server, "types", postgres_server.create_database("types"))
    forms = FORMS
    if database.connection.info.server_version < 160000:
        database.run("CREATE EXTENSION hstore")
        forms = FORMS + ON_DEBIAN
    columns = ", ".join(f"c{i} {kind}" for i, (kind, _, _) in enumerate(forms))
    values = ", ".join(literal for _, literal, _ in forms)
    database.run(
        *PREPARE,
        f"CREATE TABLE forms (id int PRIMARY KEY, {columns})",
        f"INSERT INTO forms VALUES (1, {values})",
        "INSERT INTO forms (id) VALUES (2)",
    )
    try:
        with Running(
            Postgres("shop", database.dsn, tables=["forms"]), shared, tmp_path, SMALL
        ) as running:
            running.copied()
            database.run(
                f"INSERT INTO forms VALUES (3, {values})", "INSERT INTO forms (id) VALUES (4)"
            )
            running.reach(database.position())
        rows = {row["id"]: row for row in running.written.table("public.forms")}
        for identifier in (1, 3):
            for number, (kind, literal, expected) in enumerate(forms):
                found = rows[identifier][f"c{number}"]
                assert found == expected, f"{kind} {literal}: {found!r}"
                assert type(found) is type(expected), f"{kind} {literal}: {found!r}"
        assert set(rows[2].values()) == {2, None}
        assert set(rows[4].values()) == {4, None}
        running.written.check()
    finally:
        database.connection.close()
        postgres_server.drop_database("types")


@given(
    st.recursive(
        st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        lambda inner: st.lists(inner, min_size=1, max_size=3),
        max_leaves=6,
    ).filter(lambda v: isinstance(v, list))
)
def test_array_text_is_read_back(value: list[Any]) -> None:
    import orjson

    def written(item: Any) -> str:
        if item is None:
            return "NULL"
        if isinstance(item, list):
            return "{" + ",".join(map(written, item)) + "}"
        return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'

    assert orjson.loads(array(text)(written(value).encode())) == value


@given(
    st.lists(
        st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        min_size=1,
        max_size=5,
    )
)
def test_composite_text_is_read_back(values: list[str | None]) -> None:
    import orjson

    def written(item: str | None) -> str:
        if item is None:
            return ""
        return '"' + item.replace("\\", "\\\\").replace('"', '""') + '"'

    fields = tuple((b'"f%d"' % i, text) for i in range(len(values)))
    found = orjson.loads(composite(fields)(f"({','.join(map(written, values))})".encode()))
    assert list(found.values()) == values


def test_a_type_never_seen_is_a_string() -> None:
    assert TypeTable().converter(999_999)(b'a "b"') == b'"a \\"b\\""'
    assert TypeTable().spark(999_999) == "STRING"
