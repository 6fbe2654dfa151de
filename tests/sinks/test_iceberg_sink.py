from __future__ import annotations

import pytest

from tailrace.sinks import Iceberg
from tailrace.sinks.errors import SinkFencedError
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
    repairs = False  # what is appended cannot be taken back
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
