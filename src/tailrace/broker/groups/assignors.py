"""Who gets which partitions in a group that the broker assigns for.

Both assignors are functions of the set alone: the same members, subscriptions, topics
and present assignment give the same result in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Place = tuple[bytes, int]
"""Topic id and partition."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What an assignor is asked: topics (id → partitions), who reads which, who has what."""

    topics: Mapping[bytes, int]
    subscriptions: Mapping[str, frozenset[bytes]]
    present: Mapping[str, frozenset[Place]]


Assignment = dict[str, frozenset[Place]]


def uniform(problem: Problem) -> Assignment:
    """As even as subscriptions allow, moving as little as possible."""
    if len(set(problem.subscriptions.values())) <= 1:
        return _even(problem)
    return _balanced(problem)


def range_assignor(problem: Problem) -> Assignment:
    """Of each topic a run of neighbouring partitions for each reader, in the order of ids."""
    given: dict[str, set[Place]] = {member: set() for member in problem.subscriptions}
    for topic, count in sorted(problem.topics.items()):
        readers = sorted(
            member for member, topics in problem.subscriptions.items() if topic in topics
        )
        if not readers:
            continue
        share, more = divmod(count, len(readers))
        start = 0
        for number, member in enumerate(readers):
            size = share + (number < more)
            given[member].update((topic, index) for index in range(start, start + size))
            start += size
    return {member: frozenset(places) for member, places in given.items()}


ASSIGNORS: dict[str, Callable[[Problem], Assignment]] = {
    "uniform": uniform,
    "range": range_assignor,
}
DEFAULT_ASSIGNOR = "uniform"


def _even(problem: Problem) -> Assignment:
    """All read the same: everybody gets the same number, give or take one."""
    members = sorted(problem.subscriptions)
    if not members:
        return {}
    wanted = next(iter(problem.subscriptions.values()))
    free = {
        (topic, index)
        for topic, count in problem.topics.items()
        if topic in wanted
        for index in range(count)
    }
    share, more = divmod(len(free), len(members))
    given: dict[str, set[Place]] = {}
    # Those who have most keep the larger shares, so that fewer partitions move.
    for member in sorted(members, key=lambda one: (-len(problem.present.get(one, ())), one)):
        kept = sorted(place for place in problem.present.get(member, ()) if place in free)
        quota = share + (1 if more > 0 and len(kept) > share else 0)
        given[member] = set(kept[:quota])
        more -= quota > share
        free -= given[member]
    rest = sorted(free, reverse=True)
    for member in members:
        while rest and len(given[member]) < share:
            given[member].add(rest.pop())
    for member in members:
        if rest and len(given[member]) == share:
            given[member].add(rest.pop())
    return {member: frozenset(given[member]) for member in members}


def _balanced(problem: Problem) -> Assignment:
    """Different subscriptions: keep what is held, give the rest to the least loaded, then
    move single partitions while that makes two members more even."""
    members = sorted(problem.subscriptions)
    readers = {
        topic: [one for one in members if topic in problem.subscriptions[one]]
        for topic in problem.topics
    }
    owner: dict[Place, str] = {}
    load = dict.fromkeys(members, 0)
    for member in members:
        for place in sorted(problem.present.get(member, ())):
            topic, index = place
            valid = topic in problem.topics and index < problem.topics[topic]
            if valid and place not in owner and topic in problem.subscriptions[member]:
                owner[place] = member
                load[member] += 1
    places = [
        (topic, index)
        for topic in sorted(problem.topics, key=lambda one: (len(readers[one]), one))
        for index in range(problem.topics[topic])
        if readers[topic]
    ]
    for place in places:
        if place not in owner:
            member = min(readers[place[0]], key=lambda one: (load[one], one))
            owner[place] = member
            load[member] += 1
    moved = True
    while moved:
        moved = False
        for place in places:
            member = owner[place]
            least = min(readers[place[0]], key=lambda one: (load[one], one))
            if load[least] + 1 < load[member]:
                owner[place] = least
                load[member] -= 1
                load[least] += 1
                moved = True
    given: dict[str, set[Place]] = {member: set() for member in members}
    for place, member in owner.items():
        given[member].add(place)
    return {member: frozenset(given[member]) for member in members}
