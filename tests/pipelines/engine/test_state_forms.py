"""The bytes in which operators keep their state, held against a file of what they were.

A line of `state_forms.txt` is a query's operator: what it is, its name, the hash of its state
after the same changes. Where the hash changes, the name must change too (`form`), or the form be
refused (`format`): state of the version before would be misread otherwise.
"""

from __future__ import annotations

import datetime
import hashlib
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.engine.operators.aggregates import Moments
from tailrace.pipelines.engine.operators.as_of import AsOf
from tailrace.pipelines.values.keys import encode_part, form_of
from tailrace.pipelines.values.types import parse_type
from tailrace.testing.ticks import MemoryTables, table

KNOWN = Path(__file__).with_name("state_forms.txt")
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
TABLES = [
    table(
        "s.public.a",
        "id BIGINT, k INT, s STRING, d DECIMAL(20,2), f DOUBLE, at TIMESTAMP, xs ARRAY<INT>,"
        " p STRUCT<x: DOUBLE, y: STRING>",
        ["id"],
    ),
    table("s.public.b", "k INT, s STRING, xs ARRAY<INT>"),
    table("s.public.rates", "s STRING, rate INT", ["s"], "history"),
    table("clicks", "id BIGINT, s STRING, at TIMESTAMP", [], "stream"),
]
QUERIES = {
    "join": "SELECT a.id, b.k FROM s.a JOIN s.b ON a.s = b.s",
    "outer join": "SELECT a.id, b.k FROM s.a FULL JOIN s.b ON a.k = b.k AND a.d > 0",
    "anti join": "SELECT id FROM s.a WHERE k NOT IN (SELECT k FROM s.b)",
    "join of arrays": "SELECT a.id, b.k FROM s.a JOIN s.b ON a.xs = b.xs",
    "join of all": "SELECT a.id, b.k FROM s.a LEFT JOIN s.b ON a.k > 1",
    "join of sums": "SELECT b.s, sum(a.d) d, count(*) n FROM s.a JOIN s.b ON a.k = b.k GROUP BY b.s",
    "outer join of sums": "SELECT b.s, sum(a.k) n FROM s.b LEFT JOIN s.a ON a.k = b.k GROUP BY b.s",
    "sums": "SELECT k, count(*) n, sum(d) d, avg(f) f, stddev(d) v FROM s.a GROUP BY k",
    "ordered": "SELECT k, min(s) m, max(d) x, collect_list(s) c, median(f) p FROM s.a GROUP BY k",
    "moments": "SELECT k, var_pop(d) v, corr(d, f) c, kurtosis(d) u, percentile(d, 0.3) p FROM s.a GROUP BY k",
    "zeros": "SELECT k, collect_list(p) c, min(f) m, mode(f) o, max(p) x FROM s.a GROUP BY k",
    "distinct": "SELECT s, count(DISTINCT k) n, sum(DISTINCT d) d FROM s.a GROUP BY s",
    "sketch": "SELECT k, approx_count_distinct(s) n FROM s.a GROUP BY k",
    "groups of arrays": "SELECT xs, count(*) n FROM s.a GROUP BY xs",
    "groups of structs": "SELECT p, count(*) n, max(xs) x FROM s.a GROUP BY p",
    "set": "SELECT k, s FROM s.a EXCEPT ALL SELECT k, s FROM s.b",
    "set of arrays": "SELECT xs FROM s.a INTERSECT SELECT xs FROM s.b",
    "top": "SELECT id, s FROM s.a ORDER BY s DESC, d LIMIT 3 OFFSET 1",
    "top of arrays": "SELECT id FROM s.a ORDER BY xs DESC LIMIT 3",
    "window": "SELECT id, rank() OVER (PARTITION BY s ORDER BY d) r FROM s.a",
    "window of arrays": "SELECT id, rank() OVER (PARTITION BY xs ORDER BY d) r FROM s.a",
    "bag": "SELECT s, f FROM s.a",
    "clock": "SELECT id FROM s.a WHERE at > now() - INTERVAL '1' HOUR",
    "as of": "SELECT a.id, r.rate FROM s.a JOIN s.rates FOR SYSTEM_TIME AS OF a.at r ON r.s = a.s",
    "interval join": "SELECT a.id, b.id o FROM clicks a LEFT JOIN clicks b ON a.s = b.s"
    " AND b.at BETWEEN a.at AND a.at + INTERVAL '1' HOUR",
    "first values": "SELECT s, min(at) m, max(id) x FROM clicks GROUP BY s",
    "recomputed": "SELECT k, hour(now()) h FROM s.b",
    "pattern": "SELECT * FROM s.a MATCH_RECOGNIZE (PARTITION BY s ORDER BY at, id MEASURES A.id AS a,"
    " sum(d) AS t ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B*) DEFINE B AS d > PREV(d)) m",
}


def graph_of(sql: str) -> Graph:
    return compile_views([ViewDefinition("v", sql)], TABLES)


def row_of(rng: random.Random, names: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": rng.randrange(9), "k": rng.randrange(3), "s": rng.choice(["x", "y", "a\0b"]),
        "d": rng.randrange(-99, 99), "f": rng.choice([0.5, -0.0, 1e300]),
        "at": START + datetime.timedelta(minutes=rng.randrange(300)),
        "xs": rng.choice([[], [1], [1, None], [2, 1]]), "rate": rng.randrange(9),
        "p": {"x": rng.choice([0.0, -0.0, 1.5]), "y": rng.choice([None, "z"])},
    }  # fmt: skip
    return {n: None if n != "id" and rng.random() < 0.15 else made[n] for n in names}


def states(sql: str) -> list[str]:
    """A line for every operator that keeps something."""
    rng = random.Random(7)
    memory = MemoryTables(graph_of(sql))
    memory.now_ms = int(START.timestamp() * 1000)
    for _ in range(6):
        memory.now_ms += 3_000_000
        for _ in range(12):
            chosen = rng.choice(TABLES)
            row = row_of(rng, chosen.schema.names)
            if chosen.kind == "history":
                row |= {"s": row["s"] or "x", "__copied": False}
                row["__versioned_at"] = START + datetime.timedelta(minutes=rng.randrange(300))
            gone = chosen.kind == "table" and rng.random() < 0.3
            (memory.delete if gone else memory.upsert)(chosen.topic, row)
        memory.tick()
    lines = []
    for node in memory.graph.nodes:
        kept = memory.states.of(0, node.id).rows
        if kept:
            digest = hashlib.blake2b(digest_size=8)
            for key, value in sorted(kept.items()):
                digest.update(len(key).to_bytes(4, "big") + key + value + b"\n")
            form = getattr(node.operator, "format", 1)
            lines.append(f"{node.id} format {form} holds {digest.hexdigest()}")
    return lines


@pytest.mark.parametrize("name", QUERIES)
def test_state_is_kept_as_it_was_or_under_another_name(name: str) -> None:
    known = [
        line.removeprefix(f"{name}: ")
        for line in KNOWN.read_text().splitlines()
        if line.startswith(f"{name}: ")
    ]
    assert states(QUERIES[name]) == known, "another form of state needs another number: see above"


def names_of(sql: str) -> list[str]:
    return [node.id for node in graph_of(sql).nodes]


def test_another_form_of_an_operator_is_another_node(monkeypatch: pytest.MonkeyPatch) -> None:
    as_of, join = QUERIES["as of"], QUERIES["join"]
    before, others = names_of(as_of), names_of(join)
    monkeypatch.setattr(AsOf, "form", AsOf.form + 1)
    changed = set(before) - set(names_of(as_of))
    assert {name.partition("-")[0] for name in changed} == {"as", "result"}
    assert names_of(join) == others


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("join of arrays", {"join", "result"}),
        ("groups of arrays", {"group", "result"}),
        ("groups of structs", {"group", "result"}),
        ("set of arrays", {"counts", "result"}),
        ("top of arrays", {"top", "result"}),
        ("window of arrays", {"window", "result"}),
        ("join", set()),
        ("sums", set()),
    ],
)
def test_another_form_of_keys_is_another_node_where_there_are_such_keys(
    query: str, kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names_of(QUERIES[query])
    monkeypatch.setattr("tailrace.pipelines.values.keys.NESTED_FORM", 3)
    changed = set(before) - set(names_of(QUERIES[query]))
    assert {name.partition("-")[0] for name in changed} == kinds


def test_another_form_of_an_aggregate_is_another_node(monkeypatch: pytest.MonkeyPatch) -> None:
    over = "SELECT id, stddev(d) OVER (PARTITION BY k) v, rank() OVER (PARTITION BY k ORDER BY d) r FROM s.a"
    known = {sql: names_of(sql) for sql in (QUERIES["sums"], QUERIES["zeros"], over)}
    monkeypatch.setattr(Moments, "form", property(lambda moments: 3, lambda moments, form: None))
    assert names_of(QUERIES["zeros"]) == known[QUERIES["zeros"]]
    for sql in (QUERIES["sums"], over):
        changed = {name.partition("-")[0] for name in set(known[sql]) - set(names_of(sql))}
        assert changed == {"window" if sql == over else "group", "result"}


def test_arrays_that_are_only_carried_name_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT a.id, a.xs, b.rate FROM s.a JOIN s.rates b ON a.s = b.s"
    before = names_of(sql)
    monkeypatch.setattr("tailrace.pipelines.values.keys.NESTED_FORM", 3)
    assert names_of(sql) == before


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("INT", 1), ("DOUBLE", 1), ("STRING", 1), ("STRUCT<a: INT, b: STRING>", 1),
        ("ARRAY<INT>", 2), ("STRUCT<a: STRUCT<b: ARRAY<STRING>>>", 2), ("STRUCT<a: DOUBLE>", 2),
    ],
)  # fmt: skip
def test_the_form_of_a_type(kind: str, form: int) -> None:
    assert form_of(parse_type(kind)) == form


def test_the_bytes_of_an_array_as_a_key() -> None:
    kind = pa.list_(pa.int32())
    assert encode_part((1,), kind).hex() == "0101018000000000000001" + "00"
    assert encode_part((), kind) < encode_part((None,), kind) < encode_part((1,), kind)
