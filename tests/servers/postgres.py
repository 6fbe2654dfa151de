"""Postgres servers for tests: one per version and session, one database per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailrace.testing.postgres import PostgresServer

__all__ = ["PostgresServer", "start_postgres"]


def start_postgres(version: int | None = None) -> Iterator[PostgresServer]:
    """Yield a running server; skips where the machine has none."""
    pytest.importorskip("psycopg")
    from tailrace.errors import ComponentMissingError

    try:
        server = PostgresServer(version=version)
    except ComponentMissingError as reason:
        pytest.skip(str(reason))
    yield server
    server.close()
