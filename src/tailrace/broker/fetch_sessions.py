"""Incremental fetch sessions (KIP-227): a consumer names its partitions once.

A session remembers what a client wants and what it was last told; later requests say
only what changed and answers carry only partitions with news. Session 0 means none.
The least recently used session makes room for a new one; its client then gets "session
not found" and starts over with a full request.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from tailrace.wire.errors import ErrorCode

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
EPOCH_LIMIT = 2**31 - 1
# A few bytes ask for all partitions of a session again; who reads more names them each time.
PARTITIONS_PER_SESSION = 10_000
# Of all sessions together: some 100 MB.
PARTITIONS_LIMIT = 500_000


class Wanted:
    """One partition of a fetch: where to read, how much, and what was last told.

    `topic` is the name or, where the client uses ids, the 16 bytes of the id.
    """

    __slots__ = (
        "fetch_offset", "index", "last_fetched_epoch", "leader_epoch", "max_bytes", "told", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: str | bytes,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        leader_epoch: int,
        last_fetched_epoch: int,
    ) -> None:
        self.topic = topic
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        # error, high watermark, log start offset
        self.told: tuple[int, int, int] | None = None


class FetchSession:
    """What one client reads, in the order in which it is served."""

    __slots__ = ("counted", "epoch", "id", "wanted")

    def __init__(self, session_id: int) -> None:
        self.id = session_id
        self.epoch = 1
        self.counted = 0
        self.wanted: dict[tuple[str | bytes, int], Wanted] = {}

    def update(
        self, changed: Iterable[Wanted], forgotten: Iterable[tuple[str | bytes, int]]
    ) -> None:
        """Take in what an incremental request adds, changes and drops."""
        for one in changed:
            before = self.wanted.get((one.topic, one.index))
            if before is not None:
                one.told = before.told
            self.wanted[one.topic, one.index] = one
        for key in forgotten:
            self.wanted.pop(key, None)

    def serve_last(self, one: Wanted) -> None:
        """A partition that got its turn goes to the end, so that none starves."""
        del self.wanted[one.topic, one.index]
        self.wanted[one.topic, one.index] = one


class FetchSessions:
    """All sessions of a broker, at most `slots`."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._partitions = 0
        self.evictions_total = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def create(self, wanted: Sequence[Wanted]) -> FetchSession | None:
        """A new session for these partitions, or None: sessions are turned off, or it is too
        large for one."""
        if self._slots <= 0 or len(wanted) > PARTITIONS_PER_SESSION:
            return None
        while len(self._sessions) >= self._slots:
            self._evict()
        session_id = random.randint(1, EPOCH_LIMIT)
        while session_id in self._sessions:
            session_id = random.randint(1, EPOCH_LIMIT)
        session = self._sessions[session_id] = FetchSession(session_id)
        self.update(session, wanted, ())
        return session

    def update(
        self,
        session: FetchSession,
        changed: Iterable[Wanted],
        forgotten: Iterable[tuple[str | bytes, int]],
    ) -> None:
        """Take in what a request changes. A session that grows too large ends with this
        request; where all together are too large, the least recently used ones end."""
        session.update(changed, forgotten)
        self._partitions += len(session.wanted) - session.counted
        session.counted = len(session.wanted)
        if session.counted > PARTITIONS_PER_SESSION:
            self.drop(session.id)
        while self._partitions > PARTITIONS_LIMIT:
            self._evict()

    def _evict(self) -> None:
        _, oldest = self._sessions.popitem(last=False)
        self._partitions -= oldest.counted
        self.evictions_total += 1

    def drop(self, session_id: int) -> None:
        """The client closed its session."""
        dropped = self._sessions.pop(session_id, None)
        if dropped is not None:
            self._partitions -= dropped.counted

    def advance(self, session_id: int, epoch: int) -> FetchSession | int:
        """The session for its next request, or a Kafka error code."""
        session = self._sessions.get(session_id)
        if session is None:
            return int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.epoch = 1 if epoch >= EPOCH_LIMIT else epoch + 1
        self._sessions.move_to_end(session_id)
        return session
