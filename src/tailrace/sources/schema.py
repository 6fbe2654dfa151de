"""Tables as versions of columns, and the record of each version in `<source>.schemas`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from tailrace.records.topic_names import topic_name


@dataclass(frozen=True, slots=True)
class Column:
    """`type` in the database's words, `spark` the Spark type of its JSON form."""

    name: str
    type: str
    spark: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table. Rows name the version they were written in."""

    source: str
    schema: str
    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    version: int = 1
    # How long every change is kept ("forever", "90 days"); None: the last of each key.
    history: str | None = None

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def topic(self) -> str:
        return topic_name(self.source, self.schema, self.table)

    def same_shape(self, other: TableSchema) -> bool:
        return self.columns == other.columns and self.key == other.key

    def record(self, position: str) -> tuple[bytes, bytes]:
        """Key and value of this version in the schema topic."""
        key = orjson.dumps({"table": self.name, "version": self.version})
        value = orjson.dumps(
            {
                "source": self.source,
                "schema": self.schema,
                "table": self.name,
                "topic": self.topic,
                "version": self.version,
                "position": position,
                "columns": [
                    {"name": c.name, "type": c.type, "spark": c.spark, "nullable": c.nullable}
                    for c in self.columns
                ],
                "key": list(self.key),
                "history": self.history,
            }
        )
        return key, value


def new_columns(known: TableSchema, shape: TableSchema) -> list[str]:
    """Columns that the earlier version does not have, or has with another type."""
    earlier = {(column.name, column.spark) for column in known.columns}
    return [c.name for c in shape.columns if (c.name, c.spark) not in earlier]


def read_record(value: bytes) -> TableSchema:
    """A version from its record in the schema topic."""
    document: dict[str, Any] = orjson.loads(value)
    name: str = document["table"]
    schema: str = document.get("schema", name.partition(".")[0])
    table = name[len(schema) + 1 :]
    return TableSchema(
        document["source"],
        schema,
        table,
        tuple(Column(c["name"], c["type"], c["spark"], c["nullable"]) for c in document["columns"]),
        tuple(document["key"]),
        document["version"],
        document.get("history"),
    )
