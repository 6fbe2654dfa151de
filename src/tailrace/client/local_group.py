"""Consumer groups inside one process, for a log that only this process has open.

Members of a group are consumers of this process. Every change of membership gives a new
target; a member lets go of what is no longer its own at its next poll, and takes a
partition only when nobody holds it, so a partition never has two owners. A member that
has not polled for `max_poll_interval_ms` loses its partitions. Offsets are stored in
`__consumer_offsets` as a broker would, so a group goes on when the log is served later.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import cycle

from tailrace.client.record import Place
from tailrace.clock import Clock


class Member:
    """One consumer in a group."""

    __slots__ = ("expired", "interval", "name", "owned", "polled_at", "wanted")

    def __init__(self, name: str, interval: float, now: float) -> None:
        self.name = name
        self.interval = interval
        self.polled_at = now
        self.wanted: frozenset[Place] = frozenset()  # all partitions of its topics
        self.owned: set[Place] = set()
        self.expired = False


class LocalGroups:
    """All groups of one log in this process. Safe from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._members: dict[str, dict[str, Member]] = {}
        self._numbers = 0

    def join(self, group: str, interval: float) -> Member:
        with self._lock:
            self._numbers += 1
            member = Member(f"member-{self._numbers:06}", interval, self._clock.monotonic())
            self._members.setdefault(group, {})[member.name] = member
            return member

    def leave(self, group: str, member: Member) -> None:
        with self._lock:
            self._members.get(group, {}).pop(member.name, None)
            member.owned.clear()

    def poll(self, group: str, member: Member, wanted: Iterable[Place]) -> tuple[bool, set[Place]]:
        """Say that a member is alive and what it subscribes to.

        Gives whether it had lost everything, and what it should let go of now.
        """
        with self._lock:
            now = self._clock.monotonic()
            members = self._members.setdefault(group, {})
            lost = member.expired
            if lost:
                member.expired = False
                members[member.name] = member
            member.polled_at = now
            member.wanted = frozenset(wanted)
            for other in list(members.values()):
                if other is not member and now - other.polled_at > other.interval:
                    other.expired = True
                    other.owned.clear()
                    del members[other.name]
            return lost, member.owned - self._target(members)[member.name]

    def release(self, member: Member, places: Iterable[Place]) -> None:
        with self._lock:
            member.owned.difference_update(places)

    def acquire(self, group: str, member: Member) -> set[Place]:
        """The partitions that are the member's now and nobody's before."""
        with self._lock:
            members = self._members[group]
            held = {place for other in members.values() for place in other.owned}
            new = self._target(members)[member.name] - held
            member.owned |= new
            return new

    def _target(self, members: dict[str, Member]) -> dict[str, set[Place]]:
        """Each partition to one of the members that want it, evenly, by name."""
        target: dict[str, set[Place]] = {name: set() for name in members}
        wanted = sorted({place for member in members.values() for place in member.wanted})
        names = sorted(members)
        turn = cycle(names)
        for place in wanted:
            for _ in names:
                name = next(turn)
                if place in members[name].wanted:
                    target[name].add(place)
                    break
        return target
