"""A shop's tables, a view over them built by hand, and what the view must show."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from tailrace.clock import SYSTEM
from tailrace.pipelines.engine.expression import Call, Column, Literal
from tailrace.pipelines.engine.graph import Edge, Graph, Node, Projection, TableInput, ViewPlan
from tailrace.pipelines.engine.operators.aggregates import Aggregate
from tailrace.pipelines.engine.operators.group import Group
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.keyed import Keyed
from tailrace.pipelines.engine.operators.result import Result
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.testing.feed import Change, ChangeFeed, FeedTable

BIGINT, STRING, MONEY, TOTAL = pa.int64(), pa.string(), pa.decimal128(10, 2), pa.decimal128(20, 2)
ORDERS = FeedTable(
    "orders",
    (
        ("id", "BIGINT"),
        ("customer_id", "BIGINT"),
        ("amount", "DECIMAL(10,2)"),
        ("status", "STRING"),
    ),
    ("id",),
)
CUSTOMERS = FeedTable("customers", (("id", "BIGINT"), ("country", "STRING")), ("id",))


def graph(source: str, view: str) -> Graph:
    """SELECT country, count(*) orders, sum(amount) value FROM orders JOIN customers
    WHERE status = 'open' GROUP BY country, as operators."""
    orders = TableInput(
        "public.orders",
        f"{source}.public.orders",
        pa.schema([("id", BIGINT), ("customer_id", BIGINT), ("amount", MONEY), ("status", STRING)]),
        ("id",),
    )
    customers = TableInput(
        "public.customers",
        f"{source}.public.customers",
        pa.schema([("id", BIGINT), ("country", STRING)]),
        ("id",),
    )
    joined = pa.schema(
        [("o_customer", BIGINT), ("amount", MONEY), ("c_id", BIGINT), ("country", STRING)]
    )
    out = pa.schema([("country", STRING), ("orders", BIGINT), ("value", TOTAL)])
    open_only = Call("=", (Column("status", STRING), Literal("open", STRING)), pa.bool_())
    left = Projection(
        (("o_customer", Column("customer_id", BIGINT)), ("amount", Column("amount", MONEY))),
        open_only,
    )
    right = Projection((("c_id", Column("id", BIGINT)), ("country", Column("country", STRING))))
    aggregates = (
        Aggregate("orders", "count", (), (), BIGINT),
        Aggregate("value", "sum", ("amount",), (MONEY,), TOTAL),
    )
    nodes = (
        Node("k-orders", Keyed(orders.schema, orders.topic), (Edge(f"table:{orders.topic}"),), orders.schema, 0),
        Node("k-customers", Keyed(customers.schema, customers.topic), (Edge(f"table:{customers.topic}"),), customers.schema, 0),
        Node(
            "join",
            Join("inner", ("o_customer",), ("c_id",), (False,), ("o_customer", "amount"), ("c_id", "country"), joined),
            (Edge("k-orders", left, ("o_customer",)), Edge("k-customers", right, ("c_id",))),
            joined, 1,
        ),
        Node("group", Group(("country",), aggregates, out), (Edge("join", None, ("country",)),), out, 2),
        Node("result", Result(view, out, ("country",)), (Edge("group"),), out, 2),
    )  # fmt: skip
    plan = ViewPlan(
        view,
        "result",
        ("country",),
        (("country", "STRING"), ("orders", "BIGINT"), ("value", "DECIMAL(20,2)")),
        "",
    )
    return Graph({orders.topic: orders, customers.topic: customers}, nodes, {view: plan})


def recompute(feed: ChangeFeed) -> dict[str | None, dict[str, Any]]:
    """The view from scratch."""
    countries = {row["id"]: row["country"] for row in feed.rows["customers"].values()}
    shown: dict[str | None, dict[str, Any]] = {}
    for order in feed.rows["orders"].values():
        if order["status"] == "open" and order["customer_id"] in countries:
            country = countries[order["customer_id"]]
            row = shown.setdefault(country, {"country": country, "orders": 0, "value": Decimal(0)})
            row["orders"] += 1
            row["value"] += Decimal(order["amount"])
    return {
        key: {**row, "value": format(row["value"].quantize(Decimal("0.01")), "f")}
        for key, row in shown.items()
    }


def shown(bootstrap: str, view: str) -> dict[str | None, dict[str, Any]]:
    """The view as its changelog tells it."""
    rows: dict[str | None, dict[str, Any]] = {}
    with LogReader(bootstrap) as reader:
        _wait_for_markers(reader, bootstrap, view)
        for records in read_all(reader, view):
            for key, value in zip(records.keys, records.values, strict=True):
                assert key is not None
                country = orjson.loads(key)["country"]
                if value is None:
                    del rows[country]  # a tombstone for a row that was never there is an error
                else:
                    rows[country] = orjson.loads(value)["row"]
    return rows


def _wait_for_markers(reader: LogReader, bootstrap: str, topic: str) -> None:
    """Kafka answers a commit before its markers are in all partitions: a plain reader that
    comes at once may not see the last of a transaction. One that is open is not waited for long."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "ends"}
    consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
    try:
        until = SYSTEM.monotonic() + 2
        for partition in reader.partitions(topic):
            place = TopicPartition(topic, partition)
            end = consumer.get_watermark_offsets(place, timeout=10)[1]
            while reader.bounds(topic)[partition][1] < end and SYSTEM.monotonic() < until:
                SYSTEM.sleep(0.02)
    finally:
        consumer.close()


def traffic(seed: int, transactions: int, *, size: int = 6) -> Iterator[list[Change]]:
    """Random transactions: orders placed, changed, removed; customers who move."""
    chance = random.Random(seed)
    for _ in range(transactions):
        changes: list[Change] = []
        for _ in range(chance.randint(1, size)):
            if chance.random() < 0.3:
                key = {"id": chance.randint(1, 8)}
                moved = {"country": chance.choice(["NL", "DE", "FR", None])}
                changes.append(("customers", key, moved if chance.random() < 0.8 else None))
            else:
                order = {
                    "customer_id": chance.randint(1, 9),
                    "amount": f"{chance.randint(0, 99999) / 100:.2f}",
                    "status": chance.choice(["open", "open", "paid"]),
                }
                key = {"id": chance.randint(1, 25)}
                changes.append(("orders", key, order if chance.random() < 0.75 else None))
        yield changes
