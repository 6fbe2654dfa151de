"""A naive model of Kafka's access rules: every rule is looked at for every question.

It judges `tailrace.broker.authorization`. A rule is a tuple (resource, name, pattern, principal,
host, operation, permission) with Kafka's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

Rule = tuple[int, str, int, str, str, int, int]

LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = (
    2, 3, 4, 6, 7, 8, 10, 11,
)  # fmt: skip
DENY, ALLOW = 2, 3


class AclModel:
    """A list of rules, the super users, and what holds where there is no rule."""

    def __init__(
        self, rules: Iterable[Rule], super_users: Iterable[str] = (), everyone: bool = False
    ) -> None:
        self.rules = list(rules)
        self.super_users = set(super_users)
        self.everyone = everyone

    def allows(self, principal: str, host: str, operation: int, resource: int, name: str) -> bool:
        """Whether an operation on one resource is allowed."""
        if principal in self.super_users:
            return True
        concerning = [rule for rule in self.rules if rule[0] == resource and _names(rule, name)]
        if not concerning:
            return self.everyone
        saying = [rule for rule in concerning if _says(rule, principal, host, operation)]
        return bool(saying) and all(rule[6] == ALLOW for rule in saying)

    def allows_some(self, principal: str, host: str, operation: int, resource: int) -> bool:
        """Whether it is allowed on at least one resource of a kind, in Kafka's way."""
        if self.allows(principal, host, operation, resource, "hardcode"):
            return True
        plain = [
            rule
            for rule in self.rules
            if rule[0] == resource
            and rule[3] in (principal, "User:*")
            and rule[4] in (host, "*")
            and rule[5] in (operation, ALL)
        ]
        denied = [rule for rule in plain if rule[6] == DENY]
        if any(rule[2] == LITERAL and rule[1] == "*" for rule in denied):
            return False
        return any(
            rule[6] == ALLOW
            and (
                (rule[2] == LITERAL and rule[1] == "*")
                or not any(_covers(denial, rule) for denial in denied)
            )
            for rule in plain
        )


def _names(rule: Rule, name: str) -> bool:
    if rule[2] == PREFIXED:
        return name.startswith(rule[1])
    return rule[1] == "*" or rule[1] == name


def _says(rule: Rule, principal: str, host: str, operation: int) -> bool:
    if rule[3] not in (principal, "User:*") or rule[4] not in (host, "*"):
        return False
    if rule[5] in (operation, ALL):
        return True
    if rule[6] != ALLOW:
        return False
    if operation == DESCRIBE:
        return rule[5] in (READ, WRITE, DELETE, ALTER)
    return operation == DESCRIBE_CONFIGS and rule[5] == ALTER_CONFIGS


def _covers(denial: Rule, rule: Rule) -> bool:
    """Whether a denial takes away all that a permission gives."""
    if denial[2] == PREFIXED:
        return rule[1].startswith(denial[1])
    return rule[2] == LITERAL and denial[1] == rule[1]
