"""Which record of a key wins where several sites write it, so that all sites end equal.

A record's rank is made from who wrote it and when, and is the same at every site; the record with
the highest rank wins, of two equal ones (one site, one time) the later. A mirror follows its target,
knows the winner of every key there, and judges what it brings:

- it wins or is equal: it is appended;
- it loses: it is kept in `<topic>.conflicts` and counted.

Somebody else may write to the target between the look and the append. So whoever follows the log
and finds that the last record of a key is not its winner appends the winner again. That copy stands
in a row `again/<mirror>/<n>` as what it is, and goes nowhere else.

What wins is kept in a private file of SQLite that goes with the process; it is read from the target's
log at each start. `naive.py` in the tests says the same in a few lines.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tailrace.client.admin import Admin, Place
from tailrace.client.committed import visible_batches
from tailrace.client.errors import OffsetOutOfRangeError
from tailrace.client.fetcher import Fetcher
from tailrace.mirroring.origins import Origins
from tailrace.mirroring.plan import SITE
from tailrace.records.batch import Headers, Record, decode_records

log = logging.getLogger(__name__)

CONFLICTS = ".conflicts"
SITE_HEADER, OFFSET_HEADER = "tailrace.site", "tailrace.offset"
NEWEST = 2**62
NOBODY = "-"  # who deletes a key that its home has not written


class Rank(NamedTuple):
    """Higher wins. `preferred`: 1 for the site that the rule names. `order` tells records of one site
    and time apart: where each came to stand first, and for a copy what it is a copy of."""

    preferred: int
    time: int
    site: str
    order: int


class Rule:
    """The stated rule of one mirror: `latest`, `site:NAME`, or None for pinned topics alone."""

    def __init__(self, conflicts: str | None, pinned: Iterable[str], sites: Iterable[str]) -> None:
        self._all = conflicts is not None
        self._site = (conflicts or "").removeprefix(SITE) if conflicts != "latest" else ""
        self._pinned = frozenset(pinned)
        self._sites = sorted(sites, key=len, reverse=True)

    def settles(self, topic: str) -> bool:
        """Whether records of the topic are judged."""
        return self._all or topic in self._pinned

    def home(self, topic: str, key: bytes) -> str | None:
        """The site that a key of a pinned topic begins with, as in `ams:17` or `ams/17`."""
        if topic not in self._pinned:
            return None
        for site in self._sites:
            name = site.encode()
            if key.startswith(name) and key[len(name) : len(name) + 1] in (b":", b"/", b"-", b"."):
                return site
        return None

    def rank(self, topic: str, key: bytes, site: str, time: int, order: int = NEWEST) -> Rank:
        home = self.home(topic, key)
        return Rank(int(site == (home or self._site)), time, site, order)

    def refuses(self, topic: str, key: bytes, site: str) -> bool:
        """Whether the key is pinned to another site, so that this record loses in any case."""
        home = self.home(topic, key)
        return home is not None and home != site


class Winner(NamedTuple):
    rank: Rank
    offset: int


class Again(NamedTuple):
    """A winner to be appended again, who wrote it and where it stood first; a tombstone by nobody for a pinned key that
    its home has not written."""

    key: bytes
    value: bytes | None
    headers: Headers
    time: int
    site: str
    order: int


class Target:
    """What wins at the target, by following its log."""

    def __init__(self, rule: Rule, admin: Admin, fetcher: Fetcher, origins: Origins) -> None:
        self._rule = rule
        self._admin = admin
        self._fetcher = fetcher
        self._origins = origins
        self._next: dict[Place, int] = {}
        self._numbers: dict[Place, int] = {}
        self._wrong: dict[Place, dict[bytes, tuple[Record, str]]] = {}
        self._pending: dict[Place, dict[bytes, Rank]] = {}
        self._until: dict[Place, int] = {}
        self._winners = sqlite3.connect("", isolation_level=None)  # a private file
        self._winners.execute(
            "CREATE TABLE winners (place INTEGER, key BLOB, preferred INTEGER, time INTEGER,"
            " site TEXT, first INTEGER, at INTEGER, PRIMARY KEY (place, key)) WITHOUT ROWID"
        )

    def close(self) -> None:
        self._winners.close()

    def follow(self, places: Mapping[Place, str]) -> None:
        """Read on in these places of the target, each with its topic's name at the source."""
        ends = self._admin.end_offsets(places)
        for place, topic in places.items():
            if place not in self._next:
                self._next[place] = self._admin.start_offsets([place])[place]
                self._numbers[place] = len(self._numbers)
            if self._next[place] < ends[place]:
                self._winners.execute("BEGIN")
                try:
                    self._read(place, topic, ends[place])
                finally:  # what was read is known, though what follows it could not be
                    self._winners.execute("COMMIT")
            if place in self._until and self._next[place] >= self._until[place]:
                del self._until[place]
                self._pending.pop(place, None)

    def _read(self, place: Place, topic: str, end: int) -> None:
        while self._next[place] < end:
            start = self._next[place]
            try:
                answer = self._fetcher.ask(*place, start, wait=0.5)
            except OffsetOutOfRangeError:
                self._next[place] = self._admin.start_offsets([place])[place]
                if self._next[place] <= start:
                    raise  # the end was cut back
                continue  # retention was faster than we
            batches, following = visible_batches(answer.buffer, start, end, answer.aborted, place=place)  # fmt: skip
            if any(not self._origins.is_own(header) for _, header in batches):
                self._origins.read_on()
            for at, header in batches:
                for record in decode_records(answer.buffer, at):
                    if record.key is None or not start <= record.offset < end:
                        continue
                    site = self._origins.of(place, header, record.offset).site
                    order = self._origins.original(place, record.offset)
                    self._take(place, topic, record, record.key, site, order)
            self._next[place] = following

    def _take(
        self, place: Place, topic: str, record: Record, key: bytes, site: str, order: int
    ) -> None:
        rank = self._rule.rank(topic, key, site, record.timestamp, order)
        known = self._winner(place, key)
        wrong = self._wrong.setdefault(place, {})
        if site == NOBODY:
            wrong.pop(key, None)
        elif self._rule.refuses(topic, key, site):
            wrong[key] = (record, site)  # pinned elsewhere: what its home wrote stands, or nothing
        elif known is None or rank >= known.rank:
            wrong.pop(key, None)
            self._winners.execute(
                "INSERT OR REPLACE INTO winners VALUES (?, ?, ?, ?, ?, ?, ?)",
                (self._numbers[place], key, *rank, record.offset),
            )
        else:
            wrong[key] = (record, site)

    def _winner(self, place: Place, key: bytes) -> Winner | None:
        row = self._winners.execute(
            "SELECT preferred, time, site, first, at FROM winners WHERE place = ? AND key = ?",
            (self._numbers[place], key),
        ).fetchone()
        return None if row is None else Winner(Rank(*row[:4]), row[4])

    def wins(self, place: Place, topic: str, key: bytes, site: str, time: int) -> bool:
        """Whether a record that the mirror brings is appended."""
        if self._rule.refuses(topic, key, site):
            return False
        rank = self._rule.rank(topic, key, site, time)
        known = self._winner(place, key)
        best = self._pending.get(place, {}).get(key)
        if (known is not None and rank < known.rank) or (best is not None and rank < best):
            return False
        self._pending.setdefault(place, {})[key] = rank
        return True

    def wrong(self, place: Place) -> list[tuple[Again, Record, str]]:
        """What has to be appended again, with the record that stands behind it and its site."""
        found = []
        for key, (last, site) in sorted(self._wrong.get(place, {}).items()):
            if key in self._pending.get(place, {}):
                continue  # a winner is on its way, or here already and not yet seen
            known = self._winner(place, key)
            if known is None:
                found.append(
                    (Again(key, None, (), last.timestamp, NOBODY, last.offset), last, site)
                )
                self._pending.setdefault(place, {})[key] = Rank(-1, 0, "", 0)
                continue
            kept = self._read_one(place, known.offset)
            if kept is None:
                # It was removed by age before it could be put right: there is nothing to append.
                log.warning("winner is gone", extra={"topic": place[0], "partition": place[1], "offset": known.offset})  # fmt: skip
                self._wrong[place].pop(key)
                continue
            again = Again(
                key, kept.value, tuple(kept.headers), kept.timestamp, known.rank.site, known.rank.order
            )  # fmt: skip
            found.append((again, last, site))
            self._pending.setdefault(place, {})[key] = known.rank
        return found

    def _read_one(self, place: Place, offset: int) -> Record | None:
        try:
            return next(self._fetcher.read_range(*place, offset, offset + 1), None)
        except OffsetOutOfRangeError:
            return None

    def committed(self, ends: Mapping[Place, int]) -> None:
        """The transaction was committed; it reaches to these offsets."""
        self._until.update(ends)

    def given_up(self) -> None:
        """The transaction was aborted, or nobody knows."""
        self._pending.clear()
        self._until.clear()
