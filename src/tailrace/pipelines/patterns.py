"""Declared patterns: what each reads, and the graph it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tailrace.errors import TailraceError
from tailrace.pipelines.declare import EventTime, Pattern, Topic
from tailrace.pipelines.errors import DeclarationError, UnknownTableError
from tailrace.pipelines.incremental.graph import TIME, Graph, TableInput
from tailrace.pipelines.incremental.sql.event_pattern import Waiting, compile_events, ordered
from tailrace.pipelines.incremental.types import parse_type
from tailrace.pipelines.ticks.catalog import topic_table


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A pattern, its graph, when its rows happened, and whether their topic has no envelopes."""

    pattern: Pattern
    graph: Graph
    time: EventTime
    plain: bool

    @property
    def topic(self) -> str:
        """What it reads."""
        return next(iter(self.graph.tables))

    @property
    def tables(self) -> list[TableInput]:
        """What it tells, as what views and other patterns read."""
        return [told_by(self.graph, name) for name in self.graph.views]


def told_by(graph: Graph, name: str) -> TableInput:
    """The rows of a topic that a pattern writes, as an input: a stream of facts."""
    columns = graph.views[name].columns
    schema = pa.schema([(column, parse_type(kind)) for column, kind in columns])
    return TableInput(name, name, schema, kind="stream")


def compile_pattern(
    pattern: Pattern, tables: Mapping[str, TableInput], told: Mapping[str, TableInput]
) -> CompiledPattern:
    """Compile one pattern. `tables` are captured ones by topic, `told` what other patterns tell."""
    given = pattern.input
    time, plain = pattern.time or EventTime(pattern.order_by), True
    match given:
        case Topic():
            table = replace(topic_table(given), kind="stream", key=())
            if given.time is not None:
                if given.time.column.lower() != pattern.order_by.strip().strip("`").lower():
                    raise DeclarationError(
                        f"pattern {pattern.name!r}: order_by={pattern.order_by!r}, but topic "
                        f'"{given.name}" has its event time in {given.time.column!r}',
                        detail=f"declared at {pattern.declared_at}",
                        hint=f"order_by={given.time.column!r}",
                    )
                time = given.time
        case Pattern():
            known = told.get(given.name)
            if known is None:
                raise UnknownTableError(
                    f"pattern {pattern.name!r} reads pattern {given.name!r}, which cannot be "
                    "compiled",
                    detail=f"declared at {pattern.declared_at}",
                    hint=f"correct {given.name!r} first",
                )
            table = known
        case _:
            name, plain = given.topic, False
            found = tables.get(name)
            if found is None:
                raise UnknownTableError(
                    f"pattern {pattern.name!r} reads {name}, which no source has described",
                    detail=f"declared at {pattern.declared_at}",
                    hint="is the source running, and does it capture the table?",
                )
            if found.kind == "table":
                raise DeclarationError(
                    f"pattern {pattern.name!r} reads {name}, which has no history",
                    detail=f"declared at {pattern.declared_at}",
                    hint="a compacted topic forgets rows: give the source "
                    f'history={{"{name.rpartition(".")[2]}": "90 days"}}',
                )
            table = replace(found, kind="stream", key=(), copied=pattern.copied)
    with_time = ordered(pattern.name, pattern.order_by, table)
    corrects = time.late == "correct"
    waiting = Waiting(None if corrects else time.lateness_ms, time.keep_ms)
    if not corrects and time.keep_ms is not None:
        waiting = replace(waiting, keep_ms=None)  # it is never the longer one
    graph = compile_events(pattern, with_time, waiting)
    return CompiledPattern(pattern, graph, replace(time, column=TIME), plain)


def compile_patterns(
    patterns: Iterable[Pattern], tables: Mapping[str, TableInput]
) -> tuple[dict[str, CompiledPattern], dict[str, TailraceError]]:
    """Every pattern that can be compiled, and what is wrong with the others."""
    waiting = list(patterns)
    done: dict[str, CompiledPattern] = {}
    wrong: dict[str, TailraceError] = {}
    told: dict[str, TableInput] = {}
    while waiting:
        names = {one.name for one in waiting}
        ready = [
            one
            for one in waiting
            if not (isinstance(one.input, Pattern) and one.input.name in names)
        ]
        if not ready:  # they read each other: `project.graph` says so
            ready = waiting
        for one in ready:
            try:
                made = compile_pattern(one, tables, told)
            except TailraceError as error:
                wrong[one.name] = error
                continue
            done[one.name] = made
            told |= {table.name: table for table in made.tables}
        waiting = [one for one in waiting if one not in ready]
    return done, wrong


def tables_told(
    patterns: Sequence[Pattern], tables: Mapping[str, TableInput]
) -> dict[str, TableInput]:
    """What views can read of patterns, by topic."""
    compiled, _ = compile_patterns(patterns, tables)
    return {table.name: table for one in compiled.values() for table in one.tables}
