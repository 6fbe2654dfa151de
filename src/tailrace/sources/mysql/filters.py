"""`where=` of MySQL and MariaDB: which rows of the binlog fulfil a condition.

The server itself says so, since nobody else compares its texts by its collations: the columns that the
condition names go into a temporary table of the same types, rows as they come, and those that fulfil it
are selected. The condition must say the same of a row whenever it is asked: it may name the columns of
its table, constants, operators and the functions in `FUNCTIONS`, nothing else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tailrace.sources.declare import MySQL, for_table
from tailrace.sources.errors import SourceDeclarationError, SourceError
from tailrace.sources.mysql.fields import BINARIES, GEOMETRIES, STRINGS, Field
from tailrace.sources.mysql.server import Server, quoted

Row = dict[str, Any]

FUNCTIONS = frozenset(
    [
        "abs",
        "and",
        "any_value",
        "binary",
        "bit_count",
        "case",
        "cast",
        "ceil",
        "ceiling",
        "char",
        "char_length",
        "coalesce",
        "concat",
        "concat_ws",
        "convert",
        "crc32",
        "date",
        "date_add",
        "date_format",
        "date_sub",
        "datediff",
        "day",
        "dayofmonth",
        "dayofweek",
        "dayofyear",
        "elt",
        "extract",
        "field",
        "find_in_set",
        "floor",
        "format",
        "greatest",
        "hex",
        "hour",
        "if",
        "ifnull",
        "in",
        "inet6_aton",
        "inet6_ntoa",
        "inet_aton",
        "inet_ntoa",
        "instr",
        "interval",
        "is_ipv4",
        "is_ipv6",
        "isnull",
        "json_contains",
        "json_contains_path",
        "json_depth",
        "json_exists",
        "json_extract",
        "json_keys",
        "json_length",
        "json_overlaps",
        "json_search",
        "json_type",
        "json_unquote",
        "json_valid",
        "json_value",
        "last_day",
        "lcase",
        "least",
        "left",
        "length",
        "like",
        "locate",
        "lower",
        "lpad",
        "ltrim",
        "md5",
        "mid",
        "minute",
        "mod",
        "month",
        "monthname",
        "not",
        "nullif",
        "octet_length",
        "ord",
        "or",
        "position",
        "pow",
        "power",
        "quarter",
        "regexp",
        "regexp_instr",
        "regexp_like",
        "regexp_replace",
        "regexp_substr",
        "repeat",
        "replace",
        "reverse",
        "right",
        "rlike",
        "round",
        "rpad",
        "rtrim",
        "second",
        "sha",
        "sha1",
        "sha2",
        "sign",
        "sqrt",
        "strcmp",
        "str_to_date",
        "substr",
        "substring",
        "substring_index",
        "then",
        "when",
        "else",
        "time",
        "timestampdiff",
        "trim",
        "truncate",
        "ucase",
        "unhex",
        "upper",
        "values",
        "week",
        "weekday",
        "xor",
        "year",
        "decimal",
        "numeric",
        "between",
        "div",
        "all",
    ]
)
_FORBIDDEN = frozenset(
    [
        "select",
        "with",
        "table",
        "from",
        "union",
        "exists",
        "current_date",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "utc_date",
        "utc_time",
        "utc_timestamp",
        "user",
        "session_user",
        "system_user",
        "into",
        "limit",
        "procedure",
        "lock",
        "for",
    ]
)
_TEXT = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)
_NAME = re.compile(r"`((?:[^`]|``)+)`|([A-Za-z_$\x80-\U0010ffff][\w$\x80-\U0010ffff]*)(\s*\()?")
_MOST_HELD = 5_000
_ROW = "_tailrace_row"


def words(condition: str) -> tuple[set[str], str | None]:
    """The names that a condition uses, in small letters, and the first that it may not use."""
    plain = _TEXT.sub("''", condition)
    found: set[str] = set()
    for mark in ("@", ";", "--", "#", "/*", "'" if plain.replace("''", "").count("'") else "\0"):
        if mark in plain:
            return found, mark
    for backticked, word, called in _NAME.findall(plain):
        name = (backticked.replace("``", "`") or word).lower()
        if not backticked and (name in _FORBIDDEN or (called and name not in FUNCTIONS)):
            return found, name
        found.add(name)
    return found, None


def condition_of(source: MySQL, schema: str, table: str) -> str | None:
    """The declared condition of a table."""
    found = for_table(source.where, schema, table)
    return None if found is None else str(found)


@dataclass(slots=True)
class RowFilter:
    """Of one form of a table. `columns` are those that the condition names."""

    server: Server
    name: str
    place: str
    condition: str
    columns: Sequence[Field]
    reached: int = 0

    def passes(self, rows: Sequence[Row]) -> list[bool]:
        """For each row whether it fulfils the condition; NULL does not."""
        if self.reached > _MOST_HELD:
            self.server.rows(f"DELETE FROM {self.place}")
            self.reached = 0
        first = self.reached
        self.reached += len(rows)
        names = ", ".join([_ROW, *(quoted(one.name) for one in self.columns)])
        texts = [
            f"({number}, {', '.join(_literal(one, row[one.name]) for one in self.columns)})"
            for number, row in enumerate(rows, first)
        ]
        self.server.rows(f"INSERT INTO {self.place} ({names}) VALUES {', '.join(texts)}")
        found = self.server.rows(self._query(f" AND {_ROW} >= {first}"))
        good = {int(one) for (one,) in found}
        return [number in good for number in range(first, self.reached)]

    def _query(self, more: str = "") -> str:
        table = quoted(self.name.partition(".")[2])
        return f"SELECT {_ROW} FROM {self.place} AS {table} WHERE ({self.condition}){more}"

    def check(self) -> None:
        try:
            self.server.rows(self._query())
        except SourceError as error:
            if error.code != "source":
                raise
            raise _wrong(self.name, error.detail, "correct the condition") from error


class RowFilters:
    """The filters of a source, over a connection of their own."""

    def __init__(self, source: MySQL, connect: Callable[[], Server]) -> None:
        self._source = source
        self._connect = connect
        self._server: Server | None = None
        self._made = 0

    def find(self, schema: str, table: str, fields: Sequence[Field]) -> RowFilter | None:
        """The filter of a table in a form; None if all its rows are captured."""
        condition = condition_of(self._source, schema, table)
        if condition is None:
            return None
        name = f"{schema}.{table}"
        used, refused = words(condition)
        if refused is not None:
            raise _wrong(
                name,
                f"it uses {refused!r}, which may say something else each time it is asked",
                "use the columns of the row, constants, operators and plain functions",
            )
        columns = [one for one in fields if one.name.lower() in used]
        strange = [one.name for one in columns if one.kind in (*GEOMETRIES, "vector")]
        if strange or not columns:
            what = f"{strange[0]} is no column to compare" if strange else "it names no column"
            raise _wrong(name, what, "name columns of numbers, texts, times")
        if self._server is None:
            self._server = self._connect()
        self._made += 1
        place = f"{quoted(schema)}.{quoted(f'_tailrace_rows_{self._made}')}"
        said = {
            str(column): (str(charset), str(collation))
            for column, charset, collation in self._server.rows(
                "SELECT column_name, character_set_name, collation_name FROM "
                "information_schema.columns WHERE table_schema = %s AND table_name = %s "
                "AND collation_name IS NOT NULL",
                (schema, table),
            )
        }
        parts = ", ".join(_definition(one, said) for one in columns)
        self._server.rows(
            f"CREATE TEMPORARY TABLE {place} ({_ROW} INT NOT NULL PRIMARY KEY, {parts})"
        )
        made = RowFilter(self._server, name, place, condition, columns)
        made.check()
        return made

    def close(self) -> None:
        if self._server is not None:
            self._server.connection.close()
            self._server = None


def _definition(field: Field, said: Mapping[str, tuple[str, str]]) -> str:
    text = f"{quoted(field.name)} {field.type}"
    if field.name in said and field.kind in (*STRINGS, "enum", "set"):
        charset, collation = said[field.name]
        text += f" CHARACTER SET {charset} COLLATE {collation}"
    elif field.kind in STRINGS and field.charset is not None:
        text += f" CHARACTER SET {field.charset.name}"
    return text + " NULL"


def _literal(field: Field, value: Any) -> str:
    """A value as the binlog gave it, as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, int | float):
        return repr(value)
    if field.kind in BINARIES:
        data = base64.b64decode(value)
        return f"X'{data.hex()}'" if data else "''"
    if field.kind == "decimal":
        return str(value)
    if field.kind == "bit":
        return f"b'{value}'"
    if field.kind == "timestamp":
        value = str(value).removesuffix("Z")
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)" if text else "''"


def _wrong(name: str, detail: str, hint: str) -> SourceDeclarationError:
    return SourceDeclarationError(
        f'where= of table "{name}" cannot be used', detail=detail, hint=hint
    )
