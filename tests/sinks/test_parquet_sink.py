from __future__ import annotations

import pyarrow.parquet

from tailrace.sinks import Parquet
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import SinkContract, Target


class ParquetTarget(Target):
    mode = "history"

    def declare(self, view, **options):
        return Parquet(self.directory / f"files-{view}", mode=self.mode, **options)

    def take_down(self):
        for path in self.directory.glob("files-*"):
            path.rename(path.with_name(f"away-{path.name}"))
            path.write_text("a file, not a directory")

    def bring_up(self):
        for path in self.directory.glob("away-*"):
            place = path.with_name(path.name.removeprefix("away-"))
            place.unlink()
            path.rename(place)


class TestParquetHistory(SinkContract):
    kill_lines = range(3, 500, 70)

    def target(self, directory):
        return ParquetTarget(directory)

    def test_every_change_is_in_the_files(self, place):
        writer = random_project(1, 5)
        self.deliver(place, self.copy(place, "totals"), writer)
        changes = pyarrow.parquet.read_table(place.directory / "files-totals")
        records = sum(len(p.records) for p in writer.log.topics["totals"])
        assert changes.num_rows == records


class TestParquetCurrent(SinkContract):
    kill_lines = range(3, 500, 70)

    def target(self, directory):
        made = ParquetTarget(directory)
        made.mode = "current"
        return made
