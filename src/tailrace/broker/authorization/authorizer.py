"""Decides for connections, remembers what it decided, and tells the audit log.

A connection keeps the decisions made for it, so that a request costs a look-up in a dictionary
however many rules there are. They hold for one generation of the rules and one principal: a
rule that comes or goes, or a new log-in, makes them void.

The audit log is the stream `authorizer`: denials at INFO, permissions at DEBUG. Only what a
client asked for by name is told there; lists that leave out what it may not see are not.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from tailrace.broker.authorization.acls import (
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE,
    OPERATIONS,
    READ,
    RESOURCES,
    SUPPORTED,
    TOPIC,
    WILDCARD,
    Acl,
)
from tailrace.broker.authorization.table import AclTable, Decision
from tailrace.broker.guard import PROJECT_PREFIX
from tailrace.broker.principals import ANONYMOUS, Principal
from tailrace.errors import ConfigValueError
from tailrace.project_token import PROJECT_USER
from tailrace.wire.apis import APIS, ApiKey

audit = logging.getLogger("tailrace.broker.authorizer")

PROJECT = Principal("Project", "tailrace")
"""A process that has shown the project's token and has not logged in as anybody else."""
LOGGED_IN = Principal("User", PROJECT_USER)
"""The same, where it had to log in; nobody else can be given that name."""

# Names of things that do not exist may be asked for without end.
REMEMBERED = 10_000
# One request may name hundreds of thousands of things: the audit log gets the first.
TOLD_PER_REQUEST = 100
# `Key` of a question about all resources of a kind.
SOME = "\0"

Key = tuple[int, int, str]


class Peer(Protocol):
    """A connection, as far as it matters here."""

    principal: Principal
    project: bool
    host: str
    listener: str
    decisions: Decisions | None


class Departed:
    """Who a connection spoke for, when it may be gone."""

    __slots__ = ("decisions", "host", "listener", "principal", "project")

    def __init__(self, connection: Peer) -> None:
        self.principal = connection.principal
        self.project = connection.project
        self.host = connection.host
        self.listener = connection.listener
        self.decisions: Decisions | None = None


class Decisions(dict[Key, Decision]):
    """What was decided for one connection: by operation, kind of resource, and name."""

    __slots__ = (
        "generation", "hosts", "origin", "principal", "project", "readable", "super_user", "writable",
    )  # fmt: skip

    def __init__(self, connection: Peer, generation: int, super_users: frozenset[str]) -> None:
        super().__init__()
        self.origin = connection.principal
        self.project = connection.project
        self.generation = generation
        who = PROJECT if self.project and self.origin in (ANONYMOUS, LOGGED_IN) else self.origin
        self.principal = str(who)
        self.super_user = self.principal in super_users
        self.hosts = hosts_of(connection.host)
        self.readable: set[str | bytes] = set()
        """Topics that it may read, as its requests name them: by name or by id."""
        self.writable: set[str | bytes] = set()


class Authorizer:
    """The rules in force; on the loop thread."""

    def __init__(
        self,
        acls: Iterable[Acl] = (),
        super_users: frozenset[str] = frozenset(),
        *,
        unruled: bool = False,
    ) -> None:
        self.table = AclTable(acls)
        self.super_users = super_users
        self.unruled = unruled
        """Whether a resource that no rule concerns is open to everybody."""
        self.generation = 0
        self.denied_total = 0

    def change(self, add: Iterable[Acl] = (), remove: Iterable[Acl] = ()) -> None:
        """Rules come and go; every decision made before is forgotten."""
        for acl in remove:
            self.table.remove(acl)
        for acl in add:
            self.table.add(acl)
        self.generation += 1

    # deciding

    def allows(
        self,
        connection: Peer,
        operation: int,
        resource: int,
        name: str,
        api_key: int,
        *,
        told: bool = True,
    ) -> bool:
        """Whether the connection may do this. `told`: the audit log hears of a denial."""
        held = connection.decisions
        if (
            held is None
            or held.generation != self.generation
            or held.origin is not connection.principal
            or held.project is not connection.project
        ):
            held = self._begin(connection)
        key = (operation, resource, name)
        found = held.get(key)
        if found is None:
            found = self._decide(held, key)
            if len(held) >= REMEMBERED:
                held.clear()
            held[key] = found
        if found.allowed:
            if audit.isEnabledFor(logging.DEBUG):
                self._tell(logging.DEBUG, held, connection, key, found, api_key)
            return True
        if told:
            self.denied_total += 1
            if audit.isEnabledFor(logging.INFO):
                self._tell(logging.INFO, held, connection, key, found, api_key)
        return False

    def proven(self, connection: Peer, operation: int) -> set[str | bytes]:
        """Topics that the connection is known to be allowed to READ or to WRITE, so that the hot
        paths need no more than to look here. Fill it with `prove`."""
        held = connection.decisions
        if (
            held is None
            or held.generation != self.generation
            or held.origin is not connection.principal
            or held.project is not connection.project
        ):
            held = self._begin(connection)
        return held.readable if operation == READ else held.writable

    def prove(
        self, connection: Peer, operation: int, topic: str, named: str | bytes, api_key: int
    ) -> bool:
        """Whether the connection may do this to a topic, which its requests name like that."""
        if not self.allows(connection, operation, TOPIC, topic, api_key):
            return False
        if not audit.isEnabledFor(logging.DEBUG):  # it wants to hear of each time
            proven = self.proven(connection, operation)
            if len(proven) >= REMEMBERED:
                proven.clear()
            proven.add(named)
        return True

    def allows_some(self, connection: Peer, operation: int, resource: int, api_key: int) -> bool:
        """Whether the connection may do this to at least one resource of the kind."""
        return self.allows(connection, operation, resource, SOME, api_key, told=False)

    def sight_of(self, connection: Peer) -> Callable[[str], bool]:
        """Whether the peer of this connection may describe a topic, to be asked later: by then
        the connection may be gone."""
        peer = Departed(connection)
        api_key = int(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        return lambda name: self.allows(peer, DESCRIBE, TOPIC, name, api_key, told=False)

    def operations(self, connection: Peer, resource: int, name: str, api_key: int) -> int:
        """The operations allowed on a resource; bit n stands for operation n."""
        return sum(
            1 << operation
            for operation in SUPPORTED[resource]
            if self.allows(connection, operation, resource, name, api_key, told=False)
        )

    def _begin(self, connection: Peer) -> Decisions:
        connection.decisions = held = Decisions(connection, self.generation, self.super_users)
        return held

    def _decide(self, held: Decisions, key: Key) -> Decision:
        operation, resource, name = key
        if held.super_user:
            return _SUPER
        if held.project and resource == TOPIC and name.startswith(PROJECT_PREFIX):
            return _SUPER
        if name == SOME:
            found = self.table.decide_any(
                held.principal, held.hosts, operation, resource, unruled=self.unruled
            )
            return Decision(found)
        return self.table.decide(
            held.principal, held.hosts, operation, resource, name, unruled=self.unruled
        )

    def _tell(
        self,
        level: int,
        held: Decisions,
        connection: Peer,
        key: Key,
        found: Decision,
        api_key: int,
    ) -> None:
        operation, resource, name = key
        rule = "super user" if found is _SUPER else str(found.acl or "none")
        audit.log(
            level,
            "allowed" if found.allowed else "denied",
            extra={
                "principal": held.principal,
                "operation": OPERATIONS[operation],
                "resource": RESOURCES[resource],
                "resource_name": "any" if name == SOME else name,
                "host": connection.host,
                "listener": connection.listener,
                "request": APIS[api_key].module if api_key in APIS else api_key,
                "rule": rule,
            },
        )


_SUPER = Decision(True)


class Caller:
    """One connection's side of the authorizer, for the request it asks now."""

    __slots__ = ("_api_key", "_authorizer", "_connection", "_told")

    def __init__(self, authorizer: Authorizer, connection: Peer, api_key: int) -> None:
        self._authorizer = authorizer
        self._connection = connection
        self._api_key = api_key
        self._told = 0

    def may(self, operation: int, resource: int, name: str, *, told: bool = True) -> bool:
        """Whether it may do this to one resource."""
        told = told and self._told < TOLD_PER_REQUEST
        allowed = self._authorizer.allows(
            self._connection, operation, resource, name, self._api_key, told=told
        )
        self._told += told and not allowed
        return allowed

    def may_cluster(self, operation: int, *, told: bool = True) -> bool:
        """Whether it may do this to the cluster."""
        return self.may(operation, CLUSTER, CLUSTER_NAME, told=told)

    def may_some(self, operation: int, resource: int) -> bool:
        """Whether it may do this to any resource of the kind."""
        return self._authorizer.allows_some(self._connection, operation, resource, self._api_key)

    def operations(self, resource: int, name: str) -> int:
        """What it may do to one resource, as bits."""
        return self._authorizer.operations(self._connection, resource, name, self._api_key)

    def parted(
        self,
        operation: int,
        resource: int,
        rows: Sequence[Any],
        name: Callable[[Any], str],
        *,
        told: bool = True,
    ) -> tuple[list[Any], list[Any]]:
        """The rows whose resource it may do this to, and the others. Each name is told once."""
        decided: dict[str, bool] = {}
        for row in rows:
            text = name(row)
            if text not in decided:
                decided[text] = self.may(operation, resource, text, told=told)
        allowed = [row for row in rows if decided[name(row)]]
        return allowed, [row for row in rows if not decided[name(row)]]


def super_users(text: str) -> frozenset[str]:
    """`User:a;User:b` as a set; raises `ConfigValueError`."""
    found = [one.strip() for one in text.split(";") if one.strip()]
    for one in found:
        if ":" not in one:
            raise ConfigValueError(
                f"super.users holds {one!r}, which is no principal",
                hint="write super.users=User:alice;User:bob",
            )
    return frozenset(found)


def hosts_of(host: str) -> frozenset[str]:
    """The texts by which rules name an address. Kafka writes IPv6 addresses out in full."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return frozenset({WILDCARD, host})
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return frozenset({WILDCARD, host, str(address.ipv4_mapped)})
        groups = (int(group, 16) for group in address.exploded.split(":"))
        return frozenset({WILDCARD, host, str(address), ":".join(f"{one:x}" for one in groups)})
    return frozenset({WILDCARD, str(address)})
