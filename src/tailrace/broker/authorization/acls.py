"""One access rule, with Kafka's names and numbers, and the filters that find rules."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.broker.errors import InvalidAclError

UNKNOWN, ANY = 0, 1

# Kinds of resources.
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
RESOURCES = {
    TOPIC: "topic",
    GROUP: "group",
    CLUSTER: "cluster",
    TRANSACTIONAL_ID: "transactional-id",
    DELEGATION_TOKEN: "delegation-token",
    USER: "user",
}

# How a rule names its resource.
MATCH, LITERAL, PREFIXED = 2, 3, 4
PATTERNS = {LITERAL: "literal", PREFIXED: "prefixed"}

# Operations.
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = 13, 14, 15
OPERATIONS = {
    ALL: "all",
    READ: "read",
    WRITE: "write",
    CREATE: "create",
    DELETE: "delete",
    ALTER: "alter",
    DESCRIBE: "describe",
    CLUSTER_ACTION: "cluster-action",
    DESCRIBE_CONFIGS: "describe-configs",
    ALTER_CONFIGS: "alter-configs",
    IDEMPOTENT_WRITE: "idempotent-write",
    CREATE_TOKENS: "create-tokens",
    DESCRIBE_TOKENS: "describe-tokens",
    TWO_PHASE_COMMIT: "two-phase-commit",
}

SUPPORTED: dict[int, tuple[int, ...]] = {
    TOPIC: (READ, WRITE, CREATE, DESCRIBE, DELETE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    GROUP: (READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    CLUSTER: (CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALTER,
              DESCRIBE),
    TRANSACTIONAL_ID: (DESCRIBE, WRITE),
    DELEGATION_TOKEN: (DESCRIBE,),
    USER: (CREATE_TOKENS, DESCRIBE_TOKENS),
}  # fmt: skip
"""What can be done to each kind of resource."""

DENY, ALLOW = 2, 3
PERMISSIONS = {DENY: "deny", ALLOW: "allow"}

WILDCARD = "*"
EVERYBODY = "User:*"
CLUSTER_NAME = "kafka-cluster"

# Who is allowed the second may also do the first; a denial implies nothing.
IMPLIED = {
    DESCRIBE: frozenset({DESCRIBE, READ, WRITE, DELETE, ALTER}),
    DESCRIBE_CONFIGS: frozenset({DESCRIBE_CONFIGS, ALTER_CONFIGS}),
}


class Acl(NamedTuple):
    """One rule. Numbers and not enumerations, because tens of thousands are loaded at a start."""

    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        return (
            f"{PERMISSIONS[self.permission]} {self.principal} {OPERATIONS[self.operation]} on "
            f"{RESOURCES[self.resource]} {PATTERNS[self.pattern]} {self.name} from {self.host}"
        )

    def check(self) -> None:
        """Raise `InvalidAclError` unless this is a rule that Kafka would take."""
        if self.resource == CLUSTER and self.name != CLUSTER_NAME:
            raise InvalidAclError(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
        if not self.name:
            raise InvalidAclError("Invalid empty resource name")
        if self.resource not in RESOURCES:
            raise InvalidAclError(f"Invalid resourceType {self.resource}")
        if self.pattern not in PATTERNS:
            raise InvalidAclError(f"Invalid patternType {self.pattern}")
        if self.operation not in OPERATIONS:
            raise InvalidAclError(f"Invalid operation {self.operation}")
        if self.permission not in PERMISSIONS:
            raise InvalidAclError(f"Invalid permissionType {self.permission}")
        if ":" not in self.principal:
            raise InvalidAclError(
                f"Invalid principal {self.principal!r}: it must be of the form KIND:NAME"
            )
        if not self.host:
            raise InvalidAclError("Invalid empty host")


class AclFilter(NamedTuple):
    """Which rules are meant: None and `ANY` for whatever there is.

    With pattern `MATCH` a name finds every rule that concerns the resource of that name:
    literal ones, prefixes of it, and the wildcard.
    """

    resource: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def check(self) -> None:
        """Raise `InvalidAclError` for what does not exist."""
        for value, known, what in (
            (self.resource, RESOURCES, "resource type"),
            (self.pattern, {MATCH, *PATTERNS}, "pattern type"),
            (self.operation, OPERATIONS, "operation"),
            (self.permission, PERMISSIONS, "permission type"),
        ):
            if value != ANY and value not in known:
                raise InvalidAclError(f"The filter has an unknown {what}: {value}")

    @property
    def one(self) -> Acl | None:
        """The only rule that can be meant, if the filter leaves nothing open."""
        if self.pattern not in PATTERNS or ANY in (self.resource, self.operation, self.permission):
            return None
        if self.name is None or self.principal is None or self.host is None:
            return None
        return Acl(
            self.resource,
            self.name,
            self.pattern,
            self.principal,
            self.host,
            self.operation,
            self.permission,
        )

    def matches(self, acl: Acl) -> bool:
        """Whether this rule is meant."""
        return (
            self.resource in (ANY, acl.resource)
            and self.pattern in (ANY, MATCH, acl.pattern)
            and (self.name is None or self._names(acl, self.name))
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
        )

    def _names(self, acl: Acl, name: str) -> bool:
        if self.pattern != MATCH:
            return name == acl.name
        if acl.pattern == PREFIXED:
            return name.startswith(acl.name)
        return acl.name in (name, WILDCARD)
