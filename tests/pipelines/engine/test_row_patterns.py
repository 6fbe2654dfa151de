"""MATCH_RECOGNIZE against its naive twin: after every tick the same as a batch run."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.operators.match_recognize import Pattern
from tailrace.pipelines.engine.patterns import partition
from tailrace.pipelines.errors import EvaluationError
from tailrace.testing.row_patterns import (
    Clause,
    SkipError,
    TooLong,
    View,
    recognize,
    recognize_in_windows,
)
from tailrace.testing.state import MemoryState
from tailrace.testing.ticks import MemoryTables, table

TABLES = [table("s.public.t", "id BIGINT, k INT, o INT, x INT, at TIMESTAMP_NTZ", ["id"])]
START = datetime.datetime(2026, 1, 1)


def _compared(sign: str, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    return bool({"<": a < b, ">": a > b, "=": a == b, ">=": a >= b}[sign])


def _all(*parts: bool | None) -> bool | None:
    return False if False in parts else None if None in parts else True


# Conditions: SQL with {v} for the variable, and what it says.
CONDITIONS: list[tuple[str, Any]] = [
    ("x > 1", lambda v: lambda m: _compared(">", m.last("x"), 1)),
    ("{v}.x = 0", lambda v: lambda m: _compared("=", m.last("x", v), 0)),
    ("{v}.x < PREV({v}.x)", lambda v: lambda m: _compared("<", m.last("x", v), m.last("x", v, 0, -1))),
    ("NEXT(x, 2) >= x", lambda v: lambda m: _compared(">=", m.last("x", "", 0, 2), m.last("x"))),
    ("x > 0 AND {v}.x > PREV(x)", lambda v: lambda m: _all(
        _compared(">", m.last("x"), 0), _compared(">", m.last("x", v), m.last("x", "", 0, -1)))),
    ("x >= FIRST(A.x)", lambda v: lambda m: _compared(">=", m.last("x"), m.first("x", "A"))),
    ("x > LAST(B.x, 1)", lambda v: lambda m: _compared(">", m.last("x"), m.last("x", "B", 1))),
    ("count(*) < 4", lambda v: lambda m: len(m.places()) < 4),
    ("count(A.*) > count(B.x)", lambda v: lambda m: len(m.places("A")) > len(m.values("x", "B"))),
    ("sum({v}.x) < 4", lambda v: lambda m: _compared("<", sum(m.values("x", v)) if m.values("x", v) else None, 4)),
    ("x > min(U.x)", lambda v: lambda m: _compared(">", m.last("x"), min(m.values("x", "A B"), default=None))),
    ("PREV(CLASSIFIER()) = 'A'", lambda v: lambda m: _compared("=", m.last("", "", 0, -1), "A")),
    ("CLASSIFIER(U) = 'B'", lambda v: lambda m: _compared("=", m.last("", "A B"), "B")),
    ("CLASSIFIER() = '{v}'", lambda v: lambda m: True),
    ("MATCH_NUMBER() < 3", lambda v: lambda m: m.number < 3),
    ("PREV(FIRST(x, 1), 1) = x", lambda v: lambda m: _compared("=", m.first("x", "", 1, -1), m.last("x"))),
    ("x IS NULL", lambda v: lambda m: m.last("x") is None),
]  # fmt: skip
MEASURES: list[tuple[str, Any]] = [
    ("A.x", lambda m: m.last("x", "A")),
    ("x", lambda m: m.last("x")),
    ("FIRST(x, 2)", lambda m: m.first("x", "", 2)),
    ("LAST(B.x, 1)", lambda m: m.last("x", "B", 1)),
    ("FINAL LAST(U.x)", lambda m: m.final().last("x", "A B")),
    ("PREV(LAST(A.x), 2)", lambda m: m.last("x", "A", 0, -2)),
    ("NEXT(FINAL FIRST(B.x, 1), 1)", lambda m: m.final().first("x", "B", 1, 1)),
    ("NEXT(x)", lambda m: m.last("x", "", 0, 1)),
    ("count(*)", lambda m: len(m.places())),
    ("FINAL count(*) - RUNNING count(B.x)", lambda m: len(m.final().places()) - len(m.values("x", "B"))),
    ("count(DISTINCT x)", lambda m: len(set(m.values("x")))),
    ("sum(A.x)", lambda m: sum(m.values("x", "A")) if m.values("x", "A") else None),
    ("FINAL max(U.x)", lambda m: max(m.final().values("x", "A B"), default=None)),
    ("array_agg(x)", lambda m: m.values("x")),
    ("array_agg(CLASSIFIER())", lambda m: [m.names[p - m.start] for p in m.places()]),
    ("FINAL listagg(lower(CLASSIFIER(A)))", lambda m: "a" * len(m.final().places("A")) or None),
    ("CLASSIFIER()", lambda m: m.last("")),
    ("CLASSIFIER(B)", lambda m: m.last("", "B")),
    ("PREV(CLASSIFIER())", lambda m: m.last("", "", 0, -1)),
    ("MATCH_NUMBER()", lambda m: m.number),
    ("count(*) FILTER (WHERE x > 1)", lambda m: len([x for x in m.values("x") if x > 1])),
]  # fmt: skip
NAMES = ["A", "B", "C"]


def _text(pattern: tuple[Any, ...]) -> str:
    kind, *parts = pattern
    match kind:
        case "row":
            return str(parts[0])
        case "sequence":
            return f"({' '.join(map(_text, parts))})"
        case "either":
            return f"({' | '.join(map(_text, parts))})"
        case "permute":
            return f"PERMUTE({', '.join(map(_text, parts))})"
        case "exclude":
            return f"{{- {_text(parts[0])} -}}"
        case "first":
            return "^"
        case "last":
            return "$"
    part, least, most, greedy = parts
    bounds = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    shown = bounds or f"{{{least},{'' if most is None else most}}}"
    return f"({_text(part)}){shown}{'' if greedy else '?'}"


_BOUNDS = [(0, None), (1, None), (0, 1), (2, 2), (1, 2), (2, None), (0, 2)]
_KINDS = ["row", "row", "sequence", "sequence", "either", "repeat", "repeat", "repeat", "permute"]
_LEAVES = ["row"] * 6 + ["nothing", "first", "last"]


@st.composite
def patterns(draw: st.DrawFn, excluded: bool, depth: int = 3) -> tuple[Any, ...]:
    kind = draw(st.sampled_from([*_KINDS, "exclude"] if excluded and depth < 3 else _KINDS))
    if depth == 0 or kind == "row":
        kind = draw(st.sampled_from(_LEAVES))
        return {"row": ("row", draw(st.sampled_from(NAMES))), "nothing": ("sequence",)}.get(
            kind, (kind,)
        )
    inner = patterns(excluded, depth - 1)
    if kind == "repeat":
        return ("repeat", draw(inner), *draw(st.sampled_from(_BOUNDS)), draw(st.booleans()))
    if kind == "exclude":
        return ("exclude", draw(inner))
    least = 2 if kind == "permute" else 1
    return (kind, *(draw(inner) for _ in range(draw(st.integers(least, 3)))))


@st.composite
def clauses(draw: st.DrawFn) -> tuple[str, Clause]:
    """SQL and the same for the twin."""
    rows = draw(st.sampled_from(["one", "one", "all", "omit empty", "unmatched"]))
    pattern = draw(patterns(rows not in ("unmatched",)))
    conditions = draw(
        st.dictionaries(st.sampled_from(NAMES), st.sampled_from(CONDITIONS), max_size=3)
    )
    measured = draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=4))
    skip = draw(
        st.sampled_from(["last row", "last row", "next row", ("first", "B"), ("last", "A B")])
    )
    within = draw(st.sampled_from([None, None, 3]))
    used = {name for name in NAMES if f"'{name}'" in repr(pattern)}
    # A variable that the pattern does not have has no name in the clause.
    whole = (
        "either",
        pattern,
        ("sequence", *(("row", name) for name in NAMES), ("first",), ("row", "A")),
    )
    partitioned = draw(st.booleans())
    said = {
        "one": "ONE ROW PER MATCH", "all": "ALL ROWS PER MATCH",
        "omit empty": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
        "unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
    }[rows]  # fmt: skip
    skipped = {"last row": "PAST LAST ROW", "next row": "TO NEXT ROW"}.get(str(skip))
    if skipped is None:
        skipped = f"TO {skip[0].upper()} {'U' if ' ' in skip[1] else skip[1]}"
    define = [f"{name} AS {sql.format(v=name)}" for name, (sql, _) in conditions.items()]
    lines = [
        "SELECT * FROM s.t MATCH_RECOGNIZE (",
        "PARTITION BY k" if partitioned else "",
        "ORDER BY at, o DESC, id" if within else "ORDER BY o DESC, id",
        "MEASURES " + ", ".join(f"{sql} AS m{i}" for i, (sql, _) in enumerate(measured)),
        said,
        f"AFTER MATCH SKIP {skipped}",
        f"PATTERN ({_text(whole)})",
        f"WITHIN INTERVAL '{within}' SECONDS" if within else "",
        "SUBSET U = (A, B)",
        f"DEFINE {', '.join(define)}" if define else "",
        ") AS m",
    ]

    def order(row: dict[str, Any]) -> Any:
        last = (row["o"] is None, -(row["o"] or 0), row["id"])
        return (row["at"] is not None, row["at"] or START, *last) if within else last

    clause = Clause(
        pattern=whole,
        define={name: made(name) for name, (_, made) in conditions.items()},
        measures={f"m{i}": made for i, (_, made) in enumerate(measured)},
        partition=["k"] if partitioned else [],
        order=order,
        rows=rows,
        skip=skip,
        within=("at", datetime.timedelta(seconds=within)) if within else None,
    )
    assume(used)
    return "\n".join(filter(None, lines)), clause


def row_of(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "k": rng.choice([1, 1, 2, None]),
        "o": rng.choice([None, 0, 1, 2, 3]),
        "x": rng.choice([None, 0, 0, 1, 2, 3]),
        "at": None if rng.random() < 0.1 else START + datetime.timedelta(seconds=rng.randrange(6)),
    }


def shown(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


Batch: TypeAlias = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def check(
    sql: str, clause: Clause, seed: int, rounds: int, shards: int = 1, batch: Batch | None = None
) -> None:
    """Change a table at random, and compare the view after every tick with what `batch` (of
    none, the twin of the clause) gives."""
    rng = random.Random(seed)
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES), shards=shards)
    rows: dict[int, dict[str, Any]] = {}
    for _ in range(rounds):
        for _ in range(rng.choice([1, 1, 2, 6])):
            number = rng.randrange(9)
            if number in rows and rng.random() < 0.4:
                memory.delete("s.public.t", rows.pop(number))
            else:
                rows[number] = row_of(rng, number)
                memory.upsert("s.public.t", rows[number])
        try:
            every = list(rows.values())
            expected = recognize(clause, every) if batch is None else batch(every)
        except TooLong:
            return
        except SkipError:
            with pytest.raises(EvaluationError, match="SKIP"):
                memory.tick()
            return
        memory.tick()
        assert shown(memory.rows("v")) == shown(expected), sql


def _free(pattern: tuple[Any, ...]) -> tuple[Any, ...]:
    """The pattern without anchors."""
    kind, *parts = pattern
    if kind in ("first", "last"):
        return ("sequence",)
    return (kind, *(_free(part) if isinstance(part, tuple) else part for part in parts))


@st.composite
def windows(draw: st.DrawFn) -> tuple[str, Clause, int | None, bool]:
    """SQL with a row pattern in a window, and the same for the twin."""
    pattern = _free(draw(patterns(excluded=False)))
    whole = ("either", pattern, ("sequence", *(("row", name) for name in NAMES)))
    unnumbered = [one for one in CONDITIONS if "MATCH_NUMBER" not in one[0]]
    conditions = draw(
        st.dictionaries(st.sampled_from(NAMES), st.sampled_from(unnumbered), max_size=3)
    )
    measures = [one for one in MEASURES if "MATCH_NUMBER" not in one[0]]
    measured = draw(st.lists(st.sampled_from(measures), min_size=1, max_size=4))
    skip = draw(
        st.sampled_from(["last row", "last row", "next row", ("first", "B"), ("last", "A B")])
    )
    end, seek = draw(st.sampled_from([None, None, 0, 1, 3])), draw(st.booleans())
    skipped = {"last row": "PAST LAST ROW", "next row": "TO NEXT ROW"}.get(str(skip))
    if skipped is None:
        skipped = f"TO {skip[0].upper()} {'U' if ' ' in skip[1] else skip[1]}"
    define = [f"{name} AS {sql.format(v=name)}" for name, (sql, _) in conditions.items()]
    sql = f"""SELECT id, k, o, x, at, {", ".join(f"m{i} OVER w AS m{i}" for i in range(len(measured)))},
            count(x) OVER w AS c, max(x) OVER w AS h
        FROM s.t WINDOW w AS (PARTITION BY k ORDER BY o DESC, id
        MEASURES {", ".join(f"{sql} AS m{i}" for i, (sql, _) in enumerate(measured))}
        ROWS BETWEEN CURRENT ROW AND {"UNBOUNDED" if end is None else end} FOLLOWING
        AFTER MATCH SKIP {skipped} {"SEEK" if seek else draw(st.sampled_from(["", "INITIAL"]))}
        PATTERN ({_text(whole)}) SUBSET U = (A, B)
        {f"DEFINE {', '.join(define)}" if define else ""})"""
    clause = Clause(
        pattern=whole,
        define={name: made(name) for name, (_, made) in conditions.items()},
        # Every measure of a window is seen from the last row of its match.
        measures={f"m{i}": made for i, (_, made) in enumerate(measured)}
        | {"c": lambda m: len(m.values("x")), "h": lambda m: max(m.values("x"), default=None)},
        partition=["k"],
        order=lambda row: (row["o"] is None, -(row["o"] or 0), row["id"]),
        skip=skip,
    )
    return sql, clause, end, seek


@settings(
    max_examples=40, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
@given(windows(), st.integers(0, 1 << 20))
def test_a_row_pattern_in_a_window_is_what_a_batch_run_gives(
    one: tuple[str, Clause, int | None, bool], seed: int
) -> None:
    sql, clause, end, seek = one

    def expected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found = recognize_in_windows(clause, rows, end, seek=seek)
        return [{**row, "c": row["c"] or 0} for row in found]  # of no rows: 0

    check(sql, clause, seed, rounds=6, shards=1 + seed % 3, batch=expected)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(windows(), st.integers(0, 1 << 20))
def test_a_row_pattern_in_a_window_is_what_a_batch_run_gives_at_length(
    one: tuple[str, Clause, int | None, bool], seed: int
) -> None:
    sql, clause, end, seek = one

    def expected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found = recognize_in_windows(clause, rows, end, seek=seek)
        return [{**row, "c": row["c"] or 0} for row in found]

    check(sql, clause, seed, rounds=12, shards=1 + seed % 3, batch=expected)


@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
@given(clauses(), st.integers(0, 1 << 20))
def test_a_view_is_what_a_batch_run_over_its_rows_gives(one: tuple[str, Clause], seed: int) -> None:
    check(*one, seed, rounds=6, shards=1 + seed % 3)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(clauses(), st.integers(0, 1 << 20))
def test_a_view_is_what_a_batch_run_over_its_rows_gives_at_length(
    one: tuple[str, Clause], seed: int
) -> None:
    check(*one, seed, rounds=12, shards=1 + seed % 3)


def test_partitions_of_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of two rows: every change cuts, fills or empties one."""
    monkeypatch.setattr(partition, "BLOCK_ROWS", 2)
    sql = """SELECT * FROM s.t MATCH_RECOGNIZE (
        ORDER BY o DESC, id
        MEASURES MATCH_NUMBER() AS n, FIRST(A.x) AS a, LAST(x) AS l, count(*) AS c
        PATTERN (A B+ C?) DEFINE B AS x < PREV(x), C AS x > FIRST(x)) AS m"""
    clause = Clause(
        pattern=("sequence", ("row", "A"), ("repeat", ("row", "B"), 1, None, True),
                 ("repeat", ("row", "C"), 0, 1, True)),
        define={
            "B": lambda m: _compared("<", m.last("x"), m.last("x", "", 0, -1)),
            "C": lambda m: _compared(">", m.last("x"), m.first("x")),
        },
        measures={
            "n": lambda m: m.number, "a": lambda m: m.first("x", "A"),
            "l": lambda m: m.last("x"), "c": lambda m: len(m.places()),
        },
        order=lambda row: (row["o"] is None, -(row["o"] or 0), row["id"]),
    )  # fmt: skip
    for seed in range(8):
        check(sql, clause, seed, rounds=20)


# Patterns whose matches grow with the rows behind them, and what may be measured of them.
GROWING: list[tuple[str, tuple[Any, ...]]] = [
    ("A+", ("repeat", ("row", "A"), 1, None, True)),
    ("A B*", ("sequence", ("row", "A"), ("repeat", ("row", "B"), 0, None, True))),
    ("A+ B?", ("sequence", ("repeat", ("row", "A"), 1, None, True),
               ("repeat", ("row", "B"), 0, 1, True))),
    ("(A | B)+ C?", ("sequence", ("repeat", ("either", ("row", "A"), ("row", "B")), 1, None, True),
                     ("repeat", ("row", "C"), 0, 1, True))),
    ("(A B)+", ("repeat", ("sequence", ("row", "A"), ("row", "B")), 1, None, True)),
    ("A (B+ C)?", ("sequence", ("row", "A"), ("repeat", ("sequence", ("repeat", ("row", "B"), 1,
               None, True), ("row", "C")), 0, 1, True))),
]  # fmt: skip


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.sampled_from(GROWING),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(CONDITIONS), max_size=2),
    st.lists(st.sampled_from(MEASURES), min_size=1, max_size=5),
    st.sampled_from([None, None, 9]),
    st.integers(0, 1 << 20),
)
def test_a_match_that_grows_is_what_a_batch_run_gives(
    pattern: tuple[str, Any], conditions: Any, measured: Any, within: int | None, seed: int
) -> None:
    """Rows come behind the last one, and now and then elsewhere, in blocks of two rows."""
    whole = ("either", pattern[1], ("sequence", *(("row", name) for name in NAMES), ("first",),
                                    ("row", "A")))  # fmt: skip
    define = [f"{name} AS {sql.format(v=name)}" for name, (sql, _) in conditions.items()]
    sql = f"""SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY at, id
        MEASURES {", ".join(f"{sql} AS m{i}" for i, (sql, _) in enumerate(measured))}
        PATTERN ({_text(whole)}) {f"WITHIN INTERVAL '{within}' SECONDS" if within else ""}
        SUBSET U = (A, B) {f"DEFINE {', '.join(define)}" if define else ""}) AS m"""
    clause = Clause(
        pattern=whole,
        define={name: made(name) for name, (_, made) in conditions.items()},
        measures={f"m{i}": made for i, (_, made) in enumerate(measured)},
        partition=["k"],
        order=lambda row: (row["at"], row["id"]),
        within=("at", datetime.timedelta(seconds=within)) if within else None,
    )
    rng = random.Random(seed)
    rows: dict[int, dict[str, Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "BLOCK_ROWS", 2)
        memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES))
        for number in range(18):
            if rows and rng.random() < 0.1:
                memory.delete("s.public.t", rows.pop(rng.choice(list(rows))))
            for more in range(rng.choice([1, 1, 2])):
                late = rng.random() < 0.1
                row = row_of(rng, 2 * number + more) | {"k": 1}
                seconds = rng.randrange(number + 1) if late else number
                row["at"] = START + datetime.timedelta(seconds=seconds)
                rows[row["id"]] = row
                memory.upsert("s.public.t", row)
            try:
                expected = recognize(clause, list(rows.values()))
            except TooLong:
                return
            memory.tick()
            assert shown(memory.rows("v")) == shown(expected), sql


@pytest.mark.parametrize(
    "define", ["A.x >= 0", "A.x >= PREV(A.x) OR count(*) < 9_000", "sum(A.x) >= 0"]
)
def test_a_row_behind_a_long_match_reads_its_ends_alone(
    define: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"""SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id
        MEASURES FIRST(id) AS a, LAST(A.id) AS z, count(*) AS n, sum(x) AS s
        PATTERN (A+) DEFINE A AS {define.replace("_", "")}) AS m"""
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES))
    for number in range(3_000):
        memory.upsert("s.public.t", {"id": number, "k": 1, "x": 1})
    memory.tick()
    read: list[bytes] = []
    get = MemoryState.get

    def noted(state: MemoryState, key: bytes) -> bytes | None:
        read.append(key)
        return get(state, key)

    monkeypatch.setattr(MemoryState, "get", noted)
    for number in range(3_000, 3_020):
        read.clear()
        memory.upsert("s.public.t", {"id": number, "k": 1, "x": 1})
        memory.tick()
        assert memory.rows("v") == [{"k": 1, "a": 0, "z": number, "n": number + 1, "s": number + 1}]
        assert len([key for key in read if key.startswith(b"b")]) <= 2, number


@pytest.mark.parametrize("pattern", ["(A*)*B", "(A | A B)+ C"])
def test_nested_repetitions_end_soon(pattern: str) -> None:
    """10,000 rows that nothing ends: each is looked at a few times."""
    last = pattern[-1]
    sql = f"""SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY id MEASURES count(*) AS n
        PATTERN ({pattern}) DEFINE {last} AS {last}.x > 5) AS m"""
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES))
    for number in range(10_000):
        memory.upsert("s.public.t", {"id": number, "k": 1, "x": 6 if number == 9_998 else 1})
    memory.tick()
    assert memory.rows("v") == [{"n": 9_999}]


def test_an_operator_is_an_automaton_when_no_condition_looks_back() -> None:
    def described(define: str) -> str:
        sql = f"SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY id MEASURES A.x AS a PATTERN (A B) DEFINE {define}) AS m"
        graph = compile_views([ViewDefinition("v", sql)], TABLES)
        (operator,) = [n.operator for n in graph.nodes if isinstance(n.operator, Pattern)]
        return operator.describe()

    assert "by an automaton, conditions by column: B" in described("B AS B.x > 1")
    assert "by an automaton, once for each row: B" in described("B AS B.x > PREV(B.x)")
    assert "by threads for B" in described("B AS B.x > A.x")


def test_the_view_of_a_match_is_what_conditions_see() -> None:
    view = View([{"x": 1}, {"x": 2}, {"x": 3}], 0, ["A", "B", "A"], 2, 1)
    assert view.first("x", "A") == 1
    assert view.last("x", "A") == 1
    assert view.final().last("x", "A") == 3
    assert view.last("x", "", 0, 5) is None


@pytest.mark.parametrize("policy", ["auto", "full"])
def test_views_read_views_of_matches(policy: str) -> None:
    falls = """SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY id
        MEASURES A.x AS high, LAST(B.x) AS low, count(B.*) AS n
        PATTERN (A B+) DEFINE B AS B.x < PREV(B.x) AND B.x >= (SELECT min(x) FROM s.t)) AS m"""
    pairs = "SELECT a.high, b.low FROM falls a JOIN falls b ON a.k = b.k AND a.n < b.n"
    views = [ViewDefinition("falls", falls, policy=policy), ViewDefinition("pairs", pairs)]
    memory = MemoryTables(compile_views(views, TABLES), shards=2)
    for number, x in enumerate([9, 4, 7, 5, 3, 8]):
        memory.upsert("s.public.t", {"id": number, "k": 1, "x": x})
    memory.tick()
    assert shown(memory.rows("falls")) == shown(
        [{"k": 1, "high": 9, "low": 4, "n": 1}, {"k": 1, "high": 7, "low": 3, "n": 2}]
    )
    assert memory.rows("pairs") == [{"high": 9, "low": 3}]
    memory.delete("s.public.t", {"id": 2})
    memory.tick()
    assert memory.rows("pairs") == []
    assert shown(memory.rows("falls")) == shown(
        [{"k": 1, "high": 9, "low": 4, "n": 1}, {"k": 1, "high": 5, "low": 3, "n": 1}]
    )


def test_a_change_reads_and_writes_what_it_touches() -> None:
    """A late row in a partition of many blocks: bytes of a few of them are written."""
    sql = """SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY o, id
        MEASURES A.id AS a, count(*) AS n
        PATTERN (A B+) DEFINE B AS B.x < PREV(B.x)) AS m"""
    graph = compile_views([ViewDefinition("v", sql)], TABLES)
    (node,) = [node for node in graph.nodes if isinstance(node.operator, Pattern)]
    memory = MemoryTables(graph)
    for number in range(3_000):
        memory.upsert("s.public.t", {"id": number, "k": 1, "o": 2 * number, "x": number * 7 % 11})
    memory.tick()
    before = dict(memory.states.of(0, node.id).rows)
    memory.upsert("s.public.t", {"id": 5_000, "k": 1, "o": 3_001, "x": 100})
    memory.tick()
    after = memory.states.of(0, node.id).rows
    blocks = [key for key, value in after.items() if before.get(key) != value]
    assert len(after) > 10
    assert len(blocks) <= 3
