"""What the SQL targets share: names, types, and Arrow columns as drivers take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.records.rows import arrow_type, json_value
from tailrace.sinks.base import Shape, SinkPosition, decode_position
from tailrace.sinks.errors import ShapeError

POSITIONS = "_tailrace_positions"
NEXT = "__next"
PREVIOUS = "__previous"

SQLITE_TYPES = {
    "bool": "BOOLEAN", "int8": "BIGINT", "int16": "BIGINT", "int32": "BIGINT", "int64": "BIGINT",
    "float": "REAL", "double": "REAL", "string": "TEXT", "binary": "BLOB", "date": "TEXT",
    "timestamp": "TEXT", "decimal": "TEXT", "nested": "TEXT",
}  # fmt: skip
POSTGRES_TYPES = {
    "bool": "boolean", "int8": "smallint", "int16": "smallint", "int32": "integer",
    "int64": "bigint", "float": "real", "double": "double precision", "string": "text",
    "binary": "bytea", "date": "date", "timestamp": "timestamp", "timestamptz": "timestamptz",
    "decimal": "numeric({precision},{scale})", "nested": "jsonb",
}  # fmt: skip
MYSQL_TYPES = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
    "float": "DOUBLE", "double": "DOUBLE", "string": "LONGTEXT", "key": "VARCHAR(255)",
    "binary": "LONGBLOB", "date": "DATE", "timestamp": "DATETIME(6)",
    "decimal": "DECIMAL({precision},{scale})", "nested": "JSON",
}  # fmt: skip
DUCKDB_TYPES = {
    "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER",
    "int64": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR",
    "binary": "BLOB", "date": "DATE", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ",
    "decimal": "DECIMAL({precision},{scale})", "nested": "JSON",
}  # fmt: skip


def kept_position(position: SinkPosition, table: str) -> str:
    """A position as it is kept for a table: it says nothing about any other."""
    return orjson.dumps({**orjson.loads(position.encode()), "table": _base(table)}).decode()


def held_position(text: str | None, table: str) -> SinkPosition | None:
    """Read what `kept_position` wrote; None if it was kept for another table."""
    if text and orjson.loads(text).get("table", _base(table)) != _base(table):
        return None
    return decode_position(text)


def _base(table: str) -> str:
    return table.removesuffix(NEXT).removesuffix(PREVIOUS)


def family(kind: pa.DataType) -> str:
    """The word for an Arrow type in the tables above."""
    if pa.types.is_decimal(kind):
        return "decimal"
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz is not None else "timestamp"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_nested(kind):
        return "nested"
    return str(kind)


def sql_type(ddl: str, types: Mapping[str, str]) -> str:
    """A column type of the target for a type in Spark's words."""
    return type_word(arrow_type(ddl), types)


def type_word(kind: pa.DataType, types: Mapping[str, str]) -> str:
    """The word of the target for an Arrow type; Arrow's own for one it has none for."""
    word = family(kind)
    name = types.get(word) or types.get(word.removesuffix("tz")) or word
    if word == "decimal":
        return name.format(precision=kind.precision, scale=kind.scale)
    return name


def quoted(name: str, mark: str = '"') -> str:
    """A name as SQL takes it."""
    return mark + name.replace(mark, mark * 2) + mark


def quoted_table(name: str, mark: str = '"') -> str:
    """`schema.table` or `table`, each part quoted."""
    return ".".join(quoted(part, mark) for part in name.split("."))


def text_columns(table: pa.Table) -> pa.Table:
    """Everything that drivers and COPY know no type for, as text: decimals and times
    as in JSON rows, nested values as JSON."""
    columns: list[Any] = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_decimal(kind):
            column = pc.cast(column, pa.string())
        elif pa.types.is_timestamp(kind):
            zone = "Z" if kind.tz is not None else ""
            column = pc.strftime(column, format=f"%Y-%m-%dT%H:%M:%S{zone}")
        elif pa.types.is_date(kind):
            column = pc.cast(column, pa.string())
        elif pa.types.is_nested(kind):
            column = pa.array(
                [
                    None
                    if value is None
                    else orjson.dumps(json_value(_plain(value, kind))).decode()
                    for value in column.to_pylist()
                ],
                pa.string(),
            )
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.column_names)


def _plain(value: Any, kind: pa.DataType) -> Any:
    return dict(value) if pa.types.is_map(kind) else value


def python_rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples, as DB-API drivers take them."""
    if table.num_rows == 0:
        return []
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


def largest_row(rows: pa.Table) -> int:
    """About how many bytes the largest row has."""
    total = None
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            length = pc.cast(pc.fill_null(pc.binary_length(column), 0), pa.int64())
            total = length if total is None else pc.add(total, length)
    return 0 if total is None else int(pc.max(total).as_py() or 0)


def check_key(shape: Shape, table: str, unique: Sequence[frozenset[str]]) -> None:
    """The target must have a unique key on exactly the view's key columns."""
    if shape.key and frozenset(shape.key) not in unique:
        raise ShapeError(
            f"table {table!r} has no unique key ({', '.join(shape.key)})",
            detail="Rows are written under the view's key; without a unique key they could double.",
            hint=f"add one: ALTER TABLE {table} ADD UNIQUE ({', '.join(shape.key)})",
        )


def missing_columns(
    shape: Shape, held: Mapping[str, str], table: str, schema_change: str
) -> list[tuple[str, str]]:
    """Columns of the shape that the target lacks; `ShapeError` if they may not be added."""
    missing = [(name, kind) for name, kind in shape.columns if name not in held]
    if missing and schema_change not in ("add", "widen"):
        raise ShapeError(
            f"table {table!r} has no column {missing[0][0]!r}",
            detail=f"It has: {', '.join(held)}.",
            hint='add it, or declare the sink with schema_change="add"',
        )
    return missing


def split_unset(rows: pa.Table, key: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """Rows with a whole key, and rows with a NULL in it."""
    unset = None
    for name in key:
        if rows[name].null_count:
            nulls = pc.is_null(rows[name])
            unset = nulls if unset is None else pc.or_(unset, nulls)
    if unset is None:
        return rows, rows.slice(0, 0)
    return rows.filter(pc.invert(unset)), rows.filter(unset)
