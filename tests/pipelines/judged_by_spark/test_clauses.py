"""Clauses of other dialects, and Spark's own, are computed as Spark computes them or refused.

`clauses.txt` holds a thousand queries by family, and what becomes of each. One test compares it with
views, another, with Spark; a third one takes clauses out of queries, to see that none is ignored.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlglot import exp

from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.compiler.syntax.parse import parse
from tailrace.pipelines.compiler.syntax.understood import UNDERSTOOD, refuse_what_is_not_understood
from tailrace.pipelines.errors import UnforeseenError
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

D, T = datetime.date, datetime.datetime
T_COLUMNS = "id INT, g STRING, n INT, f DOUBLE, d DATE, ts TIMESTAMP_NTZ, xs ARRAY<INT>"
T_ROWS: list[tuple[Any, ...]] = [
    (1, "a", 1, 1.5, D(2020, 1, 1), T(2020, 1, 1), [1, 2]),
    (2, "b", 5, None, D(2020, 2, 29), T(2020, 1, 2, 3), []),
    (3, "a", 3, 0.0, None, T(2020, 1, 1, 12), [3]),
    (4, "a", None, -1.0, D(2021, 1, 1), None, None),
    (5, None, 2, 2.5, D(2020, 1, 1), T(2020, 1, 5), [7, None]),
    (6, "b", 1, 3.0, D(2020, 3, 1), T(2020, 1, 2, 3), [5, 5]),
]
U_COLUMNS = "id INT, t_id INT, g STRING, n INT"
U_ROWS: list[tuple[Any, ...]] = [
    (1, 1, "a", 1), (2, 1, "b", 2), (3, 3, "a", 3), (4, 9, "c", None), (7, None, None, 5),
]  # fmt: skip
TABLES = {"t": (T_COLUMNS, T_ROWS), "u": (U_COLUMNS, U_ROWS)}
INPUTS = [table(name, columns, ["id"]) for name, (columns, _) in TABLES.items()]


def _families() -> dict[str, list[tuple[str, str, str]]]:
    """Query, sign and what stands behind it, by family."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    text = (Path(__file__).parent / "clauses.txt").read_text(encoding="utf-8")
    _, *blocks = text.split("\n\n-- ")
    for block in blocks:
        name, *lines = block.strip("\n").split("\n")
        pairs = zip(lines[::2], lines[1::2], strict=True)
        found[name] = [(sql, said[2], said[4:]) for sql, said in pairs]
    return found


FAMILIES = _families()
ALL = [one for family in FAMILIES.values() for one in family]


def _plain(value: object) -> object:
    """A value as it stands in the file."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {str(key): _plain(part) for key, part in value}
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int | str) or value is None:
        return value
    return str(value).removesuffix("+00:00")


def _text(rows: list[list[object]]) -> str:
    return json.dumps(sorted(rows, key=repr), ensure_ascii=False)


def _rows(sql: str) -> str:
    """What a view shows, or raises."""
    graph = compile_views([ViewDefinition("v", sql)], INPUTS)
    memory = MemoryTables(graph)
    for name, (_, rows) in TABLES.items():
        for row in rows:
            memory.upsert(name, dict(zip(graph_columns(name), row, strict=True)))
    memory.tick()
    plan = graph.views["v"]
    names = [name for name, _ in (plan.columns[:-1] if plan.bag else plan.columns)]
    return _text([[_plain(row[name]) for name in names] for row in memory.rows("v")])


def graph_columns(name: str) -> list[str]:
    return next(one for one in INPUTS if one.name == name).schema.names


@pytest.mark.parametrize("family", FAMILIES)
def test_a_clause_is_computed_or_refused(family: str) -> None:
    wrong = []
    for sql, sign, recorded in FAMILIES[family]:
        try:
            found, refused = _rows(sql), ""
        except TailraceError as error:
            found, refused = "", error.message.removeprefix("view 'v': ")
            if isinstance(error, UnforeseenError) or not (error.hint and error.code):
                wrong.append(f"{sql}: {error.message}, {error.detail}")
        expected = {"!": not found, "-": not found and refused == recorded}
        if not expected.get(sign, found == recorded):
            wrong.append(f"{sql}\n  {sign} {recorded}\n  here {found or refused}")
    assert not wrong, "\n".join(wrong)


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case list():
            return f"array({', '.join(map(_literal, value))})"
        case datetime.datetime():
            return f"TIMESTAMP_NTZ '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case float():
            return f"{value}D"
    return repr(value)


@pytest.fixture(scope="module")
def with_tables(spark: SparkSession) -> SparkSession:
    """A session with both tables as constants, so that most queries cost no job."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, (columns, rows) in TABLES.items():
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        casts = ", ".join(
            f"CAST(c{at} AS {kind}) AS {column}"
            for at, (column, kind) in enumerate(part.split(" ", 1) for part in columns.split(", "))
        )
        names = ", ".join(f"c{at}" for at in range(len(rows[0])))
        sql = f"SELECT {casts} FROM VALUES {values} AS v({names})"
        spark.sql(sql).createOrReplaceTempView(name)
    return spark


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("step", [20, pytest.param(1, marks=pytest.mark.thorough)])
def test_the_file_says_what_spark_does(step: int, with_tables: SparkSession) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with_tables.conf.set("spark.sql.timeType.enabled", "true")
    wrong = []
    for sql, sign, recorded in ALL[::step]:
        try:
            asked = with_tables.sql(sql)
            if sign == "=":
                found = _text([[_plain(_fields(v)) for v in row] for row in asked.collect()])
                if found != recorded:
                    wrong.append(f"{sql}\n  = {recorded}\n  in Spark {found}")
            elif sign in "!+":
                asked.collect()
                wrong.append(f"{sql}: accepted by Spark")
        except (PySparkException, Py4JError) as error:
            if sign in "=-":
                wrong.append(f"{sql}: refused by Spark, {error}")
    with_tables.conf.unset("spark.sql.timeType.enabled")
    assert not wrong, "\n".join(wrong)


def _fields(value: Any) -> Any:
    """Structs as dicts."""
    if isinstance(value, tuple) and hasattr(value, "asDict"):
        return value.asDict(recursive=True)
    return [_fields(part) for part in value] if isinstance(value, list) else value


# Arguments ------------------------------------------------------------------------------------


def _refused(tree: exp.Expr) -> bool:
    try:
        refuse_what_is_not_understood(Context("v", ""), tree)
    except TailraceError:
        return True
    return False


def _classes(kind: type[exp.Expr]) -> set[type[exp.Expr]]:
    return {kind}.union(*map(_classes, kind.__subclasses__()))


@pytest.mark.parametrize("value", [True, "ANYTHING", exp.Var(this="x"), [exp.Var(this="x")]])
def test_an_argument_that_no_pass_reads_is_refused(value: object) -> None:
    accepted = []
    for kind in _classes(exp.Expression):
        known = UNDERSTOOD.get(kind)
        for name in [*kind.arg_types, "an_argument_of_a_newer_parser"]:
            if known is not None and name in known:
                continue
            node = kind()
            node.args[name] = value
            if not _refused(node):
                accepted.append(f"{kind.__name__}.{name}")
    assert not accepted


def test_the_table_names_only_arguments_that_there_are() -> None:
    unknown = [
        f"{kind.__name__}.{name}"
        for kind, names in UNDERSTOOD.items()
        for name in names
        if name not in kind.arg_types
    ]
    # Our own parser of row patterns hangs its part of a window there.
    assert unknown == ["Window.framed"]


# Taken out, these leave a query that means the same.
_NO_MATTER = {
    (exp.Identifier, "quoted"), (exp.Ordered, "nulls_first"), (exp.DPipe, "safe"),
    (exp.Div, "safe"), (exp.Count, "big_int"), (exp.ArrayAgg, "nulls_excluded"),
    (exp.TryCast, "safe"), (exp.Window, "over"), (exp.DataType, "nested"), (exp.Lateral, "view"),
    (exp.Interval, "fraction_in_string"), (exp.JSONPathKey, "quoted"), (exp.With, "recursive"),
    (exp.Literal, "is_string"), (exp.TableAlias, "this"), (exp.Subquery, "alias"),
    (exp.GroupingId, "expressions"), (exp.Mode, "deterministic"),  # it always is, here
}  # fmt: skip


def _shape(sql_or_tree: exp.Expr, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The operators that a tree is compiled into; None if it is refused."""
    from tailrace.pipelines import compiler as compiling

    monkeypatch.setattr(compiling, "parse", lambda sql, view: sql_or_tree.copy())
    try:
        graph = compile_views([ViewDefinition("v", "SELECT 1")], INPUTS)
    except Exception:  # a tree with a hole may be anything
        return None
    return repr(graph.nodes) + repr(graph.views)


def test_a_clause_taken_out_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every argument of every query that is computed: without it the view is another one."""
    ignored = set()
    seen = set[tuple[type, str]]()
    for sql, sign, _ in ALL:
        if sign not in "=+":
            continue
        tree = parse(sql, "v")
        whole: str | None = None
        for node in list(tree.walk()):
            for name, value in list(node.args.items()):
                key = (type(node), name)
                if key in _NO_MATTER or key in seen or value in (None, False, []):
                    continue
                whole = whole or _shape(tree, monkeypatch)
                node.args[name] = None
                without = _shape(tree, monkeypatch)
                node.args[name] = value
                if without != whole:
                    seen.add(key)
                else:
                    ignored.add((key, sql))
    left = {f"{kind.__name__}.{name}: {sql}" for (kind, name), sql in ignored
            if (kind, name) not in seen}  # fmt: skip
    assert not left, "\n".join(sorted(left))
