"""`tailrace group`: who reads, how far they are behind, and moving them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tailrace.cli.output import bootstrap_address, json_option, log_option, print_json, print_rows
from tailrace.errors import TailraceError, UsageError

if TYPE_CHECKING:
    from tailrace.client.admin import Admin, Place


class GroupMissingError(TailraceError):
    """There is no consumer group of this name on that log: nobody joined it, and it has
    no committed offsets (they expire seven days after the last member left)."""

    code = "group-missing"


@click.group()
def group() -> None:
    """Consumer groups: lag, members, reset."""


@group.command("list")
@log_option
@json_option
def list_groups(address: str | None, as_json: bool) -> None:
    """Every group with its state and how many records it is behind."""
    from tailrace.client.admin import Admin
    from tailrace.client.groups import Groups

    with Admin(bootstrap_address(address)) as admin:
        groups = Groups(admin)
        rows = []
        for found in groups.every():
            lags = groups.lag(found.name)
            described = groups.describe(found.name)
            rows.append(
                {
                    "group": found.name,
                    "state": found.state,
                    "kind": found.kind,
                    "members": len(described.members) if described else 0,
                    "lag": sum(one.records or 0 for one in lags),
                }
            )
    columns = ["group", "state", "kind", "members", "lag"]
    print_rows(rows, columns, as_json=as_json, empty="no groups")


@group.command()
@click.argument("name")
@log_option
@json_option
def describe(name: str, address: str | None, as_json: bool) -> None:
    """State, members, and the lag of every partition."""
    from tailrace.cli import slow_consumers
    from tailrace.client.admin import Admin
    from tailrace.client.groups import Groups

    with Admin(bootstrap_address(address)) as admin:
        groups = Groups(admin)
        found = groups.describe(name)
        if found is None:
            raise _missing(name)
        rows = [
            {
                "topic": one.topic,
                "partition": one.partition,
                "committed": None if one.committed < 0 else one.committed,
                "end": None if one.end < 0 else one.end,
                "lag": one.records,
                "member": one.member.member_id if one.member else None,
                "host": one.member.host if one.member else None,
            }
            for one in groups.lag(name)
        ]
        told = slow_consumers.status(admin, "group", name)
    if as_json:
        print_json(
            {
                "group": name,
                "state": found.state,
                "kind": found.kind,
                "protocol": found.protocol,
                "members": [
                    {
                        "member": one.member_id,
                        "instance": one.instance_id,
                        "client": one.client_id,
                        "host": one.host,
                        "partitions": [list(place) for place in one.partitions],
                    }
                    for one in found.members
                ],
                "partitions": rows,
                "slow_consumers": told,
            }
        )
        return
    protocol = f", {found.protocol}" if found.protocol else ""
    click.echo(f"{name}: {found.state} ({found.kind}{protocol}), {len(found.members)} members")
    columns = ["topic", "partition", "committed", "end", "lag", "member", "host"]
    print_rows(rows, columns, as_json=False, empty="no offsets")
    for line in slow_consumers.of_group(told):
        click.echo(line)


@group.command()
@click.argument("names", nargs=-1, required=True)
@log_option
@json_option
def delete(names: tuple[str, ...], address: str | None, as_json: bool) -> None:
    """Remove groups that nobody is in, with their offsets."""
    from tailrace.client.admin import Admin
    from tailrace.client.groups import Groups

    with Admin(bootstrap_address(address)) as admin:
        Groups(admin).delete(names)
    if as_json:
        print_json({"deleted": list(names)})
    else:
        for name in names:
            click.echo(f"deleted {name}")


@group.command()
@click.argument("name")
@click.option(
    "--to", "target", required=True, metavar="earliest|latest|OFFSET|TIME", help="Where to go on."
)
@click.option(
    "--topic", "topics", multiple=True, help="Only this topic (TOPIC or TOPIC:PARTITION)."
)
@click.option("--execute", is_flag=True, help="Do it; without this it is only shown.")
@log_option
@json_option
def reset(
    name: str,
    target: str,
    topics: tuple[str, ...],
    execute: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Move a group's offsets; shows what would change unless --execute is given."""
    from tailrace.client.admin import Admin
    from tailrace.client.groups import Groups
    from tailrace.client.reset import target_offsets

    with Admin(bootstrap_address(address)) as admin:
        groups = Groups(admin)
        described = groups.describe(name)
        committed = groups.positions(name, described)
        places = _places(admin, topics) if topics else sorted(committed)
        if not places:
            if described is None:
                raise _missing(name)
            raise UsageError(
                f'group "{name}" has no offsets to move', hint="name topics with --topic"
            )
        moved = target_offsets(admin, places, target)
        if execute:
            groups.commit(name, moved)
    rows = [
        {
            "topic": place[0],
            "partition": place[1],
            "from": committed.get(place),
            "to": moved[place],
        }
        for place in places
    ]
    if as_json:
        print_json({"group": name, "executed": execute, "partitions": rows})
        return
    print_rows(rows, ["topic", "partition", "from", "to"], as_json=False)
    if not execute:
        click.echo("nothing was changed: add --execute to do it")


def _places(admin: Admin, topics: tuple[str, ...]) -> list[Place]:
    """The partitions meant by TOPIC and TOPIC:PARTITION arguments."""
    from tailrace.cli.topic import missing

    places: list[Place] = []
    for given in topics:
        topic, colon, index = given.rpartition(":")
        if not colon or not index.isdigit():
            topic, index = given, ""
        found = admin.describe_topic(topic)
        if found is None:
            raise missing(topic)
        every = range(len(found.leaders))
        if index and int(index) not in every:
            raise UsageError(f"{topic} has no partition {index}", detail=f"it has {len(every)}")
        places.extend((topic, one) for one in ([int(index)] if index else every))
    return sorted(set(places))


def _missing(name: str) -> GroupMissingError:
    return GroupMissingError(
        f'there is no group "{name}"', hint="`tailrace group list` names those there are"
    )
