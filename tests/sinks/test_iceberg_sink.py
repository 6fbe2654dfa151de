from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.sinks import Iceberg
from tailrace.sinks.base import Shape
from tailrace.sinks.errors import SinkFencedError
from tailrace.sinks.registry import make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.sink_contract import SinkContract, Target

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")


@pytest.fixture(scope="module", autouse=True)
def _library_started():
    """Its thread stays until the process ends; one is enough here."""
    from pyiceberg.utils.concurrent import ExecutorFactory

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYICEBERG_MAX_WORKERS", "1")
        ExecutorFactory.get_or_create().submit(int).result()


class IcebergTarget(Target):
    def declare(self, view, **options):
        catalog = {
            "type": "sql",
            "uri": f"sqlite:///{self.directory}/catalog.db",
            "warehouse": f"file://{self.directory}/warehouse",
        }
        return Iceberg(catalog, table=f"copies.{view}", **options)


@pytest.mark.thorough
class TestIcebergSink(SinkContract):
    keeps_null_lists = False  # pyiceberg 0.12 writes a NULL list of structs as an empty one
    kill_lines = range(3, 300, 140)

    def target(self, directory):
        return IcebergTarget(directory)

    def test_a_commit_that_lost_the_race_is_not_tried_again(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "first"})]})
        copy = self.copy(place, "v")
        zombie = self.opened(place, copy, writer)
        zombie.step(0)
        self.deliver(place, copy, writer)  # takes over
        zombie.sink._table.refresh = lambda: None  # it has looked just before
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "second"})]})
        with pytest.raises(SinkFencedError):
            zombie.step(0)
        zombie.close()
        assert self.held(place, copy, writer)[b'{"id":1}']["name"] == "first"

    def test_rows_with_composite_keys_are_repaired(self, place):
        writer = self._simple()
        columns = [("a", "STRING"), ("b", "DECIMAL(8,2)"), ("n", "INT")]
        writer.declare("v", ["a", "b"], columns)
        keys = [{"a": "x'", "b": "1.50"}, {"a": None, "b": "2.00"}, {"a": "y", "b": None}]
        writer.tick({"v": [(key, {**key, "n": n}) for n, key in enumerate(keys)]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        shape = Shape(writer.views["v"].columns, writer.views["v"].key)
        sink = make_sink(copy, place.surroundings)
        sink.open(shape)
        sink._table.append(sink._table.scan().to_arrow().slice(0, 0))
        wrong = sink._table.scan().to_arrow()
        wrong = wrong.set_column(2, "n", pa.array([70, 71, 72], pa.int32()))
        sink._table.append(wrong.set_column(4, "_version", pa.array([1 << 60] * 3, pa.int64())))
        with Verifier(copy.name, sink, writer.log, shape) as verifier:
            found = verifier.compare()
            assert found.count == 3
            assert verifier.repair(found.keys) == 3
            assert verifier.compare().in_step
        sink.close()
        writer.tick({"v": [(keys[0], None), (keys[1], {**keys[1], "n": 9})]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
