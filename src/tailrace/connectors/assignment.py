"""Who runs what: connectors and tasks are spread evenly, and move as little as possible.

One round after another, as Kafka's incremental cooperative rebalancing: what a member runs stays
there while the member is in its share. What is beyond its share it is told to stop, and nobody is
told to start: when it has stopped, it joins again without it, and the next round gives it away.
So nothing runs twice, nothing else stops, and a member that is added moves what it gets alone.
What a dead member ran is free in the round that begins when its session ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.connectors.configured import Unit


def assign(units: Iterable[Unit], owned: Mapping[str, Iterable[Unit]]) -> dict[str, set[Unit]]:
    """What each member runs after this round. `owned` is what each says that it runs now."""
    wanted = sorted(set(units))
    members = sorted(owned)
    if not members:
        return {}
    holders: dict[Unit, str] = {}
    kept: dict[str, list[Unit]] = {member: [] for member in members}
    held_twice: set[Unit] = set()
    alive = set(wanted)
    for member in members:
        for unit in sorted(set(owned[member])):
            if unit not in alive:
                continue
            if unit in holders:
                # Both say so: it stays with the first, and the second has to stop it.
                held_twice.add(unit)
            else:
                holders[unit] = member
                kept[member].append(unit)
    least, more = divmod(len(wanted), len(members))
    # Those that run most may keep one more than the others.
    order = sorted(members, key=lambda member: (-len(kept[member]), member))
    share = {member: least + (place < more) for place, member in enumerate(order)}
    given = {member: set(_kept(kept[member], share[member])) for member in members}
    free = [unit for unit in wanted if unit not in holders]
    for unit in free:
        # In the end everybody has their share; what is being stopped elsewhere counts already.
        member = min(members, key=lambda one: (len(given[one]) - share[one], one))
        given[member].add(unit)
    return given


def _kept(units: list[Unit], most: int) -> list[Unit]:
    """Tasks go before connectors: to move a task costs a start, a connector costs nothing, so
    connectors are given up first."""
    return sorted(units, key=lambda unit: (unit[1] < 0, unit))[:most]


def settled(units: Iterable[Unit], given: Mapping[str, set[Unit]]) -> bool:
    """Whether everything runs somewhere, so that no further round is needed."""
    return {unit for each in given.values() for unit in each} == set(units)
