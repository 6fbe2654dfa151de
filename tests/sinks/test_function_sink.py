from __future__ import annotations

import os

import orjson

from tailrace.records.rows import python_rows
from tailrace.sinks import Function
from tailrace.testing.sink_contract import SinkContract, Target


class FunctionTarget(Target):
    """The function appends changes to a file; a reader drops repeats by version."""

    def declare(self, view, **options):
        path = self.directory / f"{view}.jsonl"

        def remember(changes):
            if (self.directory / "down").exists():
                raise ConnectionError("down")
            rows = python_rows(changes)
            if any(row.get("name") == "forbidden" for row in rows):
                raise ValueError("forbidden")
            with path.open("ab") as file:
                for row in rows:
                    file.write(orjson.dumps(row) + b"\n")
                file.flush()
                os.fsync(file.fileno())

        return Function(remember, **options)

    def rows(self, copy):
        key = {"totals": ["country"], "orders": ["id"]}.get(copy.subject, ["id"])
        held = {}
        path = self.directory / f"{copy.subject}.jsonl"
        for line in path.read_bytes().splitlines() if path.exists() else ():
            row = orjson.loads(line)
            own = {name: row.pop(name) for name in list(row) if name.startswith("__")}
            name = tuple(row.get(part) for part in (key if "a" not in row else ["a", "b"]))
            if held.get(name, (-1,))[0] <= own["__version"]:
                held[name] = (own["__version"], None if own["__deleted"] else row)
        return [row for _, row in held.values() if row is not None]

    def take_down(self):
        (self.directory / "down").touch()

    def bring_up(self):
        (self.directory / "down").unlink()

    def refused_row(self):
        return {"id": 100, "name": "forbidden"}


class TestFunctionSink(SinkContract):
    moves = False
    adds_columns = False
    replaces_generations = False
    kill_lines = range(3, 500, 60)

    def target(self, directory):
        return FunctionTarget(directory)
