"""Connectors for the tests: well-behaved ones, and ones that misbehave in a method of choice."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tailrace import connectors


class Numbers(connectors.SourceConnector):
    """Counts, in as many parts as there are tasks."""

    config = connectors.Config(
        connectors.Setting("topic", str, required=True),
        connectors.Setting("parts", int, default=4),
        connectors.Setting("end", int, default=1 << 60),
        connectors.Setting("password", str, default=None, secret=True),
    )

    def tasks(self, settings: Mapping[str, Any], most: int) -> list[Mapping[str, str]]:
        return [{"mine": str(number)} for number in range(min(most, settings["parts"]))]

    class Task(connectors.SourceTask):
        def start(self, settings: Mapping[str, Any], offsets: Any) -> None:
            self.topic, self.mine, self.end = settings["topic"], settings["mine"], settings["end"]
            self.next = (offsets({"part": self.mine}) or {"next": 0})["next"]

        def poll(self) -> list[connectors.SourceRecord]:
            if self.next >= self.end:
                time.sleep(0.05)
                return []
            made = []
            for _ in range(5):
                self.next += 1
                made.append(
                    connectors.SourceRecord(
                        {"part": self.mine}, {"next": self.next}, self.topic, key=self.mine,
                        value={"n": self.next},
                    )
                )  # fmt: skip
            time.sleep(0.002)
            return made


class Misbehaves(connectors.SourceConnector):
    """Raises, hangs, forks or exits in the method that `where` names."""

    config = connectors.Config(
        connectors.Setting("where", str, required=True),
        connectors.Setting("how", str, required=True),
    )

    def check(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        misbehave("check", settings)
        return {}

    def tasks(self, settings: Mapping[str, Any], most: int) -> list[Mapping[str, str]]:
        misbehave("tasks", settings)
        return [{}]

    class Task(connectors.SourceTask):
        def start(self, settings: Mapping[str, Any], offsets: Any) -> None:
            self.settings = settings
            misbehave("start", settings)

        def poll(self) -> list[connectors.SourceRecord]:
            misbehave("poll", self.settings)
            return []

        def stop(self) -> None:
            misbehave("stop", self.settings)


def misbehave(where: str, settings: Mapping[str, Any]) -> None:
    if settings.get("where") != where:
        return
    match settings["how"]:
        case "raise":
            raise RuntimeError(f"no {where} today")
        case "hang":
            time.sleep(600)
        case "exit":
            os._exit(3)
        case "system exit":
            raise SystemExit(4)
        case "fork":
            if os.fork() == 0:
                return  # comes back as somebody else
            time.sleep(0.01)


class Table(connectors.SinkConnector):
    """A target that remembers how far it is: lines `topic partition offset value` in a file."""

    config = connectors.Config(connectors.Setting("file", str, required=True))

    class Task(connectors.SinkTask):
        def start(self, settings: Mapping[str, Any]) -> None:
            self.path = Path(settings["file"])

        def put(self, records: Sequence[connectors.SinkRecord]) -> None:
            with self.path.open("a") as file:
                for one in records:
                    if one.value == {"poison": True}:
                        self.report(one, ValueError("poison"))
                        continue
                    file.write(f"{one.topic} {one.partition} {one.offset} {one.value}\n")

        def position(self, topic: str, partition: int) -> int | None:
            if not self.path.exists():
                return None
            rows = [line.split(" ", 3) for line in self.path.read_text().splitlines()]
            own = [int(row[2]) for row in rows if row[:2] == [topic, str(partition)]]
            return max(own) + 1 if own else None


def louder(record: Any, settings: Mapping[str, str]) -> Any:
    if record.value == settings.get("drop"):
        return None
    if record.value == "fail":
        raise ValueError("a transform that fails")
    return record.replace(value=f"{record.value}{settings['sign']}")
