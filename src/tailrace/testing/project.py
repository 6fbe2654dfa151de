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
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from tailrace.errors import UsageError
from tailrace.facts.declare import Events
from tailrace.facts.event_types import encode_json
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.declare import EventTime, Topic
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.decode import decode
from tailrace.pipelines.reading.reader import Records
from tailrace.pipelines.values.columns import VERSIONED_AT
from tailrace.project import graph
from tailrace.project.event_tables import event_tables
from tailrace.project.load import Project
from tailrace.records.decode import Headers
from tailrace.records.event_headers import EVENT, META, VERSION
from tailrace.testing.events import MemoryEvents
from tailrace.testing.percolations import MemoryPercolation
from tailrace.testing.ticks import MemoryTables, table


@dataclass(frozen=True, slots=True)
class ProjectUnderTest:
    """A loaded project; `tables` runs its views over rows that a test gives."""

    project: Project

    def tables(
        self, columns: Mapping[str, str], keys: Mapping[str, Sequence[str]] | None = None
    ) -> ProjectTables:
        """Tables by name with their columns in Spark's DDL; the key is the first column
        unless `keys` says another. Topics with a schema are there as they are declared: streams,
        unless they have a key. What a pattern tells is a stream, too. A table whose source declares `history=` has one. Views that read
        other tables are left out."""
        declared = {n: topic for n, topic in self.project.topics.items() if topic.tabular}
        names = {name: name for name in declared if name not in columns}
        names |= {name: self._topic(name) for name in columns}
        inputs = [topic_table(declared[name]) for name in names if name not in columns]
        inputs += event_tables(self.project.events.values())
        for name, text in columns.items():
            topic = names[name]
            if name in declared:
                inputs.append(topic_table(replace(declared[name], schema=text)))
                continue
            if (
                name.removesuffix(".timeouts") in self.project.patterns
                or name in self.project.percolations
            ):
                inputs.append(table(topic, text, kind="stream"))
                continue
            given_keys = (keys or {}).get(name, (text.split()[0],))
            inputs.append(table(topic, text, given_keys, self._kind(topic)))
        given = {*names.values(), *(each.topic for each in inputs)}
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
        times = {name: topic.time for name, topic in declared.items() if topic.time is not None}
        memory = MemoryTables(compile_views(chosen, inputs, self.project.functions.values()))
        return ProjectTables(memory, names, times, self.project.events)

    def events(self, name: str, columns: str = "") -> MemoryEvents:
        """Pattern `name` over rows that a test gives. `columns` of what it reads in Spark's DDL,
        where that is not a topic with a schema."""
        pattern = self.project.patterns.get(name)
        if pattern is None:
            raise UsageError(
                f"no pattern {name!r} is declared",
                hint=f"there are: {', '.join(self.project.patterns) or 'none'}",
            )
        given = pattern.input
        if isinstance(given, Topic):
            return MemoryEvents(pattern, columns or given.schema or "", time=given.time)
        if not columns:
            raise UsageError(
                f"the columns of what pattern {name!r} reads are not known here",
                hint='give them: events("unpaid", "id BIGINT, what STRING, at TIMESTAMP")',
            )
        return MemoryEvents(pattern, columns)

    def queries(self, name: str, columns: str = "", queries: str = "") -> MemoryPercolation:
        """Percolation `name` over events that a test gives. `columns` of its stream and `queries`,
        those of its queries, in Spark's DDL, where they are no topics with a schema."""
        percolation = self.project.percolations.get(name)
        if percolation is None:
            raise UsageError(
                f"no percolation {name!r} is declared",
                hint=f"there are: {', '.join(self.project.percolations) or 'none'}",
            )
        given, stored = percolation.input, percolation.queries
        if not (columns or isinstance(given, Topic)) or not (queries or isinstance(stored, Topic)):
            raise UsageError(
                f"the columns of what percolation {name!r} reads are not known here",
                hint='give them: queries("alerts", "id BIGINT, title STRING", "id INT, query STRING")',
            )
        return MemoryPercolation(percolation, columns, queries)

    def _kind(self, topic: str) -> str:
        """What a captured table is for views."""
        source, *parts = topic.split(".")
        known = self.project.sources.get(source)
        kept = known.table(".".join(parts[-2:])).history if known is not None else None
        return "table" if kept is None else "history"

    def _topic(self, name: str) -> str:
        if name in self.project.topics or name in self.project.streams:
            return name
        if name.removesuffix(".timeouts") in self.project.patterns:
            return name
        if name in self.project.percolations:
            return name
        return graph.table_topic(self.project, name)


@dataclass(frozen=True, slots=True)
class ProjectTables:
    """Rows that change, and the views over them after each tick.

    The watermark of a stream is the newest of its rows of earlier ticks, less its delay, as it
    is for one with a single partition; late rows are taken, whatever the policy.
    """

    memory: MemoryTables
    names: Mapping[str, str]
    times: Mapping[str, EventTime] = field(default_factory=dict)
    events: Mapping[str, Events[Any]] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _streams: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)

    def upsert(self, name: str, row: dict[str, Any]) -> None:
        """Insert `row`, or replace the one with its key. A version of a table with history is
        valid from `__versioned_at`, or from the time of the last tick."""
        topic = self.names[name]
        policy = self.times.get(topic)
        if policy is not None and row.get(policy.column) is not None:
            at = int(row[policy.column].timestamp() * 1000)
            self._newest[topic] = max(at, self._newest.get(topic, at))
        self.memory.upsert(topic, self._versioned(topic, row))

    def append(self, topic: str, stream: str, *events: object, actor: str | None = None) -> None:
        """Events behind those of a stream, as a command would write them; and its state, where
        the topic publishes them. Views see them as records of the log."""
        declared = self.events[topic]
        version, state = self._streams.get((topic, stream), (0, declared.initial()))
        assert declared.function is not None
        for event in events:
            version += 1
            kind = declared.types.by_class[type(event)]
            meta = {"id": f"{stream}/{version}", "command": f"{stream}/{version}", "actor": actor}
            headers = ((EVENT, kind.header), (VERSION, b"%d" % version), (META, orjson.dumps(meta)))
            self._record(declared.name, stream, encode_json(event), headers)
            state = declared.function(state, event)
        self._streams[topic, stream] = version, state
        if declared.publish:
            value = None if state is None else encode_json(state)
            self._record(declared.state_topic, stream, value, ((VERSION, b"%d" % version),))

    def _record(self, topic: str, stream: str, value: bytes | None, headers: Headers) -> None:
        known = self.memory.graph.tables.get(topic)
        if known is None:
            return  # no view reads it
        key, now = stream.encode(), self.memory.now_ms
        records = Records(topic, 0, [0], [key], [value], [now], [headers])
        decoded = decode(known, records, self.memory.shards)
        assert not decoded.dead, decoded.dead
        self.memory.take(topic, decoded.rows.to_pylist())

    def delete(self, name: str, row: dict[str, Any]) -> None:
        """Delete the row with the key of `row`."""
        topic = self.names[name]
        self.memory.delete(topic, self._versioned(topic, row))

    def _versioned(self, topic: str, row: dict[str, Any]) -> dict[str, Any]:
        known = self.memory.graph.tables.get(topic)
        if known is None or known.kind != "history":
            return row
        return {VERSIONED_AT: datetime.fromtimestamp(self.memory.now_ms / 1000, UTC), **row}

    def tick(self, now: datetime | None = None) -> dict[str, int]:
        """Bring the views up to date with everything since the last tick; `now` is what the
        clock says from here on. The number of rows that changed in each view."""
        if now is not None:
            self.memory.now_ms = int(now.timestamp() * 1000)
        emitted = self.memory.tick()
        for topic, newest in self._newest.items():
            self.memory.watermarks[topic] = newest - self.times[topic].delay_ms
        return {view: changes.num_rows for view, changes in emitted.items()}

    def rows(self, view: str) -> list[dict[str, Any]]:
        """The rows of a view, in no order."""
        return self.memory.rows(view)
