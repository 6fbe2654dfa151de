"""TPC-H: its tables, and random rows that its queries find something in."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tailrace.testing.ticks import table

TABLES = [
    table(
        "tpch.main.part",
        "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING, p_retailprice DECIMAL(15,2)",
        ["p_partkey"],
    ),
    table(
        "tpch.main.supplier",
        "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, s_acctbal DECIMAL(15,2), s_comment STRING",
        ["s_suppkey"],
    ),
    table(
        "tpch.main.partsupp",
        "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2)",
        ["ps_partkey", "ps_suppkey"],
    ),
    table(
        "tpch.main.customer",
        "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
        ["c_custkey"],
    ),
    table(
        "tpch.main.orders",
        "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING, o_shippriority INT, o_comment STRING",
        ["o_orderkey"],
    ),
    table(
        "tpch.main.lineitem",
        "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING",
        ["l_orderkey", "l_linenumber"],
    ),
    table(
        "tpch.main.nation", "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT", ["n_nationkey"]
    ),
    table("tpch.main.region", "r_regionkey BIGINT, r_name STRING", ["r_regionkey"]),
]

NATIONS = ["FRANCE", "GERMANY", "BRAZIL", "CHINA"]
REGIONS = ["EUROPE", "AMERICA", "ASIA"]
Key = tuple[int, ...]
SIZES = {
    "part": (10,), "supplier": (6,), "partsupp": (10, 6), "customer": (30,), "orders": (60,),
    "lineitem": (60, 4), "nation": (4,), "region": (3,),
}  # fmt: skip
REFRESHED = ["lineitem"] * 8 + ["orders"] * 4 + ["partsupp"] * 2 + ["customer"] * 2 + [
    "part", "supplier", "nation", "region",
]  # fmt: skip


def random_key(rng: random.Random, name: str) -> Key:
    return tuple(rng.randrange(size) for size in SIZES[name])


def random_row(r: random.Random, name: str, key: Key) -> dict[str, Any]:
    """A row of a table under a key."""

    def money(low: int, high: int) -> Decimal:
        return Decimal(r.randrange(low, high)) / 100

    def date() -> datetime.date:
        return datetime.date(1993, 1, 1) + datetime.timedelta(days=r.randrange(1400))

    makers: dict[str, Callable[[], dict[str, Any]]] = {
        "part": lambda: {
            "p_partkey": key[0],
            "p_name": r.choice(["green thing", "forest green", "forest a", "blue"]),
            "p_mfgr": f"m{r.randrange(3)}",
            "p_brand": r.choice(["Brand#12", "Brand#23", "Brand#45"]),
            "p_type": r.choice(
                ["PROMO STEEL", "SMALL BRASS", "MEDIUM POLISHED X", "ECONOMY STEEL"]
            ),
            "p_size": r.choice([15, 49, 14, 3]),
            "p_container": r.choice(["SM CASE", "SM BOX", "MED BAG"]),
            "p_retailprice": money(100, 9999),
        },
        "supplier": lambda: {
            "s_suppkey": key[0],
            "s_name": f"S{key[0]}",
            "s_address": "a",
            "s_nationkey": r.randrange(4),
            "s_phone": "1",
            "s_acctbal": money(-999, 9999),
            "s_comment": r.choice(["x", "a Customer b Complaints"]),
        },
        "partsupp": lambda: {
            "ps_partkey": key[0],
            "ps_suppkey": key[1],
            "ps_availqty": r.randrange(100),
            "ps_supplycost": money(100, 900),
        },
        "customer": lambda: {
            "c_custkey": key[0],
            "c_name": f"C{key[0]}",
            "c_address": "a",
            "c_nationkey": r.randrange(4),
            "c_phone": r.choice(["13-1", "31-2", "23-3", "99-1"]),
            "c_acctbal": money(-999, 9999),
            "c_mktsegment": r.choice(["BUILDING", "AUTO"]),
            "c_comment": "c",
        },
        "orders": lambda: {
            "o_orderkey": key[0],
            "o_custkey": r.randrange(20),
            "o_orderstatus": r.choice("FO"),
            "o_totalprice": money(100, 99999),
            "o_orderdate": date(),
            "o_orderpriority": r.choice(["1-URGENT", "2-HIGH", "5-LOW"]),
            "o_shippriority": r.randrange(2),
            "o_comment": r.choice(["a", "special b requests"]),
        },
        "lineitem": lambda: {
            "l_orderkey": key[0],
            "l_linenumber": key[1],
            "l_partkey": r.randrange(10),
            "l_suppkey": r.randrange(6),
            "l_quantity": Decimal(r.randrange(1, 50)),
            "l_extendedprice": money(100, 99999),
            "l_discount": money(0, 10),
            "l_tax": money(0, 8),
            "l_returnflag": r.choice("RAN"),
            "l_linestatus": r.choice("OF"),
            "l_shipdate": date(),
            "l_commitdate": date(),
            "l_receiptdate": date(),
            "l_shipinstruct": "x",
            "l_shipmode": r.choice(["MAIL", "SHIP", "AIR"]),
        },
        "nation": lambda: {
            "n_nationkey": key[0],
            "n_name": NATIONS[key[0] % 4],
            "n_regionkey": key[0] % 3,
        },
        "region": lambda: {"r_regionkey": key[0], "r_name": REGIONS[key[0] % 3]},
    }
    return makers[name]()
