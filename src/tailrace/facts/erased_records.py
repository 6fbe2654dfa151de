"""What one place that was made of a log's records is still to be cleared of.

A place is something of a project that holds what was made of records: `views of shop` are the
states, changelogs and caches of its views. Whoever keeps it asks here, and says when it is done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from tailrace.client.log import connect
from tailrace.facts.erasures import Erased, Erasures

if TYPE_CHECKING:
    from tailrace.client.log import Log


class ErasedRecords:
    """Erasures of records that a place waits for. Connects when first asked; close it."""

    def __init__(self, bootstrap: str, place: str) -> None:
        self._bootstrap = bootstrap
        self._place = place
        self._log: Log | None = None
        self._book: Erasures | None = None
        self._asked: dict[str, int] = {}  # how many records each erasure had

    def close(self) -> None:
        if self._book is not None:
            self._book.close()
        if self._log is not None:
            self._log.close()

    def waiting(self) -> Mapping[str, Collection[str]]:
        """Erasures that the log is done with and the place is not: the topics of each."""
        book = self._opened()
        book.refresh()
        found = waiting_for(book, self._place)
        self._asked = {each.id: each.records for each in found}
        return {each.id: topics_of(each) for each in found}

    def cleared(self, ids: Collection[str]) -> None:
        """The place holds nothing any more of the records that these had when `waiting` told of
        them; durable on return. Records that were found since are waited for again."""
        book = self._opened()
        for id in ids:
            book.clear(id, self._place, self._asked[id])

    def _opened(self) -> Erasures:
        if self._log is None:
            self._log = connect(self._bootstrap)
        if self._book is None:
            self._book = Erasures(self._log)
        return self._book


def views_place(project: str) -> str:
    """The views of a project: their state, changelogs and caches."""
    return f"views of {project}"


def topics_of(erased: Erased) -> frozenset[str]:
    """The topics that held the records of an erasure."""
    return frozenset({*erased.offsets, erased.topic} - {""})


def waiting_for(book: Erasures, place: str) -> list[Erased]:
    """The erasures of records that are cut out of the log, and not of this place."""
    return [
        each
        for each in book.found.values()
        if each.kind != "subject" and each.state == "done" and not book.is_cleared(each, place)
    ]
