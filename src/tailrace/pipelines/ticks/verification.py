"""A view beside Spark's own batch answer to its SQL, over its tables at one cut.

Nothing of the compiler or the operators has a part in that answer: the topics a view reads are
read again up to where its tick read them, the rows that were there then become Parquet files, and
`spark.sql` gets the view's text as it is written (and those of the views it reads). The view's
own rows are its changelog up to the end that the same tick names.

Both sides are compared as records of the changelog, key by key; floating-point numbers to nine
digits, because sums depend on the order of their rows. What no batch query over tables can say
is refused, with the reason: `now()`, and rows that a watermark or retention has removed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tailrace.pipelines.declare import EventTime
from tailrace.pipelines.engine.changelog import json_values, record_pairs
from tailrace.pipelines.engine.graph import Graph, TableInput, ViewPlan
from tailrace.pipelines.errors import DataLostError, ViewNotJudgedError
from tailrace.pipelines.reading.decode import decode, decode_whole
from tailrace.pipelines.reading.ranges import LogRanges
from tailrace.pipelines.reading.reader import Range
from tailrace.pipelines.ticks.failed_views import subgraph
from tailrace.pipelines.ticks.job import records_of
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.pipelines.values.columns import DELETED, KEY, WEIGHT
from tailrace.pipelines.values.rows import consolidate
from tailrace.pipelines.values.types import (
    BIGINT,
    STRING,
    VARIANT,
    ddl,
    has_variant,
    is_time,
    parse_type,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DIGITS = 1e-9  # of floating-point numbers that count as equal, relative to the larger
_FEW_ROWS = 500_000  # of a table's history are put together before older versions are dropped
_PLAIN = re.compile(r"[A-Za-z0-9_]+")  # what Spark takes as the name of a database or table
_DOT = r"\s*\.\s*"
_NO_NAMES = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*|/\*.*?\*/"""  # in SQL, names are none
_HINT = (
    "compare it with what you know of its tables; `tailrace view explain NAME` says how it is kept"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A key of which a view and Spark do not say the same; None: they have no such row."""

    key: Any
    view: Any
    spark: Any
    times: int = 1  # that Spark has the key


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the comparison of one view at one tick has found."""

    view: str
    tick: int
    positions: Mapping[str, str]
    rows: int
    spark_rows: int
    differing: int
    differences: tuple[Difference, ...] = ()  # the first of them, by key
    types: tuple[tuple[str, str, str], ...] = ()  # column, its type in the view, in Spark

    @property
    def equal(self) -> bool:
        return not self.differing and not self.types


@dataclass(frozen=True, slots=True)
class Question:
    """A view to be judged: the graph it is kept by, as the state names it, and the tick."""

    graph: Graph
    tick: Tick
    name: str
    texts: Mapping[str, str]  # SQL by view, of all views of the project
    reads: Mapping[str, Sequence[str]]  # by view, the other views in its text
    times: Mapping[str, EventTime] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()  # topics whose values are rows, not envelopes

    @property
    def plan(self) -> ViewPlan:
        return self.graph.views[self.name]

    @property
    def tables(self) -> Mapping[str, TableInput]:
        return subgraph(self.graph, [self.name]).tables


def verify(
    spark: SparkSession, log: LogRanges, question: Question, directory: Path, *, most: int = 20
) -> Verdict:
    """Judge one view; `directory` gets its tables. Raises ViewNotJudgedError where that cannot
    be done."""
    refuse_what_cannot_be_judged(question)
    tick, plan = question.tick, question.plan
    paths: dict[str, str] = {}
    for number, (topic, table) in enumerate(question.tables.items()):
        rows = contents(log, table, tick, envelope=topic not in question.plain)
        paths[topic] = str(directory / f"{question.name}-{number}.parquet")
        pq.write_table(_writable(rows), paths[topic])
    shown = dict(_shown(log, question))
    try:
        frame = _answer(spark, question, paths)
        theirs, counts = _records(plan, frame)
    except ViewNotJudgedError:
        raise
    except Exception as problem:  # whatever Spark says of the text, its user wants to read
        raise _not_judged(
            question.name, "Spark does not answer its SQL", _first_lines(problem)
        ) from problem
    differing = sorted(
        key
        for key in shown.keys() | theirs.keys()
        if counts.get(key, 1) > 1 or not _same(shown.get(key), theirs.get(key))
    )
    return Verdict(
        question.name,
        tick.number,
        dict(tick.positions),
        len(shown),
        sum(counts.values()),
        len(differing),
        tuple(
            Difference(
                orjson.loads(key), _row(shown.get(key)), _row(theirs.get(key)), counts.get(key, 0)
            )
            for key in differing[:most]
        ),
        tuple(_other_types(plan, frame)),
    )


def refuse_what_cannot_be_judged(question: Question) -> None:
    """Raise ViewNotJudgedError if no batch query over tables can say what the view should be."""
    name, tick = question.name, question.tick
    if name in tick.stopped:
        raise _not_judged(name, "it has stopped", tick.stopped[name].why.get("message", ""))
    if name not in tick.views or not tick.keeps(name, question.plan.node):
        raise _not_judged(
            name, "the last tick did not keep it as it is declared now",
            "It is being filled, has been put aside, or its SQL has changed since.",
        )  # fmt: skip
    if name in tick.live:
        raise _not_judged(
            name, "it is rolled back", "It is shown as it was, not as its tables are."
        )
    if subgraph(question.graph, [name]).timed:
        raise _not_judged(
            name, "it depends on the clock",
            "Its rows come and leave with now(), current_date() or a watermark.",
        )  # fmt: skip
    for topic in question.tables:
        policy = question.times.get(topic)
        if policy is not None and (policy.late != "correct" or policy.keep_ms is not None):
            raise _not_judged(
                name, f"rows of {topic} may have been too late for it",
                "The stream's policy drops rows behind the watermark; its topic still holds them.",
            )  # fmt: skip


def contents(log: LogRanges, table: TableInput, tick: Tick, *, envelope: bool = True) -> pa.Table:
    """The rows a table had, or a stream has had, where a tick read it to."""
    ends = tick.inputs.get(table.topic, {})
    found = log.named([table.topic]) if ends else {}
    bounds = log.bounds(found)[table.topic].partitions if table.topic in found else {}
    known = tick.topics.get(table.topic)
    pieces: list[pa.Table] = [table.schema.empty_table()]
    for partition, end in sorted(ends.items()):
        first, _ = bounds.get(partition, (end, end))
        if first > 0 and end > 0:
            raise DataLostError(
                f"records of {table.topic}/{partition} before offset {first} are gone",
                detail="a batch query over what is left would not be about the same rows",
                hint="a view over them can only be compared with what you know of them",
            )
        pieces.append(
            _partition(log, table, Range(table.topic, partition, 0, end, known), envelope)
        )
    return pa.concat_tables(pieces).combine_chunks()


def _partition(log: LogRanges, table: TableInput, wanted: Range, envelope: bool) -> pa.Table:
    """What is left of the rows of one partition at its end."""
    kept: list[pa.Table] = []
    waiting = 0
    for columns in log.read(wanted):
        decoded = decode_whole(table, columns, 0, envelope=envelope)
        if decoded is None:
            decoded = decode(table, records_of(wanted, columns), 1, envelope=envelope)
        kept.append(decoded.rows)
        waiting += decoded.rows.num_rows
        if waiting > _FEW_ROWS:
            kept = [_left(table, pa.concat_tables(kept))]
            waiting = 0
    if not kept:
        return table.schema.empty_table()
    rows = _left(table, pa.concat_tables(kept))
    match table.kind:
        case "table" | "history":
            rows = rows.filter(pc.invert(rows[DELETED]))
        case "bag":
            rows = _repeated(rows)
    return rows.select(table.schema.names)


def _left(table: TableInput, rows: pa.Table) -> pa.Table:
    """Without what later rows have replaced."""
    match table.kind:
        case "table" | "history":
            places = pa.table({"key": rows[KEY], "at": pa.array(np.arange(rows.num_rows))})
            last = places.group_by("key").aggregate([("at", "max")])["at_max"]
            return rows.take(pa.array(np.sort(last.to_numpy())))
        case "bag":
            begins = np.flatnonzero(rows[DELETED].to_numpy(zero_copy_only=False))
            rows = rows.slice(int(begins[-1]) + 1) if len(begins) else rows
            wanted = [*table.schema.names, WEIGHT]
            summed = consolidate(rows.select(wanted))
            return summed.append_column(DELETED, pa.repeat(pa.scalar(False), summed.num_rows))
    return rows


def _repeated(rows: pa.Table) -> pa.Table:
    """Every row of a bag as often as it is there."""
    weights = rows[WEIGHT].to_numpy()
    return rows.take(pa.array(np.repeat(np.arange(rows.num_rows), np.maximum(weights, 0))))


# The view ------------------------------------------------------------------------------------


def _shown(log: LogRanges, question: Question) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the view's changelog at the tick."""
    info = question.tick.views[question.name]
    shown: dict[bytes, bytes] = {}
    for partition, end in question.tick.ends.get(info.topic, {}).items():
        for columns in log.read(Range(info.topic, partition, 0, end)):
            for key, value in zip(
                columns.keys.to_pylist(), columns.values.to_pylist(), strict=True
            ):
                if value is None:
                    shown.pop(key, None)
                else:
                    shown[key] = value
    return iter(shown.items())


# Spark ---------------------------------------------------------------------------------------


def _answer(spark: SparkSession, question: Question, paths: Mapping[str, str]) -> DataFrame:
    """Spark's answer to the view's text."""
    for topic, table in question.tables.items():
        columns = [_selected(name, kind) for name, kind in _typed(table.schema)]
        rows = spark.read.parquet(paths[topic]).selectExpr(*columns)
        rows.createOrReplaceTempView(_quoted(topic))
        source, *parts = topic.split(".")
        if parts and _PLAIN.fullmatch(source) and _PLAIN.fullmatch(parts[-1]):
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {source}")
            spark.sql(
                f"CREATE OR REPLACE VIEW {source}.{parts[-1]} AS "
                f"SELECT {', '.join(columns)} FROM parquet.{_quoted(paths[topic])}"
            )
        further = {} if table.reading is None else table.reading.queries(topic)
        for name, query in further.items():
            database, _, last = name.partition(".")
            if _PLAIN.fullmatch(database) and _PLAIN.fullmatch(last):
                rows_of = f"(SELECT {', '.join(columns)} FROM parquet.{_quoted(paths[topic])})"
                spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
                spark.sql(
                    f"CREATE OR REPLACE VIEW {name} AS "
                    f"{query.replace(f'FROM `{topic}`', f'FROM {rows_of}')}"
                )
    for name in _views_below(question):
        spark.sql(_text(question, name)).createOrReplaceTempView(_quoted(name))
    return spark.sql(_text(question, question.name))


def _views_below(question: Question) -> list[str]:
    """The other views that a view reads, in an order in which each comes after those it reads."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        for other in question.reads.get(name, ()):
            if other not in found:
                visit(other)
                found[other] = None

    visit(question.name)
    return list(found)


def _text(question: Question, name: str) -> str:
    """A view's SQL. A source is a database of Spark's, but neither has schemas nor any letter in
    their names: where the text has such a name, a temporary view takes its place."""
    text = question.texts[name]
    for topic in question.tables:
        source, *parts = topic.split(".")
        named = [(source, *parts)] if len(parts) > 1 else []
        if parts and not (_PLAIN.fullmatch(source) and _PLAIN.fullmatch(parts[-1])):
            named.append((source, parts[-1]))
        for words in named:
            known = [rf"(?:`{re.escape(word)}`|\b{re.escape(word)}\b)" for word in words]
            text = _renamed(text, _DOT.join(known), _quoted(topic))
    return text


def _renamed(text: str, pattern: str, name: str) -> str:
    """SQL with `name` in place of what a pattern finds, but in its constants and comments."""
    either = re.compile(f"({_NO_NAMES})|{pattern}", re.IGNORECASE | re.DOTALL)
    return either.sub(lambda found: found[1] or name, text)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _typed(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]


def _selected(name: str, kind: pa.DataType) -> str:
    """A column of a table's file in its own type; see `_writable`."""
    column = _quoted(name)
    if kind == VARIANT:
        return f"parse_json({column}) AS {column}"
    return f"CAST({column} AS {ddl(kind)}) AS {column}"


def _writable(rows: pa.Table) -> pa.Table:
    """The rows with times of day and variants as text: Parquet's are not Spark's."""
    columns = [
        pa.array(json_values(column), STRING) if _as_text(column.type) else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def _as_text(kind: pa.DataType) -> bool:
    """Whether values of a type cross between Spark and Arrow as text."""
    return kind == VARIANT or is_time(kind)


def _records(plan: ViewPlan, frame: DataFrame) -> tuple[dict[bytes, bytes], dict[bytes, int]]:
    """Spark's rows as records of the view's changelog, and how often it has each key."""
    from pyspark.sql import functions as F  # noqa: N812

    declared = plan.columns[:-1] if plan.bag else plan.columns
    names = [f"c{number}" for number in range(len(declared))]
    if len(frame.columns) != len(declared):
        raise _not_judged(
            plan.name, "Spark's answer has other columns",
            f"{', '.join(frame.columns)} in place of {', '.join(name for name, _ in declared)}",
        )  # fmt: skip
    frame = frame.toDF(*names)
    kinds = [parse_type(kind) for _, kind in declared]
    columns = []
    for name, kind in zip(names, kinds, strict=True):
        if pa.types.is_nested(kind) and _holds_text(kind):
            raise _not_judged(plan.name, f"of its column of type {ddl(kind)}", "")
        column = F.col(name)
        if kind == VARIANT:
            column = F.to_json(column)
        elif is_time(kind):
            column = column.cast("string")
        columns.append(column.alias(name))
    found = frame.select(*columns).toArrow() if columns else pa.table({})
    arrays = [
        found[name].cast(STRING if _as_text(kind) else kind)
        for name, kind in zip(names, kinds, strict=True)
    ]
    shown = [name for name, _ in declared]
    if plan.bag:
        arrays.append(pa.repeat(pa.scalar(1, BIGINT), found.num_rows))
        shown.append(plan.columns[-1][0])
    arrays.append(pa.repeat(pa.scalar(False), found.num_rows))
    pairs = record_pairs(plan, pa.table(arrays, names=[*shown, DELETED]))
    return _counted(plan, cast("list[tuple[bytes, bytes]]", pairs))


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _holds_text(kind.key_type) or _holds_text(kind.item_type)
    if pa.types.is_list(kind):
        return _holds_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_holds_text(part.type) for part in kind)
    return _as_text(kind) or has_variant(kind)


def _counted(
    plan: ViewPlan, pairs: Sequence[tuple[bytes, bytes]]
) -> tuple[dict[bytes, bytes], dict[bytes, int]]:
    theirs: dict[bytes, bytes] = {}
    counts: dict[bytes, int] = {}
    for key, value in pairs:
        theirs[key] = value
        counts[key] = counts.get(key, 0) + 1
    if not plan.bag:
        return theirs, counts
    for key, count in counts.items():
        row = orjson.loads(theirs[key])
        row["row"][plan.columns[-1][0]] = count
        theirs[key] = orjson.dumps(row)
    return theirs, dict.fromkeys(theirs, 1)


def _other_types(plan: ViewPlan, frame: DataFrame) -> Iterator[tuple[str, str, str]]:
    """Columns that have another type in Spark."""
    for (name, kind), found in zip(plan.columns, frame.schema.fields, strict=False):
        theirs = re.sub(r"(?i) collate \w+", "", found.dataType.simpleString()).upper()
        if kind.replace(", ", ",").replace(": ", ":").upper() != theirs:
            yield name, kind, theirs


# The comparison -------------------------------------------------------------------------------


def _same(ours: bytes | None, theirs: bytes | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return ours == theirs or _alike(orjson.loads(ours), orjson.loads(theirs))


def _alike(ours: Any, theirs: Any) -> bool:
    match ours, theirs:
        case float(), float():
            return math.isclose(ours, theirs, rel_tol=_DIGITS, abs_tol=1e-300)
        case dict(), dict():
            return ours.keys() == theirs.keys() and all(_alike(ours[k], theirs[k]) for k in ours)
        case list(), list():
            return len(ours) == len(theirs) and all(map(_alike, ours, theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


def _row(value: bytes | None) -> Any:
    return None if value is None else orjson.loads(value)["row"]


def _first_lines(problem: BaseException) -> str:
    return "\n".join(str(problem).strip().splitlines()[:6]) or repr(problem)


def _not_judged(name: str, why: str, detail: str) -> ViewNotJudgedError:
    return ViewNotJudgedError(
        f"view {name!r} cannot be compared with a batch query: {why}", detail=detail, hint=_HINT
    )
