"""`tailrace acl` against a running broker, and what a project needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.authorization.users import Guarded
from tailrace.broker.authorization.acls import ALL, ALLOW, CLUSTER, CLUSTER_NAME, LITERAL, Acl
from tailrace.cli.main import cli
from tailrace.errors import UsageError

SHOP = Path(__file__).parents[3] / "examples" / "shop"


@pytest.fixture
def open_guarded(guarded: Guarded) -> Guarded:
    """The command shows the project's token: the project may do everything to the cluster."""
    guarded.add([Acl(CLUSTER, CLUSTER_NAME, LITERAL, "Project:tailrace", "*", ALL, ALLOW)])
    return guarded


def run(broker: Guarded, *arguments: str, name: str = "acl") -> Result:
    return CliRunner().invoke(cli, [*name.split(), *arguments, "--log", broker.address])


def rows(broker: Guarded, *arguments: str) -> list[str]:
    found = json.loads(run(broker, "list", *arguments, "--json").output)
    return [" ".join(row.values()) for row in found if row["principal"] != "Project:tailrace"]


def test_rules_are_added_listed_and_removed(open_guarded: Guarded) -> None:
    broker = open_guarded
    added = run(
        broker, "add", "--principal", "User:alice", "--operation", "read", "--operation", "write",
        "--topic", "shop.", "--prefixed",
    )  # fmt: skip
    assert added.exit_code == 0, added.output
    assert "shop." in added.output
    run(broker, "add", "--principal", "User:bob", "--operation", "all", "--topic", "*", "--deny",
        "--host", "10.0.0.1", name="broker acl")  # fmt: skip
    run(broker, "add", "--principal", "User:bob", "--operation", "read", "--group", "g")
    alice = [f"User:alice allow {one} topic shop. prefixed *" for one in ("read", "write")]
    bob = ["User:bob deny all topic * literal 10.0.0.1", "User:bob allow read group g literal *"]
    assert rows(broker) == [bob[0], *alice, bob[1]]
    assert rows(broker, "--topic", "shop.orders", "--matching") == [bob[0], *alice]
    assert rows(broker, "--topic", "shop.orders") == []
    assert rows(broker, "--principal", "User:bob", "--operation", "read") == [bob[1]]
    assert run(broker, "remove", "--topic", "shop.").exit_code == 1  # not as a prefix
    gone = run(broker, "remove", "--topic", "shop.", "--prefixed", "--operation", "read")
    assert gone.exit_code == 0
    assert rows(broker) == [bob[0], alice[1], bob[1]]
    assert run(broker, "remove", "--principal", "User:bob").exit_code == 0
    assert rows(broker) == [alice[1]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "--operation", "read", "--topic", "t"],
        ["add", "--principal", "User:a", "--topic", "t"],
        ["add", "--principal", "User:a", "--operation", "read"],
        ["remove"],
    ],
)
def test_half_a_rule_is_no_rule(open_guarded: Guarded, arguments: list[str]) -> None:
    assert isinstance(run(open_guarded, *arguments).exception, UsageError)


def test_who_may_not_change_rules_is_told(guarded: Guarded) -> None:
    refused = run(guarded, "list")
    assert refused.exit_code == 1
    assert "Cluster authorization failed" in str(vars(refused.exception or Exception()))


def test_a_project_tells_what_it_needs() -> None:
    printed = CliRunner().invoke(
        cli, ["acl", "for-project", str(SHOP), "--principal", "User:shop", "--json"]
    )
    assert printed.exit_code == 0, printed.output
    found = {" ".join(row.values()) for row in json.loads(printed.output)}
    assert "User:shop allow write topic shop. prefixed *" in found
    assert "User:shop allow write transactional-id tailrace.source.shop literal *" in found
    assert "User:shop allow write transactional-id tailrace.shop.ticks literal *" in found
    assert "User:shop allow read topic __tailrace prefixed *" in found
    assert [row for row in found if " cluster " in row] == [
        "User:shop allow describe cluster kafka-cluster literal *"
    ]
    assert not any(" * literal" in row for row in found)


def test_a_project_tells_it_as_commands_of_kafkas_tool() -> None:
    printed = CliRunner().invoke(
        cli, ["acl", "for-project", str(SHOP), "--principal", "User:CN=a b", "--kafka-acls"]
    )
    lines = printed.output.splitlines()
    assert all(line.startswith("kafka-acls --bootstrap-server $BOOTSTRAP --add") for line in lines)
    assert any(
        "--allow-principal 'User:CN=a b' --allow-host '*' --operation Write"
        " --transactional-id tailrace.shop.ticks --resource-pattern-type literal" in line
        for line in lines
    )


def test_a_project_without_a_user_asks_for_whom() -> None:
    asked = CliRunner().invoke(cli, ["acl", "for-project", str(SHOP)])
    assert isinstance(asked.exception, UsageError)
