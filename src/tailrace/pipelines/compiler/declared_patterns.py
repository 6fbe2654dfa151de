"""Declared patterns and percolations: what each reads, and the graph it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.declared_percolations import (
    CompiledPercolation,
    compile_percolation,
)
from tailrace.pipelines.compiler.event_pattern import Waiting, compile_events, ordered
from tailrace.pipelines.declare import EventTime, Pattern, Percolation, Topic
from tailrace.pipelines.engine.graph import Graph, TableInput
from tailrace.pipelines.errors import DeclarationError, UnknownTableError
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.values.columns import TIME
from tailrace.pipelines.values.types import parse_type

Events: TypeAlias = "Pattern | Percolation"
Compiled: TypeAlias = "CompiledPattern | CompiledPercolation"


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
    def plain_topics(self) -> frozenset[str]:
        return frozenset([self.topic]) if self.plain else frozenset()

    @property
    def times(self) -> dict[str, EventTime]:
        return {self.topic: self.time}


def tables_of(compiled: Compiled) -> list[TableInput]:
    """What a pattern or percolation tells, as what views and others read."""
    return [told_by(compiled.graph, name) for name in compiled.graph.views]


def told_by(graph: Graph, name: str) -> TableInput:
    """The rows of a topic that a pattern writes, as an input: a stream of facts."""
    columns = graph.views[name].columns
    schema = pa.schema([(column, parse_type(kind)) for column, kind in columns])
    return TableInput(name, name, schema, kind="stream")


def compile_pattern(
    pattern: Pattern, tables: Mapping[str, TableInput], told: Mapping[str, TableInput]
) -> CompiledPattern:
    """Compile one pattern. `tables` are captured ones by topic, `told` what other patterns tell."""
    time = pattern.time or EventTime(pattern.order_by)
    table, plain = read_by(pattern, tables, told)
    given = pattern.input
    if isinstance(given, Topic) and given.time is not None:
        if given.time.column.lower() != pattern.order_by.strip().strip("`").lower():
            raise DeclarationError(
                f"pattern {pattern.name!r}: order_by={pattern.order_by!r}, but topic "
                f'"{given.name}" has its event time in {given.time.column!r}',
                detail=f"declared at {pattern.declared_at}",
                hint=f"order_by={given.time.column!r}",
            )
        time = given.time
    with_time = ordered(pattern.name, pattern.order_by, table)
    corrects = time.late == "correct"
    waiting = Waiting(None if corrects else time.lateness_ms, time.keep_ms)
    if not corrects and time.keep_ms is not None:
        waiting = replace(waiting, keep_ms=None)  # it is never the longer one
    graph = compile_events(pattern, with_time, waiting)
    return CompiledPattern(pattern, graph, replace(time, column=TIME), plain)


def read_by(
    declared: Events, tables: Mapping[str, TableInput], told: Mapping[str, TableInput]
) -> tuple[TableInput, bool]:
    """The stream that a pattern or percolation reads, and whether its topic has no envelopes."""
    given = declared.input
    what = f"{type(declared).__name__.lower()} {declared.name!r}"
    match given:
        case Topic():
            return replace(topic_table(given), kind="stream", key=()), True
        case Pattern() | Percolation():
            known = told.get(given.name)
            if known is None:
                raise UnknownTableError(
                    f"{what} reads {given.name!r}, which cannot be compiled",
                    detail=f"declared at {declared.declared_at}",
                    hint=f"correct {given.name!r} first",
                )
            return known, True
    name = given.topic
    found = tables.get(name)
    if found is None:
        raise UnknownTableError(
            f"{what} reads {name}, which no source has described",
            detail=f"declared at {declared.declared_at}",
            hint="is the source running, and does it capture the table?",
        )
    if found.kind == "table":
        raise DeclarationError(
            f"{what} reads {name}, which has no history",
            detail=f"declared at {declared.declared_at}",
            hint="a compacted topic forgets rows: give the source "
            f'history={{"{name.rpartition(".")[2]}": "90 days"}}',
        )
    return replace(found, kind="stream", key=(), copied=declared.copied), False


def compile_patterns(
    patterns: Iterable[Events], tables: Mapping[str, TableInput]
) -> tuple[dict[str, Compiled], dict[str, TailraceError]]:
    """Every pattern and percolation that can be compiled, and what is wrong with the others."""
    waiting = list(patterns)
    done: dict[str, Compiled] = {}
    wrong: dict[str, TailraceError] = {}
    told: dict[str, TableInput] = {}
    while waiting:
        names = {one.name for one in waiting}
        ready = [
            one
            for one in waiting
            if not (isinstance(one.input, Pattern | Percolation) and one.input.name in names)
        ]
        if not ready:  # they read each other: `project.graph` says so
            ready = waiting
        for one in ready:
            try:
                made: Compiled
                if isinstance(one, Percolation):
                    stream, plain = read_by(one, tables, told)
                    made = compile_percolation(one, stream, plain, tables)
                else:
                    made = compile_pattern(one, tables, told)
            except TailraceError as error:
                wrong[one.name] = error
                continue
            done[one.name] = made
            told |= {table.name: table for table in tables_of(made)}
        waiting = [one for one in waiting if one not in ready]
    return done, wrong


def tables_told(
    patterns: Sequence[Events], tables: Mapping[str, TableInput]
) -> dict[str, TableInput]:
    """What views can read of patterns and percolations, by topic."""
    compiled, _ = compile_patterns(patterns, tables)
    return {table.name: table for one in compiled.values() for table in tables_of(one)}
