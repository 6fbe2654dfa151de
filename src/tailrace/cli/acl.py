"""`tailrace acl`, also `tailrace broker acl`: who may do what at the log."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from tailrace.broker.authorization.acls import (
    ALLOW,
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    GROUP,
    LITERAL,
    MATCH,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    PREFIXED,
    RESOURCES,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Acl,
    AclFilter,
)
from tailrace.cli.output import bootstrap_address, json_option, log_option, print_rows
from tailrace.errors import UsageError

COLUMNS = ("principal", "permission", "operation", "resource", "name", "pattern", "host")
_NAMED = {"topics": TOPIC, "groups": GROUP, "transactional_ids": TRANSACTIONAL_ID, "users": USER}
_NUMBERS = {word: number for number, word in OPERATIONS.items()}
_TOOL_OPTIONS = {
    TOPIC: "--topic",
    GROUP: "--group",
    CLUSTER: "--cluster",
    TRANSACTIONAL_ID: "--transactional-id",
    USER: "--user-principal",
}


@click.group()
def acl() -> None:
    """Who may do what: rules for principals, resources and operations.

    They count where the broker has an authorizer (`authorizer.class.name`).
    """


def resource_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds `--topic`, `--group`, `--transactional-id`, `--user` and `--cluster`."""
    command = click.option("--cluster", is_flag=True, help="The cluster itself.")(command)
    for name, target, what in (
        ("--user", "users", "A user, for delegation tokens"),
        ("--transactional-id", "transactional_ids", "A transactional id"),
        ("--group", "groups", "A group"),
        ("--topic", "topics", "A topic"),
    ):
        command = click.option(
            name, target, metavar="NAME", multiple=True, help=f"{what}; * for all. Repeatable."
        )(command)
    return command


def principal_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds `--principal`, `--host` and `--operation`."""
    for name, target, more in (
        ("--operation", "operations", {"type": click.Choice(list(_NUMBERS)), "multiple": True, "help": "What it is about. Repeatable."}),
        ("--host", "hosts", {"metavar": "ADDRESS", "multiple": True, "help": "An IP address; * for all. Repeatable."}),
        ("--principal", "principals", {"metavar": "KIND:NAME", "multiple": True, "help": "For example User:alice; User:* for everybody. Repeatable."}),
    ):  # fmt: skip
        options: Mapping[str, Any] = more
        command = click.option(name, target, **options)(command)
    return command


@acl.command()
@principal_options
@resource_options
@click.option("--prefixed", is_flag=True, help="The names are prefixes.")
@click.option("--deny", is_flag=True, help="Forbid it; this beats everything that allows it.")
@log_option
@json_option
def add(
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    operations: tuple[str, ...],
    cluster: bool,
    prefixed: bool,
    deny: bool,
    address: str | None,
    as_json: bool,
    **named: tuple[str, ...],
) -> None:
    """Add rules: each operation, for each principal, on each resource."""
    from tailrace.client.acls import Acls
    from tailrace.client.admin import Admin

    resources = _resources(named, cluster)
    for given, option in ((principals, "--principal"), (operations, "--operation")):
        if not given:
            raise UsageError(f"a rule needs {option}", hint="see tailrace acl add --help")
    if not resources:
        raise UsageError(
            "a rule is about something", hint="name --topic, --group, --transactional-id …"
        )
    acls = [
        Acl(
            resource,
            name,
            PREFIXED if prefixed and resource != CLUSTER else LITERAL,
            principal,
            host,
            _NUMBERS[operation],
            DENY if deny else ALLOW,
        )
        for principal in principals
        for host in hosts or ("*",)
        for resource, name in resources
        for operation in operations
    ]
    for one in acls:
        one.check()
    with Admin(bootstrap_address(address)) as admin:
        Acls(admin).add(acls)
    _print(acls, as_json)


@acl.command("list")
@principal_options
@resource_options
@click.option(
    "--matching", is_flag=True, help="Every rule that concerns a name, prefixes and * included."
)
@log_option
@json_option
def list_acls(
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    operations: tuple[str, ...],
    cluster: bool,
    matching: bool,
    address: str | None,
    as_json: bool,
    **named: tuple[str, ...],
) -> None:
    """The rules there are, or those that fit what is named."""
    from tailrace.client.acls import Acls
    from tailrace.client.admin import Admin

    filters = _filters(
        principals, hosts, operations, _resources(named, cluster), MATCH if matching else ANY
    )
    with Admin(bootstrap_address(address)) as admin:
        found = {one: None for wanted in filters for one in Acls(admin).find(wanted)}
    _print(sorted(found), as_json)


@acl.command()
@principal_options
@resource_options
@click.option("--prefixed", is_flag=True, help="The rules whose names are prefixes.")
@click.option("--all", "everything", is_flag=True, help="Every rule there is.")
@log_option
@json_option
def remove(
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    operations: tuple[str, ...],
    cluster: bool,
    prefixed: bool,
    everything: bool,
    address: str | None,
    as_json: bool,
    **named: tuple[str, ...],
) -> None:
    """Remove the rules that fit what is named, and print them.

    Status 1 if there is none.
    """
    from tailrace.client.acls import Acls
    from tailrace.client.admin import Admin

    resources = _resources(named, cluster)
    if not (principals or hosts or operations or resources or everything):
        raise UsageError(
            "which rules shall go?", hint="name --principal, --topic …, or --all for every rule"
        )
    pattern = (PREFIXED if prefixed else LITERAL) if resources or prefixed else ANY
    filters = _filters(principals, hosts, operations, resources, pattern)
    with Admin(bootstrap_address(address)) as admin:
        gone = {one: None for wanted in filters for one in Acls(admin).remove(wanted)}
    _print(sorted(gone), as_json)
    if not gone:
        raise SystemExit(1)


@acl.command("for-project")
@click.argument("directory", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--principal",
    metavar="KIND:NAME",
    default=None,
    help="Who runs the project (default: the user of [log.security]).",
)
@click.option("--host", metavar="ADDRESS", default="*", help="From where alone.")
@click.option("--kafka-acls", "tool", is_flag=True, help="As commands for Kafka's own tool.")
@click.option("--add", "added", is_flag=True, help="Add them to the project's log, too.")
@json_option
def for_project(
    directory: Path, principal: str | None, host: str, tool: bool, added: bool, as_json: bool
) -> None:
    """The rules that a project needs, from its declarations: no more than it does."""
    from tailrace.client.acls import Acls
    from tailrace.client.admin import Admin
    from tailrace.project.acls import needed
    from tailrace.project.load import load
    from tailrace.security import security_of

    project = load(directory)
    if principal is None:
        security = security_of(project.settings.log.bootstrap or "")
        user = None if security is None else security.username
        if not user:
            raise UsageError(
                "for whom?", hint="name --principal User:NAME, or the user in [log.security]"
            )
        principal = f"User:{user}"
    acls = needed(project, principal, host)
    for one in acls:
        one.check()
    if added:
        with Admin(bootstrap_address(str(directory))) as admin:
            Acls(admin).add(acls)
    if tool:
        for line in _commands(acls):
            click.echo(line)
    else:
        _print(acls, as_json)


def _commands(acls: Iterable[Acl]) -> Iterable[str]:
    """Commands of Kafka's tool, one for each resource."""
    resources: dict[tuple[int, str, int, str, str], list[str]] = {}
    for one in acls:
        place = (one.resource, one.name, one.pattern, one.principal, one.host)
        resources.setdefault(place, []).append(_camel(OPERATIONS[one.operation]))
    for (resource, name, pattern, principal, host), operations in resources.items():
        words = ["kafka-acls", "--bootstrap-server", "$BOOTSTRAP", "--add", "--allow-principal"]
        words += [shlex.quote(principal), "--allow-host", shlex.quote(host)]
        for operation in operations:
            words += ["--operation", operation]
        words.append(_TOOL_OPTIONS[resource])
        if resource != CLUSTER:
            words += [shlex.quote(name), "--resource-pattern-type", PATTERNS[pattern]]
        yield " ".join(words)


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("-"))


def _resources(named: Mapping[str, tuple[str, ...]], cluster: bool) -> list[tuple[int, str]]:
    found = [(_NAMED[kind], name) for kind, names in named.items() for name in names]
    return found + ([(CLUSTER, CLUSTER_NAME)] if cluster else [])


def _filters(
    principals: tuple[str, ...],
    hosts: tuple[str, ...],
    operations: tuple[str, ...],
    resources: list[tuple[int, str]],
    pattern: int,
) -> list[AclFilter]:
    places: list[tuple[int, str | None]] = [*resources] or [(ANY, None)]
    return [
        AclFilter(
            resource,
            name,
            pattern,
            principal,
            host,
            ANY if operation is None else _NUMBERS[operation],
        )
        for resource, name in places
        for principal in principals or (None,)
        for host in hosts or (None,)
        for operation in operations or (None,)
    ]


def _print(acls: Iterable[Acl], as_json: bool) -> None:
    rows = [
        {
            "principal": one.principal,
            "permission": PERMISSIONS.get(one.permission, one.permission),
            "operation": OPERATIONS.get(one.operation, one.operation),
            "resource": RESOURCES.get(one.resource, one.resource),
            "name": one.name,
            "pattern": PATTERNS.get(one.pattern, one.pattern),
            "host": one.host,
        }
        for one in acls
    ]
    print_rows(rows, COLUMNS, as_json=as_json, empty="no rules")
