"""All access rules, and what they say about one operation on one resource.

The rules are found by the resource's name: the literal ones, the wildcard, and one look-up for
each length that a prefix has. Under each name they lie by principal, so that a resource with
thousands of rules costs no more than one with two. `tailrace.testing.acls` is the naive twin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from tailrace.broker.authorization.acls import (
    ALL,
    ALLOW,
    DENY,
    EVERYBODY,
    IMPLIED,
    LITERAL,
    PREFIXED,
    WILDCARD,
    Acl,
    AclFilter,
)

_Rules = dict[str, dict[Acl, None]]


class Decision(NamedTuple):
    """Whether an operation is allowed, and the rule that says so; None: no rule does."""

    allowed: bool
    acl: Acl | None = None


class AclTable:
    """A set of rules."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._acls: dict[Acl, None] = {}
        self._literal: dict[tuple[int, str], _Rules] = {}
        self._prefixed: dict[tuple[int, str], _Rules] = {}
        self._lengths: dict[int, Counter[int]] = {}
        """By kind of resource: how many prefixes of each length there are."""
        self._of: dict[tuple[int, str], dict[Acl, None]] | None = None
        """By kind of resource and principal; made when it is first asked for."""
        for acl in acls:
            self.add(acl)

    def __len__(self) -> int:
        return len(self._acls)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._acls

    def add(self, acl: Acl) -> None:
        """Add a rule; nothing happens if it is there."""
        if acl in self._acls:
            return
        self._acls[acl] = None
        place = (acl.resource, acl.name)
        if acl.pattern == LITERAL:
            rules = self._literal.setdefault(place, {})
        else:
            if place not in self._prefixed:
                self._lengths.setdefault(acl.resource, Counter())[len(acl.name)] += 1
            rules = self._prefixed.setdefault(place, {})
        of_principal = rules.get(acl.principal)
        if of_principal is None:
            rules[acl.principal] = {acl: None}
        else:
            of_principal[acl] = None
        if self._of is not None:
            self._of.setdefault((acl.resource, acl.principal), {})[acl] = None

    def remove(self, acl: Acl) -> None:
        """Remove a rule; nothing happens if it is not there."""
        if acl not in self._acls:
            return
        del self._acls[acl]
        if self._of is not None:
            of = self._of[acl.resource, acl.principal]
            del of[acl]
            if not of:
                del self._of[acl.resource, acl.principal]
        place = (acl.resource, acl.name)
        places = self._literal if acl.pattern == LITERAL else self._prefixed
        rules = places[place]
        del rules[acl.principal][acl]
        if not rules[acl.principal]:
            del rules[acl.principal]
        if not rules:
            del places[place]
            if acl.pattern == PREFIXED:
                lengths = self._lengths[acl.resource]
                lengths[len(acl.name)] -= 1
                if not lengths[len(acl.name)]:
                    del lengths[len(acl.name)]

    def find(self, wanted: AclFilter) -> list[Acl]:
        """The rules that a filter means; without a walk over all if it leaves nothing open."""
        one = wanted.one
        if one is not None:
            return [one] if one in self._acls else []
        return [acl for acl in self._acls if wanted.matches(acl)]

    def decide(
        self,
        principal: str,
        hosts: Container[str],
        operation: int,
        resource: int,
        name: str,
        *,
        unruled: bool,
    ) -> Decision:
        """What the rules say; `unruled` if none concerns the resource at all. `hosts` are the
        texts for the peer's address, the wildcard among them."""
        allowed: Acl | None = None
        ruled = False
        for rules in self._concerning(resource, name):
            ruled = True
            for who in (principal, EVERYBODY):
                for acl in rules.get(who, ()):
                    if not _applies(acl, hosts, operation):
                        continue
                    if acl.permission == DENY:
                        return Decision(False, acl)
                    allowed = acl
        if allowed is not None:
            return Decision(True, allowed)
        return Decision(unruled and not ruled)

    def decide_any(
        self, principal: str, hosts: Container[str], operation: int, resource: int, *, unruled: bool
    ) -> bool:
        """Whether the operation is allowed on at least one resource of a kind, as Kafka reckons
        it: on the resource called "hardcode", or by a rule that no denial covers."""
        if self.decide(principal, hosts, operation, resource, "hardcode", unruled=unruled).allowed:
            return True
        denied: dict[int, set[str]] = {LITERAL: set(), PREFIXED: set()}
        allowed: dict[int, set[str]] = {LITERAL: set(), PREFIXED: set()}
        if self._of is None:
            self._of = {}
            for acl in self._acls:
                self._of.setdefault((acl.resource, acl.principal), {})[acl] = None
        for who in (principal, EVERYBODY):
            for acl in self._of.get((resource, who), ()):
                if acl.host in hosts and acl.operation in (operation, ALL):
                    names = allowed if acl.permission == ALLOW else denied
                    names[acl.pattern].add(acl.name)
        if WILDCARD in denied[LITERAL]:
            return False
        if WILDCARD in allowed[LITERAL]:
            return True
        allowed[LITERAL] -= denied[LITERAL]
        return any(
            not any(name[:size] in denied[PREFIXED] for size in range(1, len(name) + 1))
            for names in allowed.values()
            for name in names
        )

    def _concerning(self, resource: int, name: str) -> Iterator[_Rules]:
        for place in (WILDCARD, name) if name != WILDCARD else (name,):
            found = self._literal.get((resource, place))
            if found is not None:
                yield found
        for length in self._lengths.get(resource, ()):
            if length <= len(name):
                found = self._prefixed.get((resource, name[:length]))
                if found is not None:
                    yield found


def _applies(acl: Acl, hosts: Container[str], operation: int) -> bool:
    """Whether a rule for this principal and resource says something about the operation."""
    if acl.host not in hosts:
        return False
    if acl.operation in (ALL, operation):
        return True
    return acl.permission == ALLOW and acl.operation in IMPLIED.get(operation, ())
