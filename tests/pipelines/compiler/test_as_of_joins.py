"""As-of joins of every form, against a list of all versions that is gone through for each row.

Rows and versions come late and early, at equal times, are deleted and changed; event times and keys
are sometimes NULL.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from typing import Any

import pytest

import tailrace as tr
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.pipelines.engine.graph import TableInput
from tailrace.pipelines.errors import NotIncrementalError, SqlTypeError, ViewError
from tailrace.testing.recompute import as_bag
from tailrace.testing.ticks import MemoryTables, table

Row = dict[str, Any]
ORDERS, RATES, QUOTAS = "s.public.orders", "s.public.rates", "s.public.quotas"
TABLES = [
    table(ORDERS, "id BIGINT, at TIMESTAMP, c STRING, k BIGINT", ["id"]),
    table(RATES, "c STRING, rate INT", ["c"], "history"),
    table(QUOTAS, "c STRING, k INT, quota INT", ["c", "k"], "history"),
]
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
RATE = "s.rates FOR SYSTEM_TIME AS OF"


class Versions:
    """What was valid when, as a list."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], list[tuple[datetime.datetime, Row | None]]] = {}

    def at(self, key: tuple[Any, ...], moment: datetime.datetime | None) -> Row | None:
        found: tuple[datetime.datetime, Row | None] | None = None
        for since, row in self.known.get(key, []):
            if moment is None:
                return None
            # Of equal times the one that came last is valid.
            if since <= moment and (found is None or since >= found[0]):
                found = (since, row)
        return found[1] if found else None


Judge = Callable[[Row, Versions, Versions], "list[tuple[Any, ...]]"]


def rate(o: Row, rates: Versions, moment: datetime.datetime | None = None) -> Row | None:
    return rates.at((o["c"],), moment or o["at"]) if o["c"] is not None else None


def inner(o: Row, found: Row | None, *names: str, keep: bool = True) -> list[tuple[Any, ...]]:
    return [(o["id"], *(found[name] for name in names))] if found and keep else []


def outer(o: Row, found: Row | None, *names: str, keep: bool = True) -> list[tuple[Any, ...]]:
    shown = found if found and keep else dict.fromkeys(names)
    return [(o["id"], *(shown[name] for name in names))]


def shifted(o: Row, **by: float) -> datetime.datetime | None:
    return o["at"] + datetime.timedelta(**by) if o["at"] else None


def day_of(o: Row) -> datetime.datetime | None:
    return o["at"].replace(hour=0, minute=0, second=0) if o["at"] else None


JOINS: dict[str, Judge] = {
    f"SELECT o.id, r.rate FROM s.orders o JOIN {RATE} o.at r ON r.c = o.c":
        lambda o, r, q: inner(o, rate(o, r), "rate"),
    f"SELECT o.id, r.rate, r.__versioned_at FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c = o.c":
        lambda o, r, q: outer(o, rate(o, r), "rate", "__versioned_at"),
    f"SELECT o.id, r.rate FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c = o.c AND o.id > 3":
        lambda o, r, q: outer(o, rate(o, r), "rate", keep=o["id"] > 3),
    f"SELECT o.id, r.rate FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c = o.c AND r.rate > 3":
        lambda o, r, q: outer(o, f := rate(o, r), "rate", keep=bool(f and f["rate"] > 3)),
    f"SELECT o.id, r.rate FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c = o.c AND r.rate > o.id AND o.k = 1":
        lambda o, r, q: outer(o, f := rate(o, r), "rate", keep=bool(f and f["rate"] > o["id"] and o["k"] == 1)),
    f"SELECT o.id, r.rate FROM s.orders o JOIN {RATE} o.at r ON r.c = o.c AND r.rate > 3 AND o.id > 2":
        lambda o, r, q: inner(o, f := rate(o, r), "rate", keep=bool(f and f["rate"] > 3 and o["id"] > 2)),
    f"SELECT o.id, r.rate FROM s.orders o JOIN {RATE} o.at r ON r.c = o.c WHERE r.rate IS NULL OR r.rate < 5":
        lambda o, r, q: inner(o, f := rate(o, r), "rate", keep=bool(f and f["rate"] < 5)),
    f"SELECT o.id, r.rate FROM s.orders o LEFT JOIN {RATE} o.at - INTERVAL '1' DAY r ON r.c = o.c":
        lambda o, r, q: outer(o, rate(o, r, shifted(o, days=-1)), "rate"),
    f"SELECT o.id, r.rate FROM s.orders o JOIN {RATE} date_trunc('DAY', o.at) r ON r.c = o.c":
        lambda o, r, q: inner(o, rate(o, r, day_of(o)), "rate"),
    f"SELECT o.id, r.rate FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c <=> o.c":
        lambda o, r, q: outer(o, r.at((o["c"],), o["at"]), "rate"),
    f"SELECT o.id, r.rate, t.rate AS later FROM s.orders o JOIN {RATE} o.at r ON r.c = o.c "
    f"LEFT JOIN {RATE} o.at + INTERVAL '1' DAY t ON t.c = o.c":
        lambda o, r, q: [(*row, (rate(o, r, shifted(o, days=1)) or {}).get("rate")) for row in inner(o, rate(o, r), "rate")],
    "SELECT o.id, q.quota FROM s.orders o LEFT JOIN s.quotas FOR SYSTEM_TIME AS OF o.at q ON q.c = o.c AND q.k = o.k":
        lambda o, r, q: outer(o, q.at((o["c"], o["k"]), o["at"]) if o["c"] else None, "quota"),
    "SELECT o.id, q.quota FROM s.orders o JOIN s.quotas FOR SYSTEM_TIME AS OF o.at q ON q.c = o.c AND q.k = 1":
        lambda o, r, q: inner(o, q.at((o["c"], 1), o["at"]) if o["c"] else None, "quota"),
    f"SELECT o.id, r.rate, q.quota FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c = o.c "
    "LEFT JOIN s.quotas FOR SYSTEM_TIME AS OF r.__versioned_at q ON q.c = r.c AND q.k = o.k":
        lambda o, r, q: [
            (o["id"], (f or {}).get("rate"), (q.at((f["c"], o["k"]), f["__versioned_at"]) or {}).get("quota") if f else None)
            for f in [rate(o, r)]
        ],
}  # fmt: skip


def walk_through(seed: int, ticks: int, shards: int) -> None:
    chance = random.Random(seed)
    views = [ViewDefinition(f"v{i}", sql, None, "strict") for i, sql in enumerate(JOINS)]
    memory = MemoryTables(compile_views(views, TABLES), shards=shards)
    orders: dict[int, Row] = {}
    versions = {RATES: Versions(), QUOTAS: Versions()}

    def moment() -> datetime.datetime:
        return START + datetime.timedelta(hours=12 * chance.randint(0, 10))

    for _ in range(ticks):
        for _ in range(chance.randint(1, 5)):
            letter = chance.choice(["a", "b", None])
            if chance.random() < 0.5:
                topic = chance.choice([RATES, QUOTAS])
                row: Row = {"c": letter, "__versioned_at": moment()}
                row |= {"rate": chance.randint(1, 9)} if topic == RATES else {"k": chance.randint(1, 2), "quota": chance.randint(1, 9)}  # fmt: skip
                key = (letter,) if topic == RATES else (letter, row["k"])
                gone = chance.random() < 0.25
                (memory.delete if gone else memory.upsert)(topic, row)
                known = versions[topic].known.setdefault(key, [])
                known.append((row["__versioned_at"], None if gone else row))
                continue
            number = chance.randint(1, 6)
            if number in orders and chance.random() < 0.3:
                memory.delete(ORDERS, orders.pop(number))
                continue
            at = None if chance.random() < 0.15 else moment()
            orders[number] = {"id": number, "at": at, "c": letter, "k": chance.randint(1, 2)}
            memory.upsert(ORDERS, orders[number])
        memory.tick()
        for number, (sql, judge) in enumerate(JOINS.items()):
            shown = [tuple(row.values()) for row in memory.rows(f"v{number}")]
            expected = [row for o in orders.values() for row in judge(o, versions[RATES], versions[QUOTAS])]  # fmt: skip
            assert as_bag(shown) == as_bag(expected), sql


@pytest.mark.parametrize(("seed", "shards"), [(1, 1), (2, 3)])
def test_every_form_shows_the_version_of_its_time(seed: int, shards: int) -> None:
    walk_through(seed, 20, shards)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3, 33))
def test_every_form_shows_the_version_of_its_time_for_long(seed: int) -> None:
    walk_through(seed, 150, 1 + seed % 3)


def test_a_key_that_changes_ends_one_version_and_begins_another() -> None:
    sql = f"SELECT o.id, r.rate FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c = o.c"
    memory = MemoryTables(compile_views([ViewDefinition("v", sql)], TABLES))
    memory.upsert(RATES, {"c": "a", "rate": 1, "__versioned_at": START})
    for number, letter, hours in ((1, "a", 1), (2, "a", 30), (3, "b", 30)):
        at = START + datetime.timedelta(hours=hours)
        memory.upsert(ORDERS, {"id": number, "at": at, "c": letter})
    memory.tick()
    assert {row["id"]: row["rate"] for row in memory.rows("v")} == {1: 1, 2: 1, 3: None}
    # As capture tells it: a delete of the old key and an insert of the new one, in one moment.
    memory.delete(RATES, {"c": "a", "__versioned_at": START + DAY})
    memory.upsert(RATES, {"c": "b", "rate": 1, "__versioned_at": START + DAY})
    memory.tick()
    assert {row["id"]: row["rate"] for row in memory.rows("v")} == {1: 1, 2: None, 3: 1}


@pytest.mark.parametrize(
    ("join", "error", "said", "marked"),
    [
        ("s.rates FOR SYSTEM_TIME AS OF o.id r ON r.c = o.c", SqlTypeError, "BIGINT is no time", "o.id"),
        ("s.rates VERSION AS OF 3 r ON r.c = o.c", NotIncrementalError, "no moment", "3"),
        ("s.rates FOR SYSTEM_TIME BETWEEN o.at AND o.at r ON r.c = o.c", NotIncrementalError, "no moment", "o.at"),
        ("s.rates FOR SYSTEM_TIME AS OF now() r ON r.c = o.c", NotIncrementalError, "the clock", "now"),
        ("s.quotas FOR SYSTEM_TIME AS OF o.at q ON q.c = o.c", NotIncrementalError, "whole key", "s.quotas"),
        ("s.rates FOR SYSTEM_TIME AS OF o.at r ON lower(r.c) = o.c", NotIncrementalError, "whole key", "s.rates"),
        ("s.orders FOR SYSTEM_TIME AS OF o.at r ON r.id = o.id", NotIncrementalError, "no history", "s.orders"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_so_is_refused_with_the_place(
    join: str, error: type[ViewError], said: str, marked: str
) -> None:
    sql = f"SELECT o.id\nFROM s.orders o\nJOIN {join}"
    with pytest.raises(error, match=said) as caught:
        compile_views([ViewDefinition("v", sql)], TABLES)
    line, marks = caught.value.detail.splitlines()[-2:]
    assert line[marks.index("^") :].startswith(marked)
    if said == "no history":
        assert 'history={"orders": "90 days"}' in caught.value.hint


def kept(days: int | None) -> list[TableInput]:
    from dataclasses import replace

    known = None if days is None else days * 86_400_000
    return [replace(one, kept_ms=known) if one.kind == "history" else one for one in TABLES]


@pytest.mark.parametrize(("days", "said"), [(90, "for 90 days"), (None, "for ever")])
def test_explain_states_how_long_versions_are_kept(days: int | None, said: str) -> None:
    sql = f"SELECT o.id, r.rate FROM s.orders o LEFT JOIN {RATE} o.at r ON r.c = o.c"
    told = explain(compile_views([ViewDefinition("v", sql)], kept(days)), "v")
    assert f"keeps replaced versions {said}" in told


def test_the_python_form_takes_an_expression_of_time_and_odd_names() -> None:
    class Odd:
        topic = "my-shop.public.orders"

    orders = table(Odd.topic, "id BIGINT, at TIMESTAMP, c STRING", ["id"])
    view = tr.as_of(
        "priced", Odd(), "s.rates", on={"c": "c"}, at="l.at - INTERVAL '1' DAY",
        select={"id": "l.id", "rate": "r.rate"}, key="id",
    )  # fmt: skip
    memory = MemoryTables(compile_views([view], [orders, *TABLES]))
    memory.upsert(RATES, {"c": "a", "rate": 4, "__versioned_at": START})
    for number, after in ((1, 23), (2, 24)):
        at = START + datetime.timedelta(hours=after)
        memory.upsert(Odd.topic, {"id": number, "at": at, "c": "a"})
    memory.tick()
    assert memory.rows("priced") == [{"id": 2, "rate": 4}]
