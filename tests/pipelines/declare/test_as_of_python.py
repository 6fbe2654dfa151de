"""The time-dependent join declared in Python."""

from __future__ import annotations

import datetime

import tailrace as tr
from tailrace.pipelines.compiler import compile_views
from tailrace.testing.ticks import MemoryTables, table

ORDERS = table("shop.public.orders", "id BIGINT, currency STRING, amount INT, at TIMESTAMP", ["id"])
RATES = table("shop.public.rates", "currency STRING, rate INT", ["currency"], "history")


def at(hour: int) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, hour, tzinfo=datetime.UTC)


def rate(value: int, hour: int) -> dict[str, object]:
    return {"currency": "EUR", "rate": value, "__versioned_at": at(hour)}


def test_the_version_valid_at_the_rows_time_is_taken_late_ones_too() -> None:
    priced = tr.as_of(
        "priced", "shop.orders", "shop.rates", on={"currency": "currency"}, at="at",
        select={"id": "l.id", "value": "l.amount * r.rate"}, key="id",
    )  # fmt: skip
    assert priced.declared_at is not None
    assert priced.declared_at.file.endswith("test_as_of_python.py")
    memory = MemoryTables(compile_views([priced], [ORDERS, RATES]))
    memory.upsert("shop.public.rates", rate(2, 8))
    memory.upsert("shop.public.rates", rate(5, 12))
    for number, hour in ((1, 9), (2, 13)):
        memory.upsert(
            "shop.public.orders", {"id": number, "currency": "EUR", "amount": 10, "at": at(hour)}
        )
    memory.tick()
    assert {row["id"]: row["value"] for row in memory.rows("priced")} == {1: 20, 2: 50}
    memory.upsert("shop.public.rates", rate(3, 9))  # late: it was valid from nine on
    memory.tick()
    assert {row["id"]: row["value"] for row in memory.rows("priced")} == {1: 30, 2: 50}


def test_a_row_without_a_version_is_kept_when_asked_for() -> None:
    priced = tr.as_of(
        "priced", "shop.orders", "shop.rates", on={"currency": "currency"}, at="at",
        select=["l.id", "r.rate"], key="id", outer=True,
    )  # fmt: skip
    memory = MemoryTables(compile_views([priced], [ORDERS, RATES]))
    memory.upsert("shop.public.orders", {"id": 1, "currency": "USD", "amount": 1, "at": at(1)})
    memory.tick()
    assert memory.rows("priced") == [{"id": 1, "rate": None}]
