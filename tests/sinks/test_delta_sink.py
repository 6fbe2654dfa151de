from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from servers.delta import DeltaTarget
from tailrace.sinks import Delta
from tailrace.sinks.base import Shape
from tailrace.sinks.errors import SinkDeclarationError, SinkFencedError
from tailrace.sinks.registry import Copy, make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import SinkContract


@pytest.fixture(scope="module", autouse=True)
def _library_started(tmp_path_factory):
    """Its threads and their sockets stay until the process ends."""
    write_deltalake(tmp_path_factory.mktemp("delta") / "t", pa.table({"id": [1]}))


KILL = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from servers.delta import DeltaTarget
from tailrace.testing.sink_contract import SinkContract
place = DeltaTarget(pathlib.Path(sys.argv[2]))
place.mode = sys.argv[3]
contract = SinkContract()
contract.forks = False
if int(sys.argv[4]):
    contract.kill_everywhere(place, range(5, 420, int(sys.argv[4])))
else:
    contract.kill_switches(place)
"""


def kill_in_a_fresh_process(directory, mode, step=0):
    """The library refuses to work in a fork of a process that has used it."""
    tests = Path(__file__).parent.parent
    command = [sys.executable, "-c", KILL, str(tests), str(directory), mode, str(step)]
    subprocess.run(command, check=True, timeout=110)


class TestDeltaSink(SinkContract):
    def target(self, directory):
        return DeltaTarget(directory)

    @pytest.mark.crash
    def test_a_kill_at_any_line_loses_and_repeats_nothing(self, place):
        kill_in_a_fresh_process(place.directory, "current", 60)

    @pytest.mark.crash
    def test_a_switch_killed_anywhere_is_finished_or_undone(self, place):
        kill_in_a_fresh_process(place.directory, "current")

    def test_a_table_in_a_store_of_objects_is_one_copy(self, tmp_path):
        from tailrace.sinks.base import Replaceable

        place = self.target(tmp_path)
        copy = Copy("v.copy", "v", "v", "view", (), Delta("s3://bucket/v"))
        assert not isinstance(make_sink(copy, place.surroundings), Replaceable)

    def test_a_writer_whose_table_was_switched_away_changes_nothing(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        copy = self.copy(place, "v")
        zombie = self.opened(place, copy, writer)
        zombie.step(0)
        successor = self.opened(place, copy, writer)
        successor.replay(0)
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "b"})]})
        with pytest.raises(SinkFencedError):
            zombie.step(0)
        successor.step(0)
        successor.close()
        self.assert_in_step(place, copy, writer)

    def test_a_column_of_another_type_parks_the_sink(self, place):
        from tailrace.sinks.errors import ShapeError

        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "DOUBLE")])
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": 1.5})]})
        with pytest.raises(ShapeError):
            self.deliver(place, copy, writer)

    def test_other_tools_read_the_table(self, place):
        import duckdb

        writer = random_project(1, 3)
        self.deliver(place, self.copy(place, "totals"), writer)
        table = DeltaTable(place.directory / "delta-totals").to_pyarrow_table()
        with duckdb.connect() as connection:
            connection.register("t", table)
            assert connection.execute("SELECT count(*) FROM t").fetchall() == [
                (len(writer.contents["totals"]),)
            ]


@pytest.mark.thorough
class TestDeltaHistory(SinkContract):
    replaces_generations = False

    def target(self, directory):
        made = DeltaTarget(directory)
        made.mode = "history"
        return made

    @pytest.mark.crash
    def test_a_kill_at_any_line_loses_and_repeats_nothing(self, place):
        kill_in_a_fresh_process(place.directory, "history", 130)

    def test_a_repair_is_a_new_version_and_changes_no_old_one(self, place):
        writer = self._simple()
        writer.tick(
            {"v": [({"id": 1}, {"id": 1, "name": "a"}), ({"id": 2}, {"id": 2, "name": "b"})]}
        )
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        path = place.directory / "delta-v"
        DeltaTable(path).update(updates={"name": "'wrong'"}, predicate="id = 1")
        shape = Shape(writer.views["v"].columns, writer.views["v"].key)
        sink = make_sink(copy, place.surroundings)
        with Verifier(copy.name, sink, writer.log, shape) as verifier:
            found = verifier.compare()
            assert [d.key for d in found.differences] == [{"id": 1}]
            assert verifier.repair(found.keys) == 1
            assert verifier.compare().in_step
        sink.close()
        rows = DeltaTable(path).to_pyarrow_table().to_pylist()
        assert sorted((r["id"], r["name"], r["current"]) for r in rows) == [
            (1, "a", True), (1, "wrong", False), (2, "b", True),
        ]  # fmt: skip

    def test_every_version_is_kept_with_its_time(self, place):
        writer = self._simple()
        copy = self.copy(place, "v")
        key = {"id": 1}
        for name in ("a", "b"):
            writer.tick({"v": [(key, {"id": 1, "name": name})]})
            self.deliver(place, copy, writer)
        writer.tick({"v": [(key, {"id": 1, "name": "c"}), (key, {"id": 1, "name": "d"})]})
        self.deliver(place, copy, writer)
        writer.tick({"v": [(key, None)]})
        self.deliver(place, copy, writer)
        rows = DeltaTable(place.directory / "delta-v").to_pyarrow_table().to_pylist()
        rows.sort(key=lambda row: (row["valid_from"], row["name"]))
        assert [row["name"] for row in rows] == ["a", "b", "c", "d"]
        assert not any(row["current"] for row in rows)
        for before, after in itertools.pairwise(rows):
            assert before["valid_to"] == after["valid_from"]


def test_an_unknown_mode_is_refused(tmp_path):
    with pytest.raises(SinkDeclarationError):
        Delta(tmp_path, mode="both")
