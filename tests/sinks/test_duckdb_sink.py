from __future__ import annotations

import duckdb
import pytest

from tailrace.sinks import DuckDB
from tailrace.sinks.errors import TargetUnavailableError
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import Target
from tailrace.testing.table_contract import TableContract


class DuckDBTarget(Target):
    def declare(self, view, **options):
        return DuckDB(self.directory / "copy.duckdb", table=f"reporting.{view}", **options)

    def take_down(self):
        self.directory.joinpath("copy.duckdb").rename(self.directory / "away")
        self.directory.joinpath("copy.duckdb").mkdir()

    def bring_up(self):
        self.directory.joinpath("copy.duckdb").rmdir()
        self.directory.joinpath("away").rename(self.directory / "copy.duckdb")

    def refused_row(self):
        return {"id": 100, "name": "forbidden"}

    def prepare_refusal(self, copy):
        with duckdb.connect(str(self.directory / "copy.duckdb")) as connection:
            connection.execute("CREATE SCHEMA reporting")
            connection.execute(
                "CREATE TABLE reporting.v (id BIGINT, name VARCHAR CHECK (name <> 'forbidden'))"
            )

    def execute(self, statement):
        with duckdb.connect(str(self.directory / "copy.duckdb")) as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS reporting")
            connection.execute(statement)


class TestDuckDBSink(TableContract):
    kill_lines = range(3, 900, 220)
    switch_kills = range(260, 760, 250)
    whole_kills = range(80, 400, 160)

    def target(self, directory):
        return DuckDBTarget(directory)

    def test_others_can_read_between_batches(self, place):
        copy = self.copy(place, "totals")
        writer = random_project(1, 3)
        self.deliver(place, copy, writer)
        with duckdb.connect(str(place.directory / "copy.duckdb"), read_only=True) as connection:
            count = connection.execute("SELECT count(*) FROM reporting.totals").fetchone()
        assert count == (len(writer.contents["totals"]),)

    def test_a_file_that_another_process_has_open_is_waited_for(self, place):
        import subprocess
        import sys

        copy = self.copy(place, "totals")
        writer = random_project(1, 3)
        path = place.directory / "copy.duckdb"
        holder = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import duckdb; c = duckdb.connect({str(path)!r}); print('open', flush=True); input()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with holder:
            assert holder.stdout.readline() == b"open\n"
            with pytest.raises(TargetUnavailableError):
                self.deliver(place, copy, writer)
            holder.communicate(b"\n")
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
