"""Copies that stay in step: the declarations a project uses.

    open_orders = tr.view("open_orders", "SELECT …", key="country",
                          to=sinks.Postgres(tr.env("DWH_DSN"), table="reporting.open_orders"))

Declarations are plain values; what does the work is in `base` (the contract), `delivery`
(the loop) and one module per target, imported when a sink is opened.
"""

from __future__ import annotations

from tailrace.sinks.declare import (
    Declaration,
    Delta,
    DuckDB,
    Elasticsearch,
    Email,
    Function,
    Iceberg,
    MySQL,
    Parquet,
    Postgres,
    Redis,
    Search,
    SQLite,
    Topic,
    Webhook,
)

__all__ = [
    "Declaration",
    "Delta",
    "DuckDB",
    "Elasticsearch",
    "Email",
    "Function",
    "Iceberg",
    "MySQL",
    "Parquet",
    "Postgres",
    "Redis",
    "SQLite",
    "Search",
    "Topic",
    "Webhook",
]
