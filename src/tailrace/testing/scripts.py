"""Behaviours of view SQL as files: tables, views, changes, and every view after each tick.

    -- What this file shows.
    TABLE shop.public.orders (id BIGINT, amount DECIMAL(10,2)) KEY (id);
    VIEW totals KEY (n) AS
    SELECT count(*) AS n FROM shop.orders;

    TICK
    + shop.public.orders {"id": 1, "amount": "9.99"}
    - shop.public.orders {"id": 1}
    = totals
    {"n": 0}

`+` is an upsert (of a table without a key: a row more), `-` a delete. Values have the form
they have in the log. Expected rows are in any order. `TICK 2026-01-01T10:00:00Z` sets the
clock. A table without KEY is a bag; `STREAM` and `HISTORY` in place of TABLE name the kind.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from tailrace.pipelines.compiler import ViewDefinition
from tailrace.pipelines.engine.changelog import json_values
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.values.casts import parse_timestamp
from tailrace.pipelines.values.columns import VERSIONED_AT
from tailrace.pipelines.values.types import is_decimal, parse_type
from tailrace.testing.ticks import MemoryTables, table

Row = dict[str, Any]
_TABLE = re.compile(
    r"(TABLE|STREAM|HISTORY)\s+(\S+)\s*\((.*?)\)\s*(?:KEY\s*\(([^)]*)\))?\s*;", re.DOTALL
)
_VIEW = re.compile(r"VIEW\s+(\S+)\s*(?:KEY\s*\(([^)]*)\)\s*)?AS\s+(.*);", re.DOTALL)


@dataclass(slots=True)
class Step:
    """One tick: its changes (sign, topic, row), its clock, the rows expected afterwards."""

    changes: list[tuple[str, str, Row]] = field(default_factory=list)
    now_ms: int | None = None
    expected: dict[str, list[Row]] = field(default_factory=dict)


@dataclass(slots=True)
class Script:
    """A behaviour, read from its file."""

    tables: list[TableInput]
    views: list[ViewDefinition]
    steps: list[Step]


def read_script(path: Path) -> Script:
    """Read a file; ValueError names what it does not understand."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    head, steps = _split(lines)
    tables, views = [], []
    for statement in re.findall(r"(?:TABLE|STREAM|HISTORY|VIEW)\b.*?;", head, re.DOTALL):
        if found := _TABLE.fullmatch(statement):
            kind = {"STREAM": "stream", "HISTORY": "history"}.get(found[1])
            tables.append(table(found[2], found[3], _names(found[4]) or (), kind))
        elif found := _VIEW.fullmatch(statement):
            views.append(ViewDefinition(found[1], found[3], _names(found[2])))
        else:
            raise ValueError(f"{path}: cannot read {statement!r}")
    return Script(tables, views, steps)


def _names(text: str | None) -> tuple[str, ...] | None:
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else None


def _split(lines: Sequence[str]) -> tuple[str, list[Step]]:
    head: list[str] = []
    steps: list[Step] = []
    shown: list[Row] | None = None
    for line in lines:
        if line.startswith("TICK"):
            moment = line.removeprefix("TICK").strip()
            steps.append(Step(now_ms=parse_timestamp(moment) // 1000 if moment else None))
        elif not steps:
            head.append(line)
        elif line[:2] in ("+ ", "- "):
            topic, _, text = line[2:].partition(" ")
            steps[-1].changes.append((line[0], topic, orjson.loads(text)))
        elif line.startswith("= "):
            shown = steps[-1].expected.setdefault(line[2:].strip(), [])
        elif line.strip():
            assert shown is not None, line
            shown.append(orjson.loads(line))
    return "\n".join(head), steps


def from_json(value: Any, kind: pa.DataType) -> Any:
    """A value of the log's JSON as Python's value of an Arrow type."""
    if value is None:
        return None
    if is_decimal(kind):
        from decimal import Decimal

        return Decimal(value)
    if pa.types.is_timestamp(kind):
        moment = datetime.datetime.fromisoformat(value)
        return moment if kind.tz else moment.replace(tzinfo=None)
    if pa.types.is_time(kind):
        return datetime.time.fromisoformat(value)
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(value)
    if pa.types.is_floating(kind):
        return float(value)
    return value


def typed(row: Row, known: TableInput) -> Row:
    """A row of JSON values with the types of its table."""
    kinds = {f.name: f.type for f in known.schema} | {VERSIONED_AT: parse_type("TIMESTAMP")}
    return {name: from_json(value, kinds[name]) for name, value in row.items()}


def apply_step(memory: MemoryTables, tables: Sequence[TableInput], step: Step) -> None:
    """Run one step's tick."""
    known = {each.topic: each for each in tables}
    for sign, topic, row in step.changes:
        change = memory.upsert if sign == "+" else memory.delete
        change(topic, typed(row, known[topic]))
    if step.now_ms is not None:
        memory.now_ms = step.now_ms
    memory.tick()


def shown_rows(memory: MemoryTables, view: str) -> list[Row]:
    """A view's rows (a bag's with their count) as JSON shows them."""
    plan = memory.graph.views[view]
    rows = list(memory.views[view].values())
    schema = pa.schema([(name, parse_type(kind)) for name, kind in plan.columns])
    shown = pa.Table.from_pylist(rows, schema=schema)
    columns = [json_values(shown.column(name)) for name in schema.names]
    return [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
