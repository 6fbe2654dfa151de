"""The contract of sources on every version of Postgres that can be had."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.capture import Database, PostgresCase
from servers.postgres import PostgresServer, start_postgres
from tailrace.sources import Postgres
from tailrace.sources.doctor import examine
from tailrace.testing.source_contract import SourceContract
from tailrace.testing.source_log import SharedLog

pytestmark = pytest.mark.clients
_numbers = itertools.count()


@pytest.fixture(scope="module", params=[14, 15, 16, 17])
def old_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    yield from start_postgres(request.param)


@pytest.fixture
def old_database(old_server: PostgresServer) -> Iterator[Database]:
    name = f"old{next(_numbers)}"
    made = Database(old_server, name, old_server.create_database(name))
    yield made
    made.connection.close()
    old_server.drop_database(name)


class TestVersions(SourceContract):
    @pytest.fixture
    def case(self, old_database: Database, shared: SharedLog, tmp_path: Path) -> PostgresCase:
        return PostgresCase(old_database, shared, tmp_path)

    def test_large_transactions_and_values_of_many_types(
        self, case: PostgresCase, old_database: Database
    ) -> None:
        case.execute(
            self.TABLE,
            "ALTER TABLE items ADD t timestamptz DEFAULT '2026-11-15 10:20:30.5+02', "
            "ADD n numeric DEFAULT 'NaN', ADD r int4range DEFAULT '[1,5)', "
            "ADD j jsonb DEFAULT '{\"a\": [1.50]}', ADD b bytea DEFAULT '\\x00ff'",
            "INSERT INTO items (id, name, amount) SELECT i, 'x' || i, i FROM generate_series(1, 3000) i",
        )
        with case.capture() as running:
            running.copied()
            case.execute(
                "INSERT INTO items (id, name, amount) "
                "SELECT i, 'x' || i, i FROM generate_series(3001, 9000) i"
            )
            running.reach(case.position())
        rows = running.written.table("public.items")
        assert len(rows) == 9000
        more = {
            "t": "2026-11-15T08:20:30.5Z",
            "n": "NaN",
            "r": "[1,5)",
            "j": {"a": [1.5]},
            "b": "AP8=",
        }
        assert all(
            row == {"id": row["id"], "name": f"x{row['id']}", "amount": row["id"], **more}
            for row in rows
        )
        running.written.check()

    def test_the_doctor_knows_the_version(self, old_database: Any) -> None:
        old_database.run(self.TABLE)
        findings = {
            f.check: f for f in examine(Postgres("shop", old_database.dsn, tables=["items"]))
        }
        assert findings["version"].message.startswith(
            f"Postgres {old_database.connection.info.server_version // 10000}"
        )
        assert not [f for f in findings.values() if f.state == "bad"]
