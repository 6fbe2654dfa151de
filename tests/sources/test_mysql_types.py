"""Every type of MySQL and MariaDB by value, alike from the copy and from the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from servers.binlog import MySQLCase

# Column, SQL value, JSON value.
COMMON: list[tuple[str, str, Any]] = [
    ("tinyint", "-128", -128),
    ("tinyint unsigned", "255", 255),
    ("smallint", "-32768", -32768),
    ("mediumint", "-8388608", -8388608),
    ("mediumint unsigned", "16777215", 16777215),
    ("int", "-2147483648", -2147483648),
    ("int unsigned zerofill", "42", 42),
    ("bigint", "-9223372036854775808", -9223372036854775808),
    ("bigint unsigned", "18446744073709551615", 18446744073709551615),
    ("float", "0.1", 0.1),
    ("float", "3.4e38", 3.4e38),
    ("double", "0.1", 0.1),
    ("double", "-1.7976931348623157e308", -1.7976931348623157e308),
    ("decimal(65,30)", "'-12345678901234567890123456789012345.1'", "-12345678901234567890123456789012345.100000000000000000000000000000"),
    ("decimal(10,2)", "0", "0.00"),
    ("decimal(5,5)", "-0.00001", "-0.00001"),
    ("decimal(9,0)", "-999999999", "-999999999"),
    ("decimal(8,3) zerofill", "1.5", "1.500"),
    ("bit(1)", "b'1'", "1"),
    ("bit(12)", "b'101'", "000000000101"),
    ("bit(64)", "b'1'", "0" * 63 + "1"),
    ("year", "1901", 1901),
    ("year", "0", 0),
    ("date", "'2024-02-29'", "2024-02-29"),
    ("date", "'0000-00-00'", "0000-00-00"),
    ("datetime", "'9999-12-31 23:59:59'", "9999-12-31T23:59:59"),
    ("datetime(6)", "'2024-01-02 03:04:05.000007'", "2024-01-02T03:04:05.000007"),
    ("datetime(3)", "'0000-00-00 00:00:00'", "0000-00-00T00:00:00.000"),
    ("datetime(1)", "'2024-01-02 03:04:05.6'", "2024-01-02T03:04:05.6"),
    ("timestamp(2) null", "'2024-07-01 12:00:00.25'", "2024-07-01T12:00:00.25Z"),
    ("timestamp null", "'0000-00-00 00:00:00'", "0000-00-00T00:00:00Z"),
    ("time", "'-838:59:59'", "-838:59:59"),
    ("time(6)", "'-00:00:00.000001'", "-00:00:00.000001"),
    ("time(3)", "'101:02:03.4'", "101:02:03.400"),
    ("char(5) character set utf8mb4", "'aé😀 '", "aé😀"),
    ("char(100) character set utf8mb4", "'x'", "x"),
    ("varchar(20) character set latin1", "'€é'", "€é"),
    ("varchar(300) character set utf8mb4", "'line\\n\"quoted\"'", 'line\n"quoted"'),
    ("varchar(20) character set utf16", "'é😀'", "é😀"),
    ("varchar(20) character set cp1251", "'Привет'", "Привет"),
    ("varchar(20) character set sjis", "'日本'", "日本"),
    ("varchar(20) character set gbk", "'中文'", "中文"),
    ("varchar(20) character set koi8r", "'Привет'", "Привет"),
    ("tinytext", "'t'", "t"),
    ("longtext character set ucs2", "repeat('é', 70000)", "é" * 70000),
    ("text character set greek", "'αβγ'", "αβγ"),
    ("binary(4)", "X'01'", "AQAAAA=="),
    ("binary(4)", "X''", "AAAAAA=="),
    ("varbinary(10)", "X'00ff00'", "AP8A"),
    ("blob", "X'000102'", "AAEC"),
    ("enum('a','b''c','ü')", "'b''c'", "b'c"),
    ("enum('a','ü') character set latin1", "'ü'", "ü"),
    ("set('x','y','z')", "'z,x'", "x,z"),
    ("set('x')", "''", ""),
    ("int generated always as (7 + 1) virtual", "DEFAULT", 8),
    ("int generated always as (7 + 2) stored", "DEFAULT", 9),
    ("point", "ST_GeomFromText('POINT(1 2)')", {"srid": 0, "wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA"}),
    ("json", """'{"a": [1, -2.5, "x", null, true, {"b": 18446744073709551615}], "é": ""}'""",
     {"a": [1, -2.5, "x", None, True, {"b": 18446744073709551615}], "é": ""}),
    ("json", "'[]'", []),
    ("json", "'\"text\"'", "text"),
]  # fmt: skip
MARIADB: list[tuple[str, str, Any]] = [
    ("uuid", "'123e4567-e89b-12d3-a456-426655440000'", "123e4567-e89b-12d3-a456-426655440000"),
    ("uuid", "'018f4567-e89b-7cd3-a456-426655440000'", "018f4567-e89b-7cd3-a456-426655440000"),
    ("uuid", "'00000000-0000-0000-0000-000000000000'", "00000000-0000-0000-0000-000000000000"),
    ("uuid", "'550e8400-e29b-41d4-a716-446655440000'", "550e8400-e29b-41d4-a716-446655440000"),
    ("uuid", "'ffffffff-ffff-ffff-ffff-ffffffffff00'", "ffffffff-ffff-ffff-ffff-ffffffffff00"),
    ("uuid", "'12345678-1234-1234-1234-1234567890ab'", "12345678-1234-1234-1234-1234567890ab"),
    ("inet4", "'10.0.0.0'", "10.0.0.0"),
    ("inet6", "'::ffff:192.0.2.1'", "::ffff:192.0.2.1"),
    ("inet6", "'2001:db8::'", "2001:db8::"),
    ("varchar(500) compressed", "repeat('ab', 200)", "ab" * 200),
    ("varchar(50) compressed", "'é'", "é"),
    ("text compressed", "repeat('é', 3000)", "é" * 3000),
    ("blob compressed", "X'0001'", "AAE="),
    ("int invisible", "5", 5),
]  # fmt: skip
MYSQL: list[tuple[str, str, Any]] = [
    ("vector(3)", "STRING_TO_VECTOR('[0.1,-2,3]')", [0.1, -2.0, 3.0]),
    ("int invisible", "5", 5),
    ("json", "JSON_OBJECT('d', CAST(1.10 AS DECIMAL(5,2)), 't', CAST('2024-01-02 03:04:05.6' AS DATETIME(6)), "
     "'day', CAST('2024-01-02' AS DATE), 'time', CAST('-10:11:12' AS TIME))",
     {"d": 1.1, "t": "2024-01-02 03:04:05.600000", "day": "2024-01-02", "time": "-10:11:12.000000"}),
    ("json", "CONCAT('[', REPEAT('123456,', 20000), '70000]')", [123456] * 20000 + [70000]),
]  # fmt: skip


def test_every_type_is_alike_from_the_copy_and_from_the_stream(
    binlog_case: Callable[..., MySQLCase],
) -> None:
    case = binlog_case("items")
    columns = [*COMMON, *(MARIADB if case.server.mariadb else MYSQL)]
    listed = ", ".join(f"c{n} {kind}" for n, (kind, _, _) in enumerate(columns))
    names = ", ".join(f"c{n}" for n in range(len(columns)))
    row = ", ".join(value for _, value, _ in columns)
    nulls = ", ".join("DEFAULT" if "generated" in kind else "NULL" for kind, _, _ in columns)
    case.execute(f"CREATE TABLE items (id INT PRIMARY KEY, {listed}) DEFAULT CHARSET=utf8mb4")
    case.execute(
        f"INSERT INTO items (id, {names}) VALUES (1, {row})",
        f"INSERT INTO items (id, {names}) VALUES (2, {nulls})",
    )
    with case.capture() as running:
        running.copied()
        case.execute(
            f"INSERT INTO items (id, {names}) VALUES (3, {row})",
            f"INSERT INTO items (id, {names}) VALUES (4, {nulls})",
            "UPDATE items SET id = 5 WHERE id = 3",
        )
        running.reach(case.position())
    found = {row["id"]: row for row in running.written.table(f"{case.schema}.items")}
    expected = {f"c{n}": value for n, (_, _, value) in enumerate(columns)}
    for number in (1, 5):
        different = {
            columns[int(name[1:])][0]: (found[number][name], value)
            for name, value in expected.items()
            if found[number][name] != value
        }
        assert not different, f"row {number}"
    assert {n: v for n, v in found[2].items() if n != "id"} == {
        n: v for n, v in found[4].items() if n != "id"
    }
    assert len(running.written.shared.values("shop.schemas")) == 1
    running.written.check()
