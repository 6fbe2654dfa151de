"""Which partitions each member of a share group reads: Kafka's "simple" assignor.

Every partition has at least one reader and every member at least one partition; with more
members than partitions several share one. What members have they keep, as far as that is
even. A pure function.
"""

from __future__ import annotations

from collections.abc import Mapping

Place = tuple[bytes, int]  # topic id and partition


def assign(
    partitions: Mapping[bytes, int],
    subscriptions: Mapping[str, frozenset[bytes]],
    present: Mapping[str, frozenset[Place]],
) -> dict[str, frozenset[Place]]:
    """The new assignment. `partitions` says how many each topic has."""
    chosen: dict[str, set[Place]] = {member: set() for member in subscriptions}
    # Members with the same wishes are dealt with together; most groups are one such set.
    alike: dict[frozenset[bytes], list[str]] = {}
    for member in sorted(subscriptions):
        wanted = frozenset(topic for topic in subscriptions[member] if partitions.get(topic))
        alike.setdefault(wanted, []).append(member)
    for wanted, members in alike.items():
        places = [(topic, index) for topic in sorted(wanted) for index in range(partitions[topic])]
        if places:
            _spread(places, members, present, chosen)
    return {member: frozenset(found) for member, found in chosen.items()}


def _spread(
    places: list[Place],
    members: list[str],
    present: Mapping[str, frozenset[Place]],
    chosen: dict[str, set[Place]],
) -> None:
    sharing = -(-len(members) // len(places))  # readers of a partition, rounded up
    least, extra = divmod(len(places) * sharing, len(members))
    readers = dict.fromkeys(places, 0)
    for member in members:
        # Keep what it has; a few may keep one more than the others.
        for place in sorted(present.get(member, ())):
            room = least + (1 if extra > 0 else 0)
            if place in readers and readers[place] < sharing and len(chosen[member]) < room:
                chosen[member].add(place)
                readers[place] += 1
        if len(chosen[member]) > least:
            extra -= 1
    for member in members:
        while len(chosen[member]) < least or (extra > 0 and len(chosen[member]) == least):
            free = [place for place in places if place not in chosen[member]]
            if not free:
                break
            place = min(free, key=lambda one: (readers[one], one))
            if readers[place] >= sharing and len(chosen[member]) >= 1:
                break
            chosen[member].add(place)
            readers[place] += 1
            if len(chosen[member]) > least:
                extra -= 1
                break
    # Kept places can leave one without a reader: it goes to whoever has least.
    for place in places:
        if not readers[place]:
            member = min(members, key=lambda one: (len(chosen[one]), one))
            chosen[member].add(place)
            readers[place] += 1
