"""`tailrace mirror`: topics of one log kept in another, exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tailrace.cli.output import bootstrap_address, json_option, print_json, print_rows, tell
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.client.admin import Admin
    from tailrace.client.fetcher import Fetcher
    from tailrace.mirroring.rows import MirrorRows

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def mirror() -> None:
    """Topics of one log kept in another, exactly once."""


def _address(context: click.Context, parameter: click.Parameter, said: str | None) -> str | None:
    return None if said is None else bootstrap_address(said)


def to_option(command: Command) -> Command:
    return click.option("--to", "target", metavar="ADDRESS", required=True, callback=_address, help="The log that is written: HOST:PORT, or a project's directory.")(command)  # fmt: skip


def from_option(command: Command) -> Command:
    return click.option("--from", "source", metavar="ADDRESS", required=True, callback=_address, help="The log that is read: HOST:PORT, or a project's directory.")(command)  # fmt: skip


@mirror.command()
@click.argument("name", required=False)
@click.option("--name", "named", metavar="NAME", help="The mirror's name, as the argument.")
@from_option
@to_option
@click.option("--topics", metavar="REGEX", required=True, help="Topics by their whole names.")
@click.option("--names", type=click.Choice(["same", "prefix"]), default="same", show_default=True, help="What they are called at the target.")  # fmt: skip
@click.option("--prefix", metavar="NAME", default="", help="With --names prefix: NAME.orders.")
@click.option("--groups", metavar="REGEX", help="Store translated offsets of these groups at the target.")  # fmt: skip
@click.option("--until-caught-up", is_flag=True, help="End when everything is there that the source has now.")  # fmt: skip
@json_option
def run(
    name: str | None,
    named: str | None,
    source: str,
    target: str,
    topics: str,
    names: str,
    prefix: str,
    groups: str | None,
    until_caught_up: bool,
    as_json: bool,
) -> None:
    """Mirror topics until Ctrl-C. Prints `mirroring NAME` once it has begun.

    Started again it goes on where it was. What the source lost before it was mirrored stops it,
    with the offsets.
    """
    if (name is None) == (named is None):
        raise UsageError("a mirror has one name", hint="tailrace mirror run NAME --from … --to …")
    import signal
    import threading

    from tailrace.mirroring.relay import Mirror

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    chosen = name or named or ""
    with Mirror(
        chosen, source, target, topics=topics, names=names, source_name=prefix, groups=groups
    ) as relay:
        if not as_json:
            print(f"mirroring {chosen}", flush=True)
        if until_caught_up:
            relay.run_until_caught_up(stopping.is_set)
        else:
            relay.run(stopping.is_set)
        count = relay.records
    if as_json:
        print_json({"name": chosen, "records": count})
    else:
        tell(f"{count} record mirrored" if count == 1 else f"{count} records mirrored")


@mirror.command("list")
@to_option
@json_option
def list_mirrors(target: str, as_json: bool) -> None:
    """Every mirror into a log."""
    with _target(target) as (admin, fetcher):
        from tailrace.mirroring.rows import read_rows

        found = read_rows(admin, fetcher)
    rows = [
        {
            "name": name,
            "state": each.state.state if each.state else "",
            "topics": each.state.topics if each.state else "",
            "partitions": len(each.positions),
            "records": _records(each),
        }
        for name, each in sorted(found.items())
    ]
    columns = ["name", "state", "topics", "partitions", "records"]
    print_rows(rows, columns, as_json=as_json, empty="no mirrors into this log")


@mirror.command()
@click.argument("name")
@from_option
@to_option
@json_option
def status(name: str, source: str, target: str, as_json: bool) -> None:
    """How far a mirror is, by partition. The lag counts offsets, so markers of transactions as
    well; the state is `running` until a fail-over, even if no process runs it now."""
    from tailrace.client.admin import Admin

    with _target(target) as (admin, fetcher), Admin(source, timeout=10.0) as origin:
        found = _named(name, admin, fetcher)
        ends = origin.end_offsets(found.positions)
    partitions = [
        {
            "topic": place[0],
            "partition": place[1],
            "mirrored": position.next,
            "source_end": ends[place],
            "lag_records": max(0, ends[place] - position.next),
        }
        for place, position in sorted(found.positions.items())
    ]
    lag = sum(each["lag_records"] for each in partitions if isinstance(each["lag_records"], int))
    document = {
        "name": name,
        "state": found.state.state if found.state else None,
        "lag_records": lag,
        "records": _records(found),
        "topics": partitions,
    }
    if as_json:
        print_json(document)
        return
    click.echo(f"{name}: {document['state']}, {document['records']} records, {lag} offsets behind")
    columns = ["topic", "partition", "mirrored", "source_end", "lag_records"]
    print_rows(partitions, columns, as_json=False, empty="nothing was mirrored yet")


@mirror.command()
@click.argument("name")
@from_option
@to_option
@json_option
def verify(name: str, source: str, target: str, as_json: bool) -> None:
    """Compare both sides record by record, as far as the mirror has come; exit status 1 and the
    offsets at the source if they differ."""
    from tailrace.client.fetcher import Fetcher
    from tailrace.mirroring.compare import compare

    with _target(target) as (admin, fetcher), Fetcher(source) as origin:
        found = compare(_named(name, admin, fetcher), origin, fetcher)
    if as_json:
        print_json({"equal": not found.differences, **asdict(found)})
    else:
        columns = ["topic", "partition", "first", "last", "why"]
        print_rows([asdict(each) for each in found.differences], columns, as_json=False, empty="no differences")  # fmt: skip
        click.echo(f"{found.compared} records are the same on both sides; {found.gone} are gone at the source")  # fmt: skip
    if found.differences:
        raise SystemExit(1)


@mirror.command()
@click.argument("name")
@click.argument("place", metavar="TOPIC/PARTITION:OFFSET")
@to_option
@click.option("--back", is_flag=True, help="An offset of the target, to that of the source.")
@json_option
def translate(name: str, place: str, target: str, back: bool, as_json: bool) -> None:
    """The offset at the target of a record of the source; TOPIC is its name at the source."""
    from tailrace.mirroring import translate as runs

    where, colon, number = place.rpartition(":")
    topic, slash, index = where.rpartition("/")
    if not (colon and slash and number.isdigit() and index.isdigit()):
        raise UsageError(f"{place!r} is no TOPIC/PARTITION:OFFSET", hint="for example orders/0:17")
    with _target(target) as (admin, fetcher):
        found = _named(name, admin, fetcher)
        known = found.positions.get((topic, int(index)))
        if known is None:
            raise UsageError(f'the mirror "{name}" has nothing of {where}')
        of_place = found.runs.get((topic, int(index)), [])
        if back:
            offset = runs.translate_back(of_place, int(number), known.next)
        else:
            there = (known.target, int(index))
            offset = runs.translate(of_place, int(number), admin.end_offsets([there])[there])
    if as_json:
        print_json({"offset": offset})
    else:
        click.echo(offset)


@mirror.command("fail-over")
@click.argument("name")
@to_option
@click.option("--from", "source", metavar="ADDRESS", callback=_address, help="The source, if it still answers: then what has not arrived is counted.")  # fmt: skip
@click.option("--execute", is_flag=True, help="Do it; without it, only say what would be missing.")
@json_option
def fail_over(name: str, target: str, source: str | None, execute: bool, as_json: bool) -> None:
    """Make the target stand alone: the process that runs the mirror is fenced, for good.

    Groups that the mirror carried go on there; others from `tailrace mirror translate`.
    """
    from tailrace.client.admin import Admin
    from tailrace.mirroring import relay

    if execute:
        relay.fail_over(name, target)
    with _target(target) as (admin, fetcher):
        found = _named(name, admin, fetcher)
    behind: int | None = None
    if source is not None:
        with Admin(source, timeout=10.0) as origin:
            ends = origin.end_offsets(found.positions)
        behind = sum(max(0, ends[place] - each.next) for place, each in found.positions.items())
    document = {"executed": execute, "not_mirrored": behind}
    if as_json:
        print_json(document)
        return
    told = "nobody was asked what has not arrived" if behind is None else f"{behind} offsets of the source have not arrived"  # fmt: skip
    click.echo(told)
    click.echo("failed over" if execute else "nothing was changed; --execute does it")


@contextmanager
def _target(address: str) -> Iterator[tuple[Admin, Fetcher]]:
    from tailrace.client.admin import Admin
    from tailrace.client.fetcher import Fetcher

    with Admin(address, timeout=10.0) as admin, Fetcher(address) as fetcher:
        yield admin, fetcher


def _named(name: str, admin: Admin, fetcher: Fetcher) -> MirrorRows:
    from tailrace.mirroring.rows import read_rows

    found = read_rows(admin, fetcher)
    if name not in found:
        raise UsageError(
            f'there is no mirror "{name}" into this log',
            hint=f"there are {', '.join(sorted(found)) or 'none'}",
        )
    return found[name]


def _records(rows: MirrorRows) -> int:
    return sum(count for runs in rows.runs.values() for _, _, count in runs)
