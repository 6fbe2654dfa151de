"""The judge of views: the same query over the same tables, computed again by DuckDB.

It shares no code with the operators. Spark's SQL is translated by sqlglot; results are
compared as multisets of rows, numbers up to the last digits of a double.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from tailrace.pipelines.compiler.syntax.parse import AnsiSpark
from tailrace.pipelines.engine.graph import TableInput

Row = dict[str, Any]

# What DuckDB has under another name or in another form.
MACROS = """
    CREATE MACRO date_format(moment, form) AS strftime(moment, replace(replace(replace(replace(
        replace(form, 'yyyy', '%Y'), 'MM', '%m'), 'dd', '%d'), 'HH', '%H'), 'mm', '%M'))
"""


class Recompute:
    """Tables in DuckDB, under the names that views use for them."""

    def __init__(self, tables: Iterable[TableInput]) -> None:
        self._translated: dict[str, str] = {}
        self._tables = {table.topic: table for table in tables}
        self._database = duckdb.connect(config={"threads": 1})
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.execute(MACROS)

    def __enter__(self) -> Recompute:
        return self

    def __exit__(self, *problem: object) -> None:
        self._database.close()

    def rows(self, sql: str, contents: Mapping[str, Iterable[Row]]) -> list[tuple[Any, ...]]:
        """The result of Spark's `sql` over tables with these rows."""
        self.load(contents)
        return self.ask(sql)

    def load(self, contents: Mapping[str, Iterable[Row]]) -> None:
        """Let the tables hold these rows, for any number of questions."""
        for topic, table in self._tables.items():
            parts = topic.split(".")
            given = pa.Table.from_pylist(list(contents.get(topic, ())), schema=table.schema)
            self._database.register("given", given)
            name = f'"{parts[0]}"."{parts[-1]}"' if len(parts) > 1 else f'"{parts[0]}"'
            if len(parts) > 1:
                self._database.execute(f'CREATE SCHEMA IF NOT EXISTS "{parts[0]}"')
            self._database.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
            self._database.unregister("given")

    def set_clock(self, now: datetime.datetime) -> None:
        """What `tick_now()` and `tick_date()` are in questions: DuckDB's clock is its own."""
        for name, value in (
            ("tick_now", f"TIMESTAMPTZ '{now:%Y-%m-%d %H:%M:%S.%f}+00'"),
            ("tick_date", f"DATE '{now:%Y-%m-%d}'"),
        ):
            self._database.execute(f"CREATE OR REPLACE MACRO {name}() AS {value}")

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The result of Spark's `sql` over the tables as they are."""
        translated = self._translated.get(sql)
        if translated is None:
            # Every name is quoted: a column called `at` is a word of DuckDB's.
            translated = sqlglot.transpile(sql, read=AnsiSpark, write="duckdb", identify=True)[0]
            self._translated[sql] = translated
        return self._database.execute(translated).fetchall()


def as_bag(rows: Iterable[Iterable[Any]]) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset whose values compare across engines."""
    return Counter(tuple(comparable(value) for value in row) for row in rows)


def comparable(value: Any) -> Any:
    """A value such that equal numbers of any type are equal, doubles to 9 digits."""
    match value:
        case bool() | None:
            return value
        case int():
            return Decimal(value)
        case float():
            if not math.isfinite(value):
                return str(value)
            return Decimal(f"{value:.9g}") + 0
        case Decimal():
            return Decimal(f"{value:.9g}") + 0
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.UTC).replace(tzinfo=None)
        case list() | tuple():
            return tuple(comparable(part) for part in value)
        case dict():
            return tuple((name, comparable(part)) for name, part in value.items())
    return value
