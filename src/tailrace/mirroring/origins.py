"""Which site wrote a record of a log that mirrors write as well.

A mirror commits an `owner` row before it writes its first record under a producer id, so whoever
sees the record can read the row. What the log itself was given has no owner. A mirror that brings
records of a third site says so in its runs, which stand in the log before their transaction is
committed. Rows are read uncommitted: those of a transaction that is aborted tell of records that
nobody sees, and another mirror's open transaction must hide nothing.
"""

from __future__ import annotations

from bisect import bisect_right

import orjson

from tailrace.client.admin import Admin, Place
from tailrace.client.fetcher import Fetcher
from tailrace.mirroring.rows import TOPIC, Owner, decode_runs
from tailrace.records.batch import BatchHeader

UNCOMMITTED = "read_uncommitted"
AGAIN = "again"  # for the cluster of a winner's copy, which goes nowhere else


class Origins:
    """Of one log, which is called `site`. Reads the rows as far as they are needed."""

    def __init__(self, admin: Admin, fetcher: Fetcher, site: str, cluster: str) -> None:
        self._admin = admin
        self._fetcher = fetcher
        self._own = Owner(site, cluster, "")
        self._owners: dict[int, Owner] = {}
        self._strangers: set[int] = set()
        self._targets: dict[str, dict[str, str]] = {}  # by mirror, what topics are called here
        self._relayed: dict[
            Place, list[tuple[int, int, str, str]]
        ] = {}  # start, length, site, cluster
        self._copies: dict[tuple[str, int, int], int] = {}
        self._next = -1  # offset of rows to go on from; −1: the topic was not there yet

    def of(self, place: Place, header: BatchHeader, offset: int | None = None) -> Owner:
        """Whose record that at `offset` is, or those of a batch that is not `mixed`. `read_on` was
        called after the batch was fetched."""
        owner = self._owner(header)
        if owner is None:
            return self._own
        at = header.base_offset if offset is None else offset
        relayed = self._relayed.get(place, ())
        number = bisect_right(relayed, at, key=lambda run: run[0]) - 1
        if number >= 0:
            start, length, site, cluster = relayed[number]
            if at < start + length:
                return Owner(site, cluster, owner.mirror)
        return owner

    def original(self, place: Place, offset: int) -> int:
        """The offset of what the record there is a copy of, or its own."""
        return self._copies.get((*place, offset), offset)

    def mixed(self, place: Place, header: BatchHeader) -> bool:
        """Whether the batch may hold records of several sites."""
        relayed = self._relayed.get(place)
        if relayed is None or self._owner(header) is None:
            return False
        first = bisect_right(relayed, header.base_offset, key=lambda run: run[0]) - 1
        for start, length, _, _ in relayed[max(first, 0) : first + 2]:
            if start > header.last_offset or start + length <= header.base_offset:
                continue
            if start > header.base_offset or start + length <= header.last_offset:
                return True
        return False

    def is_own(self, header: BatchHeader) -> bool:
        """Whether that is known without reading rows."""
        id = header.producer_id
        return not header.transactional or id < 0 or id in self._strangers

    def _owner(self, header: BatchHeader) -> Owner | None:
        if self.is_own(header):
            return None
        found = self._owners.get(header.producer_id)
        if found is None:
            # The row of an owner stands before its first record: this is none, and will be none.
            self._strangers.add(header.producer_id)
        return found

    def read_on(self) -> None:
        """Read what mirrors into this log have written since."""
        if self._next < 0:
            if self._admin.describe_topic(TOPIC) is None:
                return
            self._next = self._admin.start_offsets([(TOPIC, 0)])[TOPIC, 0]
        end = self._admin.end_offsets([(TOPIC, 0)], UNCOMMITTED)[TOPIC, 0]
        while self._next < end:
            found = self._fetcher.fetch(TOPIC, 0, self._next, isolation=UNCOMMITTED, end=end)
            for record in found.records:
                if record.key is not None and record.value is not None:
                    self._take(record.key.decode(), record.value)
            self._next = found.following

    def _take(self, key: str, value: bytes) -> None:
        first, _, rest = key.partition("/")
        if first == "owner":
            self._owners[int(rest)] = Owner(**orjson.loads(value))
            self._strangers.discard(int(rest))
        elif first == "runs":
            mirror = rest.rpartition("/")[0]
            for (topic, partition), runs in decode_runs(value).items():
                here = self._targets.get(mirror, {}).get(topic, topic)
                for run in runs:
                    if run.origin:
                        self._add((here, partition), (run.target, run.length, run.origin, ""))
        elif first == "again":
            for name, copies in orjson.loads(value).items():
                topic, _, partition = name.rpartition("/")
                for offset, site, of in copies:
                    self._copies[topic, int(partition), offset] = of
                    self._add((topic, int(partition)), (offset, 1, site, AGAIN))
        elif first not in ("state", "stopped", "settings", "kept"):
            topic = rest.rpartition("/")[0]
            self._targets.setdefault(first, {})[topic] = orjson.loads(value)["target"]

    def _add(self, place: Place, run: tuple[int, int, str, str]) -> None:
        known = self._relayed.setdefault(place, [])
        if not known or known[-1][0] < run[0]:
            known.append(run)
            return
        at = bisect_right(known, run[0], key=lambda each: each[0])
        if known[at - 1][0] == run[0]:
            known[at - 1] = run  # the same, as one of few large rows
        else:
            known.insert(at, run)
