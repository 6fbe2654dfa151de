"""Delta tables in a directory, as a target of the sinks' contract."""

from __future__ import annotations

from typing import Any

from tailrace.sinks import Delta
from tailrace.sinks.declare import Declaration
from tailrace.testing.sink_contract import Target


class DeltaTarget(Target):
    mode = "current"

    def declare(self, view: str, **options: Any) -> Declaration:
        options.setdefault("mode", self.mode)
        return Delta(self.directory / f"delta-{view}", **options)

    def take_down(self) -> None:
        for path in self.directory.glob("delta-*"):
            path.rename(path.with_name(f"away-{path.name}"))
            path.write_text("a file, not a directory")

    def bring_up(self) -> None:
        for path in self.directory.glob("away-*"):
            place = path.with_name(path.name.removeprefix("away-"))
            place.unlink()
            path.rename(place)
