"""`tailrace init`: a project that runs as it is, small enough to read in a minute."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tailrace.errors import NotWritableError, UsageError
from tailrace.project.errors import ProjectExistsError

_TOML = """[project]
name = "{name}"

[log]                                  # embedded by default, in .tailrace/log, for any Kafka client
listen = "127.0.0.1:9092"
# bootstrap = "kafka-1:9092,kafka-2:9092"     # instead: an Apache Kafka cluster

[spark]
master = "local[*]"                    # or spark://…, yarn, k8s://…

[console]
listen = "127.0.0.1:8080"
"""

_PIPELINE = '''"""What this project captures, keeps in step and delivers.

Declarations are plain values: importing this file does nothing. `tailrace check` looks
at all of them, `tailrace graph` draws them, `tailrace up` runs them.
"""

import tailrace as tr
from tailrace import sinks, sources

# An SQLite file, so that the project runs without a server. For Postgres:
#   shop = sources.Postgres("shop", dsn=tr.env("SHOP_DSN"), tables=["customers", "orders"])
shop = sources.SQLite("shop", path="shop.db", tables=["customers", "orders"])

open_orders = tr.view(
    "open_orders",
    """
    SELECT c.country, count(*) AS orders, sum(o.amount) AS value
    FROM shop.orders o JOIN shop.customers c ON c.id = o.customer_id
    WHERE o.status = 'open'
    GROUP BY c.country
    """,
    key="country",
    to=sinks.SQLite("copies.db", table="open_orders"),
)
'''

_DATABASE = '''"""Makes shop.db with a few rows: `python make_database.py`. Run it again for more orders."""

import random
import sqlite3

database = sqlite3.connect("shop.db")
database.execute("PRAGMA journal_mode = WAL")
with database:
    database.execute(
        "CREATE TABLE IF NOT EXISTS customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT)"
    )
    database.execute(
        "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer_id INTEGER,"
        " amount INTEGER, status TEXT)"
    )
    if not database.execute("SELECT count(*) FROM customers").fetchone()[0]:
        database.executemany(
            "INSERT INTO customers (name, country) VALUES (?, ?)",
            [("Ada", "NL"), ("Bob", "DE"), ("Cleo", "NL"), ("Dan", "FR")],
        )
    database.executemany(
        "INSERT INTO orders (customer_id, amount, status) VALUES (?, ?, ?)",
        [(random.randint(1, 4), random.randint(5, 200), "open") for _ in range(10)],
    )
'''

_TEST = '''"""Tests of this project: `tailrace test`. Views run in memory, without Spark or a server."""


def test_an_order_leaves_the_view_when_it_is_paid(tailrace_project) -> None:
    shop = tailrace_project.tables(
        {
            "shop.customers": "id BIGINT, name STRING, country STRING",
            "shop.orders": "id BIGINT, customer_id BIGINT, amount BIGINT, status STRING",
        }
    )
    shop.upsert("shop.customers", {"id": 1, "name": "Ada", "country": "NL"})
    shop.upsert("shop.orders", {"id": 7, "customer_id": 1, "amount": 30, "status": "open"})
    shop.tick()
    assert shop.rows("open_orders") == [{"country": "NL", "orders": 1, "value": 30}]
    shop.upsert("shop.orders", {"id": 7, "customer_id": 1, "amount": 30, "status": "paid"})
    shop.tick()
    assert shop.rows("open_orders") == []
'''

_README = """# {name}

A Tailrace project.

    python make_database.py     # an SQLite database to capture
    tailrace check              # validate the project
    tailrace up                 # capture, views, copies, console; Ctrl-C drains and stops
    tailrace sql "SELECT * FROM open_orders"

`pipelines/` holds what is captured, kept and delivered; `tailrace.toml` the addresses.
"""


def create(directory: Path) -> list[Path]:
    """Write a new project into `directory`; nothing that exists is written over."""
    name = re.sub(r"[^A-Za-z0-9_-]", "-", directory.resolve().name).strip("-") or "project"
    files = {
        "tailrace.toml": _TOML.format(name=name),
        "pipelines/shop.py": _PIPELINE,
        "tests/test_shop.py": _TEST,
        "make_database.py": _DATABASE,
        "README.md": _README.format(name=name),
        ".gitignore": ".tailrace/\n*.db\n*.db-*\n",
    }
    _refuse_existing(directory, list(files))
    written: list[Path] = []
    try:
        for relative, text in files.items():
            path = directory / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise NotWritableError(
            f"cannot write into {directory}", detail=str(error), hint="choose a directory you own"
        ) from error
    return written


def copy_example(name: str, directory: Path) -> list[Path]:
    """Copy an example that ships with the package."""
    examples = examples_directory()
    origin = examples / name
    if not (origin / "tailrace.toml").exists():
        known = sorted(path.parent.name for path in examples.glob("*/tailrace.toml"))
        raise UsageError(f"there is no example {name!r}", hint=f"examples: {', '.join(known)}")
    files = [
        path.relative_to(origin)
        for path in sorted(origin.rglob("*"))
        if path.is_file() and not {"__pycache__", ".tailrace"} & set(path.parts)
    ]
    _refuse_existing(directory, [str(path) for path in files])
    for relative in files:
        (directory / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin / relative, directory / relative)
    return [directory / relative for relative in files]


def examples_directory() -> Path:
    """Where the examples are: inside the installed package, or in the checkout."""
    installed = Path(__file__).parent.parent / "examples"
    return installed if installed.exists() else Path(__file__).parents[3] / "examples"


def _refuse_existing(directory: Path, files: list[str]) -> None:
    existing = [name for name in files if (directory / name).exists()]
    if existing:
        raise ProjectExistsError(
            f"{directory} holds a project already",
            detail=f"found {', '.join(existing)}",
            hint="choose an empty directory; nothing was written",
        )
