"""What the rules say, against a model that looks at every rule for every question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.broker.authorization.acls import (
    ALL,
    ALLOW,
    ALTER_CONFIGS,
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    Acl,
    AclFilter,
)
from tailrace.broker.authorization.authorizer import hosts_of, super_users
from tailrace.broker.authorization.table import AclTable
from tailrace.broker.errors import InvalidAclError
from tailrace.errors import ConfigValueError
from tailrace.testing.acls import AclModel

NAMES = st.sampled_from(["a", "ab", "abc", "b", "ba", "*", "hardcode", "h", "ä"])
PRINCIPALS = ["User:x", "User:y", "Group:x"]
HOSTS = ["10.0.0.1", "10.0.0.2"]
OPERATIONS = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]

rules = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    NAMES,
    st.sampled_from([LITERAL, LITERAL, PREFIXED]),
    st.sampled_from([*PRINCIPALS, "User:*"]),
    st.sampled_from([*HOSTS, "*", "*"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from([ALLOW, ALLOW, DENY]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(rules, max_size=12), st.lists(rules, max_size=4), st.booleans(), st.data())
def test_the_table_says_what_the_model_says(
    added: list[Acl], removed: list[Acl], everyone: bool, data: st.DataObject
) -> None:
    table = AclTable(added)
    for acl in removed:
        table.remove(acl)
    left = [acl for acl in dict.fromkeys(added) if acl not in removed]
    assert list(table) == left
    model = AclModel(left, everyone=everyone)
    for principal in PRINCIPALS:
        for host in HOSTS:
            operation = data.draw(st.sampled_from(OPERATIONS))
            for name in ("a", "ab", "abcd", "b", "c", "*"):
                assert table.decide(
                    principal, hosts_of(host), operation, TOPIC, name, unruled=everyone
                ).allowed == model.allows(principal, host, operation, TOPIC, name)
            assert table.decide_any(
                principal, hosts_of(host), operation, TOPIC, unruled=everyone
            ) == model.allows_some(principal, host, operation, TOPIC)


@settings(max_examples=30, deadline=None)
@given(st.lists(rules, max_size=12))
def test_a_table_from_which_everything_was_removed_holds_nothing(acls: list[Acl]) -> None:
    table = AclTable(acls)
    for acl in acls:
        table.remove(acl)
    held = {name: value for name, value in vars(table).items() if name != "_lengths"}
    assert not any(held.values())
    assert not any(table._lengths.values())


def rule(operation: int, permission: int = ALLOW, name: str = "t", pattern: int = LITERAL) -> Acl:
    return Acl(TOPIC, name, pattern, "User:x", "*", operation, permission)


def allowed(acls: list[Acl], operation: int, name: str = "t", *, unruled: bool = False) -> bool:
    hosts = hosts_of("10.0.0.1")
    return AclTable(acls).decide("User:x", hosts, operation, TOPIC, name, unruled=unruled).allowed


def test_a_denial_beats_every_permission() -> None:
    assert not allowed([rule(READ), rule(ALL), rule(READ, DENY, "*")], READ)
    assert not allowed([rule(READ), rule(ALL, DENY, "t", PREFIXED)], READ, "t")


def test_a_permission_implies_describe_and_a_denial_does_not_deny_it() -> None:
    assert allowed([rule(READ)], DESCRIBE)
    assert allowed([rule(READ), rule(WRITE, DENY)], DESCRIBE)
    assert not allowed([rule(DESCRIBE)], READ)
    assert allowed([rule(ALTER_CONFIGS)], DESCRIBE_CONFIGS)
    assert not allowed([rule(ALTER_CONFIGS)], DESCRIBE)


def test_a_resource_that_no_rule_concerns_is_open_only_where_that_is_set() -> None:
    assert not allowed([], READ)
    assert allowed([], READ, unruled=True)
    assert not allowed([rule(WRITE)], READ, unruled=True)
    assert not allowed([rule(WRITE, name="*")], READ, unruled=True)
    assert allowed([rule(WRITE, name="other")], READ, unruled=True)


def test_match_finds_every_rule_that_concerns_a_name() -> None:
    acls = [
        rule(READ, name="shop.orders"),
        rule(READ, name="shop.", pattern=PREFIXED),
        rule(READ, name="*"),
        rule(READ, name="shop"),
        rule(READ, name="shop", pattern=PREFIXED),
    ]

    def found(**how: object) -> list[Acl]:
        return AclTable(acls).find(AclFilter(TOPIC, **how))  # type: ignore[arg-type]

    assert found(name="shop.orders", pattern=MATCH) == [acls[0], acls[1], acls[2], acls[4]]
    assert found(name="shop", pattern=ANY) == [acls[3], acls[4]]
    assert found(name="shop", pattern=PREFIXED) == [acls[4]]
    assert found(pattern=PREFIXED) == [acls[1], acls[4]]
    assert found(name="*", pattern=LITERAL) == [acls[2]]
    assert len(found()) == 5
    exact = AclFilter(*acls[0])
    assert (AclTable(acls).find(exact), AclTable(acls[1:]).find(exact)) == ([acls[0]], [])
    assert found(principal="User:y") == []


@pytest.mark.parametrize(
    "wrong",
    [
        Acl(CLUSTER, "other", LITERAL, "User:x", "*", ALL, ALLOW),
        Acl(TOPIC, "", LITERAL, "User:x", "*", ALL, ALLOW),
        Acl(ANY, "t", LITERAL, "User:x", "*", ALL, ALLOW),
        Acl(99, "t", LITERAL, "User:x", "*", ALL, ALLOW),
        Acl(TOPIC, "t", MATCH, "User:x", "*", ALL, ALLOW),
        Acl(TOPIC, "t", LITERAL, "x", "*", ALL, ALLOW),
        Acl(TOPIC, "t", LITERAL, "User:x", "", ALL, ALLOW),
        Acl(TOPIC, "t", LITERAL, "User:x", "*", ANY, ALLOW),
        Acl(TOPIC, "t", LITERAL, "User:x", "*", ALL, ANY),
    ],
)
def test_a_rule_that_kafka_would_not_take_is_refused(wrong: Acl) -> None:
    with pytest.raises(InvalidAclError):
        wrong.check()


def test_a_rule_and_a_filter_for_everything_are_taken() -> None:
    Acl(CLUSTER, CLUSTER_NAME, LITERAL, "User:x", "*", ALL, ALLOW).check()
    AclFilter().check()
    with pytest.raises(InvalidAclError, match="operation"):
        AclFilter(operation=77).check()


def test_addresses_are_known_by_every_text_that_kafka_writes() -> None:
    assert hosts_of("10.0.0.1") == {"*", "10.0.0.1"}
    assert hosts_of("::ffff:10.0.0.1") >= {"*", "10.0.0.1"}
    assert hosts_of("::1") == {"*", "::1", "0:0:0:0:0:0:0:1"}
    assert hosts_of("fe80::1%eth0") >= {"fe80::1", "fe80:0:0:0:0:0:0:1"}
    assert hosts_of("this process") == {"*", "this process"}


def test_super_users_are_separated_by_semicolons() -> None:
    assert super_users("User:a; User:CN=b,O=c ;") == {"User:a", "User:CN=b,O=c"}
    with pytest.raises(ConfigValueError, match="alice"):
        super_users("alice")
