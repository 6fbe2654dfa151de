"""`tailrace quota`: how much clients may send, fetch and ask."""

from __future__ import annotations

import click

from tailrace.cli.output import bootstrap_address, json_option, log_option, print_json, print_rows
from tailrace.errors import UsageError

DEFAULT = "*"


@click.group()
def quota() -> None:
    """Limits on what users and client ids may send, fetch and ask."""


def entity_options(command: click.decorators.FC) -> click.decorators.FC:
    """Adds `--user` and `--client-id`."""
    for name, text in (
        ("--client-id", "The client id; * for all that have no quota of their own."),
        ("--user", "The user; * for all that have no quota of their own."),
    ):
        command = click.option(name, metavar="NAME", default=None, help=text)(command)
    return command


@quota.command("list")
@log_option
@json_option
def list_quotas(address: str | None, as_json: bool) -> None:
    """Every quota; the most special one that fits a client holds."""
    from tailrace.client.admin import Admin
    from tailrace.client.quotas import CLIENT_ID, KEYS, USER, Quotas

    with Admin(bootstrap_address(address)) as admin:
        found = Quotas(admin).every()
    rows = [
        {
            "user": _shown(one.entity, USER),
            "client-id": _shown(one.entity, CLIENT_ID),
            **{key: _number(one.values[key]) if key in one.values else None for key in KEYS},
        }
        for one in found
    ]
    rows.sort(key=lambda row: (str(row["user"]), str(row["client-id"])))
    used = [key for key in KEYS if as_json or any(row[key] is not None for row in rows)]
    print_rows(rows, ["user", "client-id", *used], as_json=as_json, empty="no quotas")


@quota.command("set")
@click.argument("values", nargs=-1, required=True, metavar="NAME=VALUE …")
@entity_options
@log_option
@json_option
def set_quota(
    values: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Set quotas: producer_byte_rate, consumer_byte_rate (bytes a second),
    request_percentage (of one processor), controller_mutation_rate (partitions a second)."""
    changes: dict[str, float | None] = dict(map(_pair, values))
    _change(user, client_id, changes, address, as_json)


@quota.command()
@click.argument("names", nargs=-1)
@entity_options
@log_option
@json_option
def delete(
    names: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Remove quotas: those named, or all of that user or client id."""
    from tailrace.client.quotas import KEYS

    for name in names:
        _check(name)
    _change(user, client_id, dict.fromkeys(names or KEYS), address, as_json)


def _change(
    user: str | None,
    client_id: str | None,
    changes: dict[str, float | None],
    address: str | None,
    as_json: bool,
) -> None:
    from tailrace.client.admin import Admin
    from tailrace.client.quotas import CLIENT_ID, USER, Quotas

    entity = {
        kind: None if name == DEFAULT else name
        for kind, name in ((USER, user), (CLIENT_ID, client_id))
        if name is not None
    }
    if not entity:
        raise UsageError("a quota is for somebody", hint="name --user, --client-id or both")
    with Admin(bootstrap_address(address)) as admin:
        quotas = Quotas(admin)
        quotas.change(entity, changes)
        [now] = [one.values for one in quotas.every() if dict(one.entity) == entity] or [{}]
    if as_json:
        print_json({**{kind: name or DEFAULT for kind, name in entity.items()}, "quotas": now})
        return
    whom = " and ".join(f"{kind} {name or DEFAULT}" for kind, name in entity.items())
    words = ", ".join(f"{key}={_number(value)}" for key, value in now.items())
    click.echo(f"{whom}: {words or 'no quotas'}")


def _pair(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        equals = ""
        number = 0.0
    if not equals:
        raise UsageError(
            f"a quota is NAME=NUMBER, not {text!r}", hint="for example producer_byte_rate=1048576"
        )
    _check(name)
    return name, number


def _check(name: str) -> None:
    from tailrace.client.quotas import KEYS

    if name not in KEYS:
        raise UsageError(f"there is no quota {name}", hint=f"there are {', '.join(KEYS)}")


def _shown(entity: object, kind: str) -> str | None:
    assert isinstance(entity, dict)
    return (entity[kind] or DEFAULT) if kind in entity else None


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value
