"""A source without a database: writes change topics the way capture does.

Every call of `transaction` is one log transaction with its cut, and `rows` is what the
tables hold afterwards: the naive twin that views are judged by (unless the feed is told not to
`remember`, for tables too large).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter

Row: TypeAlias = dict[str, Any]
Change: TypeAlias = "tuple[str, Mapping[str, Any], Row | None]"


@dataclass(frozen=True, slots=True)
class FeedTable:
    """A table: columns as (name, Spark type), and the names of its key columns."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    history: str | None = None


class ChangeFeed:
    """Writes tables of the schema `public` of one source. A context manager."""

    def __init__(
        self, bootstrap: str, source: str, tables: Iterable[FeedTable], *, partitions: int = 2,
        remember: bool = True,
    ) -> None:  # fmt: skip
        self.source = source
        self.tables = {table.name: table for table in tables}
        self.rows: dict[str, dict[bytes | None, Row]] = {name: {} for name in self.tables}
        self.remember = remember
        self.position = 0
        with Admin(bootstrap) as admin:
            for name, table in self.tables.items():
                policy = "compact" if table.key and table.history is None else "delete"
                admin.ensure_topic(self.topic(name), partitions, {"cleanup.policy": policy})
            admin.ensure_topic(f"{source}.schemas", 1, {"cleanup.policy": "compact"})
            admin.ensure_topic(f"{source}.transactions", 1, {})
        self._writer = TransactionalWriter(bootstrap, f"tailrace.{source}.feed")
        self._writer.init()
        self.describe()

    def __enter__(self) -> ChangeFeed:
        return self

    def __exit__(self, *exception: object) -> None:
        self._writer.close()

    def topic(self, table: str) -> str:
        return f"{self.source}.public.{table}"

    def describe(self, version: int = 1) -> None:
        """Write the tables' schemas."""
        for table in self.tables.values():
            name = f"public.{table.name}"
            document = {
                "source": self.source,
                "table": name,
                "topic": self.topic(table.name),
                "version": version,
                "position": self.text_position,
                "columns": [
                    {"name": n, "type": kind.lower(), "spark": kind, "nullable": True}
                    for n, kind in table.columns
                ],
                "key": list(table.key),
                **({} if table.history is None else {"history": table.history}),
            }
            key = orjson.dumps({"table": name, "version": version})
            self._writer.send(f"{self.source}.schemas", 0, key, orjson.dumps(document))
        self._writer.commit()

    @property
    def text_position(self) -> str:
        return f"pg:{self.source}:{self.position:016X}"

    def transaction(
        self, *changes: Change, copying: Iterable[str] = (), abort: bool = False,
        at_ms: int | None = None, copied: bool = False,
    ) -> str:  # fmt: skip
        """One transaction of (table, key columns, row or None); its position. `at_ms`: when it
        was committed. `copied`: its rows are those of a copy."""
        before = {name: dict(rows) for name, rows in self.rows.items()} if abort else None
        self.position += 1
        writer = self._writer
        for table, key_columns, row in changes:
            parts = {name: key_columns[name] for name in self.tables[table].key}
            key = orjson.dumps(parts) if parts else None
            old = self.rows[table].get(key) if parts else None
            op = "d" if row is None else "r" if copied else "c" if old is None else "u"
            full = None if row is None else {**key_columns, **row}
            envelope = {
                "before": None,
                "after": full,
                "op": op,
                "source": {
                    "name": self.source,
                    "table": table,
                    "commit_lsn": self.position,
                    "ts_ms": at_ms,
                },
                "ts_ms": 0,
            }
            writer.send(self.topic(table), None, key, orjson.dumps(envelope))
            if full is None:
                writer.send(self.topic(table), None, key, None)
                self.rows[table].pop(key, None)
            elif self.remember:
                self.rows[table][key] = full
        if before is not None:
            writer.flush()
            writer.abort()
            self.rows = before
            return self.text_position
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), end in writer.flush().items():
            offsets.setdefault(topic, {})[str(partition)] = end
        cut = {
            "status": "CUT",
            "source": self.source,
            "epoch": 1,
            "position": self.text_position,
            "offsets": offsets,
            "copying": [f"public.{table}" for table in copying],
            "ts_ms": 0,
        }
        writer.send(f"{self.source}.transactions", 0, None, orjson.dumps(cut))
        writer.commit()
        return self.text_position
