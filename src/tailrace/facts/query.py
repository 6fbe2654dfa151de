"""Which events a condition on an append speaks of: `tr.matching(Enrolled, course="c1")`.

A query is any of its items (`a | b`); an item is any of its types and all of its tags. Without
types any type, without tags any event of the types.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tailrace.errors import UsageError


@dataclass(frozen=True, slots=True)
class Item:
    """Events of one of these types (none: any) that have all of these tags."""

    types: frozenset[str]
    tags: tuple[tuple[str, object], ...]

    def matches(self, kind: str, tags: Iterable[tuple[str, object]]) -> bool:
        have = set(tags)
        return (not self.types or kind in self.types) and all(tag in have for tag in self.tags)


@dataclass(frozen=True, slots=True)
class Query:
    """Events that match one of the items."""

    items: tuple[Item, ...]

    def __or__(self, other: Query) -> Query:
        return Query((*self.items, *other.items))

    def matches(self, kind: str, tags: Iterable[tuple[str, object]]) -> bool:
        have = tuple(tags)
        return any(item.matches(kind, have) for item in self.items)


def matching(*types: type, **tags: object) -> Query:
    """Events of these types that have these tags."""
    if not types and not tags:
        raise UsageError("a query without types and tags means every event")
    names = frozenset(each.__name__ for each in types)
    plain = tuple(sorted((name, msgspec.to_builtins(value)) for name, value in tags.items()))
    return Query((Item(names, plain),))


def tags_of(fields: dict[str, object], names: tuple[str, ...]) -> list[tuple[str, object]]:
    """The tags of an event, from its fields as JSON has them; a list gives one for each."""
    found: list[tuple[str, object]] = []
    for name in names:
        value = fields.get(name)
        if isinstance(value, list):
            found += [(name, each) for each in value]
        elif value is not None:
            found.append((name, value))
    return found
