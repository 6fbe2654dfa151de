"""Stored queries driven without Spark, and their naive twin.

    alerts = MemoryPercolation(declared, "id BIGINT, title STRING, price INT")
    alerts.put({"id": 7, "query": "title:boat price:<100"})
    alerts.tick([{"id": 1, "title": "a red boat", "price": 90}])

The twin, `matches`, takes a query as nested tuples and one document, and looks at both with
plain Python; `written` gives the text of such a query:

    ("word", column or None, "boat")        ("phrase", column or None, ["red", "boat"])
    ("wild", column or None, "bo?t*")       ("equal", column, value)
    ("range", column, low, high, with_low, with_high)    ("present", column)    ("all",)
    ("and", [queries])    ("or", [queries])    ("not", query)    ("list", [(sign, query)])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa

from tailrace.pipelines.compiler.declared_percolations import compile_percolation
from tailrace.pipelines.declare import Percolation, Topic
from tailrace.pipelines.engine.changelog import record_pairs
from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.engine.execute import input_schema, run_tick
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.values.columns import DELETED, KEY, OFFSET, PARTITION, PLACED, SHARD
from tailrace.pipelines.values.topic_schema import parse_schema
from tailrace.testing.state import MemoryStates
from tailrace.testing.ticks import table

Row = dict[str, Any]
Query = tuple[Any, ...]


class MemoryPercolation:
    """A percolation with its state in memory. `columns` of the stream and `queries`, those of
    the stored queries, are Spark's DDL; they need not be given for topics with a schema."""

    def __init__(
        self, declared: Percolation, columns: str = "", queries: str = "", *, shards: int = 1
    ) -> None:
        given = declared.input
        stream = table(given.topic, columns, kind="stream") if columns else None
        if stream is None:
            schema = parse_schema(getattr(given, "schema", "") or "")
            stream = replace(table(given.topic, "x INT", kind="stream"), schema=schema)
        tables = {}
        if not isinstance(declared.queries, Topic):
            tables[declared.queries.topic] = table(declared.queries.topic, queries, [declared.id])
        self.compiled = compile_percolation(declared, stream, True, tables)
        self.declared, self.shards = declared, shards
        self.states = MemoryStates()
        self.number = self.now_ms = self.offset = 0
        self.dead: list[DeadRecord] = []
        self._changes: list[Row] = []

    def put(self, row: Row) -> None:
        """Add a stored query, or change it."""
        self._change(row, False)

    def remove(self, identity: Any) -> None:
        self._change({self.declared.id: identity}, True)

    def _change(self, row: Row, deleted: bool) -> None:
        key = orjson.dumps({self.declared.id: row[self.declared.id]})
        self.offset += 1
        self._changes.append(
            {**row, KEY: key, DELETED: deleted, PARTITION: 0, OFFSET: self.offset,
             SHARD: sum(key) % self.shards}
        )  # fmt: skip

    def tick(self, documents: Sequence[Row] = (), *, keep: bool = True) -> list[Row]:
        """Take in what has changed, and match some documents; `keep` False throws it away."""
        graph, topic = self.compiled.graph, self.compiled.topic
        query_topic = self.declared.queries.topic
        rows: list[Row] = []
        for number, document in enumerate(documents):
            rows.append(
                {**document, "__time": 0, "__micros": 0, PARTITION: number % self.shards,
                 OFFSET: self.offset + number, SHARD: number % self.shards}
            )  # fmt: skip
        inputs = {}
        for name, given in ((query_topic, self._changes), (topic, rows)):
            if given:
                schema = input_schema(graph.tables[name]).append(pa.field(SHARD, pa.int32()))
                inputs[name] = pa.Table.from_pylist(given, schema=schema)
        states = self.states if keep else self.states.copy()
        context = TickContext(self.number + 1, self.now_ms, shards=self.shards)
        found = run_tick(graph, inputs, states, context, shards=self.shards)
        if keep:
            self.number += 1
            self.offset += len(rows)
            self._changes = []
            self.dead += context.dead
        plan = graph.views[self.declared.name]
        told = record_pairs(plan, found[plan.name]) if plan.name in found else []
        return [orjson.loads(value) for _, value in told if value is not None]


assert PLACED.names[:2] == ["__time", "__micros"]


# The twin -----------------------------------------------------------------------------------------


def plain_words(text: str) -> list[str]:
    """Words without a language."""
    return [word.lower() for word in re.findall(r"[^\W_]+", text)]


def matches(
    query: Query, row: Mapping[str, Any], texts: Sequence[str],
    words: Callable[[str], list[str]] = plain_words,
) -> bool:  # fmt: skip
    """Whether a query matches a document, of which `texts` are searched word by word."""

    def held(column: str | None) -> list[list[str]]:
        wanted = texts if column is None else [column]
        return [words(row[name]) for name in wanted if row.get(name) is not None]

    def judge(one: Query) -> bool:
        match one:
            case ("word", column, word):
                return judge(("phrase", column, [word]))
            case ("phrase", column, several):
                wanted = [cut for word in several for cut in words(word)]
                return any(
                    cut[at : at + len(wanted)] == wanted
                    for cut in held(column)
                    for at in range(len(cut) - len(wanted) + 1)
                )
            case ("wild", column, pattern):
                if column is not None and column not in texts:
                    return row.get(column) is not None and _fits(pattern, row[column])
                return any(_fits(pattern.lower(), word) for cut in held(column) for word in cut)
            case ("equal", column, value):
                return row.get(column) is not None and bool(row[column] == value)
            case ("range", column, low, high, with_low, with_high):
                value = row.get(column)
                if value is None or value != value:
                    return False
                above = low is None or value > low or (with_low and value == low)
                return above and (high is None or value < high or (with_high and value == high))
            case ("present", column):
                return row.get(column) is not None
            case ("all",):
                return True
            case ("and", parts):
                return all(judge(part) for part in parts)
            case ("or", parts):
                return any(judge(part) for part in parts)
            case ("not", part):
                return not judge(part)
            case ("list", clauses):
                answers = [(sign, judge(part)) for sign, part in clauses]
                must = [answer for sign, answer in answers if sign == "+"]
                may = [answer for sign, answer in answers if sign == ""]
                if any(answer for sign, answer in answers if sign == "-"):
                    return False
                return all(must) if must else any(may) if may else True
        raise AssertionError(one)

    return judge(query)


def _fits(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return _fits(pattern[1:], text) or (bool(text) and _fits(pattern, text[1:]))
    return bool(text) and pattern[0] in ("?", text[0]) and _fits(pattern[1:], text[1:])


def written(query: Query) -> str:
    """The text of a query."""

    def of(column: str | None) -> str:
        return "" if column is None else f"{column}:"

    match query:
        case ("word", column, word):
            return f"{of(column)}{word}"
        case ("phrase", column, several):
            return f'{of(column)}"{" ".join(several)}"'
        case ("wild", column, pattern):
            return f"{of(column)}{pattern}"
        case ("equal", column, value):
            return f"{column}:{_value(value)}"
        case ("range", column, low, high, with_low, with_high):
            if high is None and low is not None:
                return f"{column}:>{'=' if with_low else ''}{_value(low)}"
            ends = ["*" if end is None else _value(end) for end in (low, high)]
            return f"{column}:{'[' if with_low else '{'}{ends[0]} TO {ends[1]}{']' if with_high else '}'}"  # fmt: skip
        case ("present", column):
            return f"{column}:*"
        case ("all",):
            return "*"
        case ("and", parts):
            return "(" + " AND ".join(written(part) for part in parts) + ")"
        case ("or", parts):
            return "(" + " OR ".join(written(part) for part in parts) + ")"
        case ("not", part):
            return f"(NOT {written(part)})"
        case ("list", clauses):
            return "(" + " ".join(f"{sign}{written(part)}" for sign, part in clauses) + ")"
    raise AssertionError(query)


def _value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
