"""A user's project in a test: its views over tables in memory, without Spark or a server.

    def test_open_orders(tailrace_project):
        shop = tailrace_project.tables({
            "shop.orders": "id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING",
            "shop.customers": "id BIGINT, country STRING",
        })
        shop.upsert("shop.customers", {"id": 1, "country": "NL"})
        shop.upsert("shop.orders", {"id": 7, "customer_id": 1, "amount": Decimal("9.99"), "status": "open"})
        shop.tick()
        assert shop.rows("open_orders") == [{"country": "NL", "orders": 1, "value": Decimal("9.99")}]

The operators are those that run on Spark, so what holds here holds there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.pipelines.incremental.compile import compile_views
from tailrace.project import graph
from tailrace.project.load import Project
from tailrace.testing.ticks import MemoryTables, table


@dataclass(frozen=True, slots=True)
class ProjectUnderTest:
    """A loaded project; `tables` runs its views over rows that a test gives."""

    project: Project

    def tables(
        self, columns: Mapping[str, str], keys: Mapping[str, Sequence[str]] | None = None
    ) -> ProjectTables:
        """Tables by name with their columns in Spark's DDL; the key is the first column
        unless `keys` says another. Views that read other tables are left out."""
        names = {name: self._topic(name) for name in columns}
        inputs = []
        for name, topic in names.items():
            first = columns[name].split()[0]
            inputs.append(table(topic, columns[name], (keys or {}).get(name, (first,))))
        given = set(names.values())
        chosen = []
        waiting = list(self.project.views.values())
        while True:
            fitting = [
                view
                for view in waiting
                if {graph.resolve_table(self.project, view, parts) for parts in graph.tables_of(view)} <= given
            ]  # fmt: skip
            if not fitting:
                break
            chosen += fitting
            given |= {view.name for view in fitting}
            waiting = [view for view in waiting if view not in fitting]
        return ProjectTables(MemoryTables(compile_views(chosen, inputs)), names)

    def _topic(self, name: str) -> str:
        if name in self.project.topics or name in self.project.streams:
            return name
        return graph.table_topic(self.project, name)


@dataclass(frozen=True, slots=True)
class ProjectTables:
    """Rows that change, and the views over them after each tick."""

    memory: MemoryTables
    names: Mapping[str, str]

    def upsert(self, name: str, row: dict[str, Any]) -> None:
        """Insert `row`, or replace the one with its key."""
        self.memory.upsert(self.names[name], row)

    def delete(self, name: str, row: dict[str, Any]) -> None:
        """Delete the row with the key of `row`."""
        self.memory.delete(self.names[name], row)

    def tick(self) -> None:
        """Bring the views up to date with everything since the last tick."""
        self.memory.tick()

    def rows(self, view: str) -> list[dict[str, Any]]:
        """The rows of a view, in no order."""
        return self.memory.rows(view)
