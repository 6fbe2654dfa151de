"""Tables and views by the names that SQL uses for them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.compiler.expressions.functions import FunctionLike
from tailrace.pipelines.engine.graph import TableInput


class Catalog:
    """The tables of all sources (by topic: `shop.public.orders`), streams, and the project's views."""

    def __init__(
        self,
        tables: Iterable[TableInput],
        views: Mapping[str, str],
        functions: Iterable[FunctionLike] = (),
    ) -> None:
        self.functions = {function.name.lower(): function for function in functions}
        self._tables = {table.topic.lower(): table for table in tables}
        self._queries = {
            name.lower(): query
            for table in self._tables.values()
            if table.reading is not None
            for name, query in table.reading.queries(table.topic).items()
        }
        self._views = {name.lower(): name for name in views}

    @property
    def times(self) -> dict[str, tuple[str, str]]:
        """Topic and event-time column of the streams that declare one, by their names."""
        return {name: (t.topic, t.time) for name, t in self._tables.items() if t.time}

    def view(self, node: exp.Table) -> str | None:
        """The view of that bare name."""
        if node.db or node.catalog:
            return None
        return self._views.get(node.name.lower())

    def query(self, node: exp.Table) -> str | None:
        """The query that a name stands for: `accounts.deposited`, the events of one type."""
        name = ".".join(part.name.lower() for part in node.parts)
        return None if name in self._tables else self._queries.get(name)

    def table(self, context: Context, node: exp.Table) -> TableInput:
        """The table a name means: `shop.orders` is `shop.public.orders` when the source has
        one table of that name."""
        parts = [part.name.lower() for part in node.parts]
        name = ".".join(parts)
        if name in self._tables:
            return self._tables[name]
        found = []
        if len(parts) == 2:
            found = [
                table
                for known, table in self._tables.items()
                if known.split(".")[0] == parts[0] and known.split(".")[-1] == parts[1]
            ]
        elif len(parts) == 1:
            found = [t for known, t in self._tables.items() if known.split(".")[-1] == parts[0]]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(sorted(table.topic for table in found))
            raise context.name_error(f"table {name!r} could be several", node, f"one of {listed}")
        topics = [table.topic for table in self._tables.values()]
        known_names = sorted([*topics, *self._queries, *self._views.values()])
        near = difflib.get_close_matches(name, [*known_names, *self._short(known_names)], 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise context.table_error(
            f"there is no table or view {name!r}",
            node,
            f"{hint}known are: {', '.join(known_names)}",
        )

    def _short(self, names: list[str]) -> list[str]:
        """`source.table`, as most queries write it."""
        parts = [name.split(".") for name in names]
        return [f"{part[0]}.{part[-1]}" for part in parts if len(part) > 2]
