"""The same application on capture: it writes to the database, and the index follows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from stores import Database, SearchIndex

from tailrace import sources
from tailrace.telemetry.part import Part


class Application:
    """One write, one truth."""

    def __init__(self, database: Database, between: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._between = between

    def save(self, identifier: int, title: str, price: float) -> None:
        self._database.save(identifier, title, price)
        self._between()


class Copy:
    """Capture and the index's follower, as two threads (in a project: `tailrace up`)."""

    def __init__(self, database: Path, index: Path, log: str, directory: Path) -> None:
        self._shop = sources.SQLite("shop", str(database), tables=["products"])
        self._index = index
        self._log = log
        self._part = Part("shop", "source", "example", log, directory)
        self._threads = [
            threading.Thread(target=sources.run, args=(self._shop, self._part), daemon=True),
            threading.Thread(target=self._follow, daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._part.stopping.set()
        self._threads[0].join(20)

    def _follow(self) -> None:
        """Apply every change in the database's order; again from the start after a crash,
        which changes nothing, because a put of the same title is the same title."""
        index = SearchIndex(self._index)
        self._wait_for_topic()
        changes = self._shop.table("products").changes("snapshot", bootstrap=self._log)
        for change in changes:
            if change.after is None:
                assert change.key is not None
                index.remove(change.key["id"])
            else:
                index.put(change.after["id"], change.after["title"])

    def _wait_for_topic(self) -> None:
        from tailrace.client.admin import Admin

        topic = self._shop.table("products").topic
        with Admin(self._log) as admin:
            while admin.describe_topic(topic) is None:
                self._part.stopping.wait(0.05)
