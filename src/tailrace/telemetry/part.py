"""How a running part of a project tells others how it is.

A part (a source, the pipelines, a sink, the follower, the broker, the console) is one
process. It keeps one small JSON file, `<directory>/run/<name>.json`, replaced
atomically, which the supervisor, `tailrace status` and the console read. A reader
therefore needs no connection to a part, and a dead part leaves its last words behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.errors import in_one_line
from tailrace.files import FILES
from tailrace.masking import mask, mask_all
from tailrace.modes import make_private

STATES = ("starting", "running", "lagging", "stopping", "stopped", "failed")


@dataclass(slots=True)
class Part:
    """One running part: who it is, where it works, when it must stop."""

    name: str
    kind: str
    project: str
    bootstrap: str
    directory: Path
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Clock = SYSTEM
    _facts: dict[str, Any] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _remembers: bool = False  # its error is that of the process before it

    @property
    def report_path(self) -> Path:
        return report_path(self.directory, f"{self.kind}-{self.name}")

    def remember(self) -> None:
        """Take over what the process before this one ended with: how often the part was
        started again, and its last error, which stands until the part runs."""
        with contextlib.suppress(OSError, orjson.JSONDecodeError):
            before = orjson.loads(self.report_path.read_bytes())
            lasting = ("restarts", "ended_at", "error")
            self._facts |= {name: before[name] for name in lasting if before.get(name)}
            self._remembers = "error" in self._facts

    def report(self, state: str | None = None, **facts: object) -> None:
        """Merge `facts` into this part's report and write it.

        Known facts: `freshness_ms`, `lag` (records), `error` (the four-part dict of the
        last error, None when over; its message is cut to one line), `position`; others are
        shown as they are, but for secrets in them.
        """
        with self._guard:
            if state is not None:
                if state not in STATES:
                    raise ValueError(f"unknown state {state!r}")
                self._facts["state"] = state
                if self._remembers and state in ("running", "lagging"):
                    self._facts["error"] = None
                    self._remembers = False
            self._facts.update({name: _short(name, fact) for name, fact in facts.items()})
            document = {
                "name": self.name,
                "kind": self.kind,
                "project": self.project,
                "pid": os.getpid(),
                "state": "starting",
                **self._facts,
                "at": self.clock.wall_ms(),
            }
            path = self.report_path
            # A full disk must not end a part that could go on: readers see that the last
            # report grows old, and alarms tell of the disk.
            with contextlib.suppress(OSError):
                make_private(path.parent)
                # Not synced: a report is news, not a record; after a power cut it is stale anyway.
                news = orjson.dumps(mask_all(document), default=_text)
                FILES.write_whole(path, news, sync=False, shared=True)


def _text(value: object) -> str:
    return mask(str(value))


def _short(name: str, fact: object) -> object:
    """A fact with its errors in one line each."""
    if isinstance(fact, Mapping):
        if name == "error":
            return in_one_line(fact)
        if name == "failed":
            return {view: in_one_line(error) for view, error in fact.items()}
        if name == "streams":
            return {
                stream: {**facts, "error": in_one_line(facts["error"])}
                if facts.get("error")
                else facts
                for stream, facts in fact.items()
            }
    return fact


def report_path(directory: Path, part: str) -> Path:
    """Where the part called `<kind>-<name>` keeps its report."""
    return directory / "run" / (re.sub(r"[^A-Za-z0-9._#-]", "_", part) + ".json")


def read_reports(directory: Path) -> list[dict[str, Any]]:
    """The last report of every part below `directory`, by kind and name."""
    reports: list[dict[str, Any]] = []
    for path in sorted((directory / "run").glob("*.json")):
        try:
            reports.append(orjson.loads(path.read_bytes()))
        except (OSError, orjson.JSONDecodeError):
            continue  # swept between the listing and the read
    return reports
