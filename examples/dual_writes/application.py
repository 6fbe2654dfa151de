"""The application that writes to both places itself."""

from __future__ import annotations

from collections.abc import Callable

from stores import Database, SearchIndex


class Application:
    """`between` is called after the first write and before the second: where a scheduler
    may stop one request to run another, and where a process may die."""

    def __init__(
        self,
        database: Database,
        index: SearchIndex,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._index = index
        self._between = between

    def save(self, identifier: int, title: str, price: float) -> None:
        self._database.save(identifier, title, price)
        self._between()
        self._index.put(identifier, title)
