"""`tailrace topic`: what there is, and changing it. Reading and writing: `topic_data`."""

from __future__ import annotations

import click

from tailrace.cli import known_names
from tailrace.cli.output import bootstrap_address, json_option, log_option, print_json, print_rows
from tailrace.errors import TailraceError, UsageError


class KeysMoveError(UsageError):
    """More partitions send most keys to other partitions, so records of one key are no
    longer in one place and in order. `topic repartition` copies the topic in order
    instead; `--force` does it all the same."""

    code = "keys-move"


class TopicMissingError(TailraceError):
    """There is no topic of this name on that log."""

    code = "topic-missing"


@click.group()
def topic() -> None:
    """List, create, read, write and alter topics."""


@topic.command("list")
@log_option
@click.option("--internal", is_flag=True, help="Also those the log keeps for itself.")
@json_option
def list_topics(address: str | None, internal: bool, as_json: bool) -> None:
    """Every topic with its partitions and records."""
    from tailrace.client.admin import Admin

    with Admin(bootstrap_address(address)) as admin:
        rows = []
        for found in admin.list_topics(internal=internal):
            places = [(found.name, index) for index in range(len(found.leaders))]
            starts = admin.start_offsets(places)
            ends = admin.end_offsets(places, "read_uncommitted")
            rows.append(
                {
                    "topic": found.name,
                    "partitions": len(found.leaders),
                    "records": sum(ends[place] - starts[place] for place in places),
                }
            )
    print_rows(rows, ["topic", "partitions", "records"], as_json=as_json, empty="no topics")


@topic.command()
@click.argument("name", shell_complete=known_names.topics)
@click.option("--partitions", type=click.IntRange(1), default=None)
@click.option("--config", "settings", metavar="NAME=VALUE", multiple=True)
@click.option("--if-missing", is_flag=True, help="A topic that exists is left as it is.")
@log_option
@json_option
def create(
    name: str,
    partitions: int | None,
    settings: tuple[str, ...],
    if_missing: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Create a topic; settings carry Kafka's names, times and sizes may be words ("7 days")."""
    from tailrace.client.admin import Admin

    config = dict(setting(one) for one in settings)
    with Admin(bootstrap_address(address)) as admin:
        if if_missing:
            made = admin.ensure_topic(name, partitions or -1, config)
        else:
            admin.create_topic(name, partitions or -1, config)
            made = True
    if as_json:
        print_json({"topic": name, "created": made})
    else:
        click.echo(f"created {name}" if made else f"{name} is there already")


@topic.command()
@click.argument("name", shell_complete=known_names.topics)
@log_option
@json_option
def describe(name: str, address: str | None, as_json: bool) -> None:
    """Partitions, offsets, settings that differ from the default, when records expire."""
    from tailrace.cli import slow_consumers
    from tailrace.client.admin import Admin
    from tailrace.client.operations import survival

    with Admin(bootstrap_address(address)) as admin:
        found = admin.describe_topic(name)
        if found is None:
            raise missing(name)
        places = [(name, index) for index in range(len(found.leaders))]
        starts = admin.start_offsets(places)
        ends = admin.end_offsets(places, "read_uncommitted")
        stable = admin.end_offsets(places)
        config = {key: entry.value for key, entry in admin.topic_config(name).items()}
        told = slow_consumers.status(admin, "topic", name)
        (answer,) = admin.cluster.refresh([name])
        copies = min((len(each.replica_nodes) for each in answer.partitions), default=1)
    rows = [
        {
            "partition": place[1],
            "leader": found.leaders[place[1]],
            "start": starts[place],
            "stable end": stable[place],
            "end": ends[place],
        }
        for place in places
    ]
    expiry = expires(config)
    survives = survival(
        copies,
        int(config.get("min.insync.replicas") or 1),
        config.get("unclean.leader.election.enable") == "true",
    )
    if as_json:
        from tailrace.wire.message import uuid_text

        print_json(
            {
                "topic": name,
                "id": uuid_text(found.id),
                "partitions": rows,
                "config": config,
                "expires": expiry,
                "survives": survives,
                "slow_consumers": told,
            }
        )
        return
    click.echo(f"{name}: {len(rows)} partition{'s' if len(rows) != 1 else ''}")
    click.echo(expiry)
    click.echo(f"{survives}\n")
    print_rows(rows, ["partition", "leader", "start", "stable end", "end"], as_json=False)
    click.echo()
    for key in ("cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes", "segment.ms",
                "max.message.bytes", "flush.messages", "message.timestamp.type"):  # fmt: skip
        click.echo(f"{key} = {config.get(key)}")
    for line in slow_consumers.of_topic(told):
        click.echo(line)


def expires(config: dict[str, str | None]) -> str:
    """When records really go: a record cannot expire before its segment closes."""
    policy = config.get("cleanup.policy") or ""
    retention = int(config.get("retention.ms") or -1)
    segment = int(config.get("segment.ms") or 0)
    if "delete" not in policy:
        return "records stay; of records with equal keys the last stays (compacted)"
    if retention < 0:
        return "records never expire by age"
    return (
        f"records expire between {_span(retention)} and {_span(retention + segment)} after they "
        f"were written: {_span(retention)} of retention, after up to {_span(segment)} until "
        "their segment closes"
    )


def _span(milliseconds: int) -> str:
    for unit, size in (
        ("days", 86_400_000),
        ("hours", 3_600_000),
        ("minutes", 60_000),
        ("s", 1000),
    ):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds} ms"


@topic.command()
@click.argument("name", shell_complete=known_names.topics)
@click.option(
    "--partitions", type=click.IntRange(1), default=None, help="Let it grow to this many."
)
@click.option("--config", "settings", metavar="NAME=VALUE", multiple=True)
@click.option("--reset", "resets", metavar="NAME", multiple=True, help="Back to the default.")
@click.option(
    "--delete-before", type=int, default=None, metavar="OFFSET",
    help="Give up the records before this offset (-1: all of them), in every partition.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Grow a topic although keys move.")
@log_option
@json_option
def alter(
    name: str,
    partitions: int | None,
    settings: tuple[str, ...],
    resets: tuple[str, ...],
    delete_before: int | None,
    force: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Change settings, grow the topic, or give up old records."""
    from tailrace.cli.topic_data import has_keys
    from tailrace.client.admin import Admin

    changes: dict[str, str | None] = {
        **dict(setting(one) for one in settings),
        **dict.fromkeys(resets),
    }
    if not changes and partitions is None and delete_before is None:
        raise UsageError("nothing to change", hint="see `tailrace topic alter --help`")
    bootstrap = bootstrap_address(address)
    with Admin(bootstrap) as admin:
        found = admin.describe_topic(name)
        if found is None:
            raise missing(name)
        if partitions is not None and not force and has_keys(bootstrap, name, len(found.leaders)):
            raise KeysMoveError(
                f"{name} has records with keys, and their keys would move",
                detail="readers that rely on all records of a key being in one partition would "
                "see them in two",
                hint=f"`tailrace topic repartition {name} --partitions {partitions}` copies in "
                "order; --force grows it all the same",
            )
        if partitions is not None:
            admin.add_partitions(name, partitions)
        if changes:
            admin.alter_topic_config(name, changes)
        if delete_before is not None:
            admin.delete_records(
                {(name, index): delete_before for index in range(len(found.leaders))}
            )
    if as_json:
        print_json({"topic": name, "changed": True})
    else:
        click.echo(f"changed {name}")


@topic.command()
@click.argument("names", nargs=-1, required=True, shell_complete=known_names.topics)
@click.option("--yes", is_flag=True, help="Do not ask.")
@log_option
@json_option
def delete(names: tuple[str, ...], yes: bool, address: str | None, as_json: bool) -> None:
    """Delete topics with everything in them."""
    from tailrace.client.admin import Admin

    if not yes and not as_json:
        click.confirm(f"delete {', '.join(names)} with all records?", abort=True)
    with Admin(bootstrap_address(address)) as admin:
        for name in names:
            admin.delete_topic(name)
    if as_json:
        print_json({"deleted": list(names)})
    else:
        click.echo(f"deleted {', '.join(names)}")


def pair(text: str) -> tuple[str, str]:
    """Name and value of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(
            f"a setting is NAME=VALUE, not {text!r}", hint="for example retention.ms=1000"
        )
    return name.strip(), value.strip()


def setting(text: str) -> tuple[str, str]:
    """Name and value of a topic's setting; a time or a size may be words."""
    from tailrace.config import topic_setting

    name, value = pair(text)
    return name, topic_setting(name, value)


def missing(name: str) -> TopicMissingError:
    """The error for a topic that is not there."""
    return TopicMissingError(f"there is no topic {name}", hint="`tailrace topic list` shows them")


def _add_data_commands() -> None:
    from tailrace.cli.repartition import repartition
    from tailrace.cli.topic_data import read, write

    for command in (read, write, repartition):
        topic.add_command(command)


_add_data_commands()
