"""`tailrace events`: event topics, their streams, who owns them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tailrace.cli import known_names
from tailrace.cli.output import bootstrap_address, in_project, json_option, print_json, print_rows
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.declare import Events
    from tailrace.facts.opened import OpenedEvents
    from tailrace.facts.reactions import Reaction

PATIENCE = 10.0


@click.group()
def events() -> None:
    """Event topics: states, histories, commands, owners."""


@contextmanager
def _log() -> Iterator[Log]:
    from tailrace.client.log import connect

    with connect(bootstrap_address(None)) as log:
        yield log


def _declared(topic: str | None = None) -> dict[str, Events[Any]]:
    import difflib

    from tailrace.project.load import load

    project = load(Path())
    if topic is None or topic in project.events:
        return project.events
    near = difflib.get_close_matches(topic, project.events, 1)
    raise UsageError(
        f'the project declares no event topic "{topic}"',
        detail=f"it declares {', '.join(project.events) or 'none'}",
        hint=f"did you mean {near[0]}?" if near else 'accounts = tr.events("accounts", …)',
    )


@contextmanager
def _calling(topic: str) -> Iterator[OpenedEvents[Any]]:
    declared = _declared(topic)[topic]
    with _log() as log, declared.open(log, owns=False, timeout=PATIENCE) as opened:
        yield opened


@events.command("list")
@in_project
@json_option
def list_topics(as_json: bool) -> None:
    """Every event topic with its events, bytes, streams and the time of a rebuild."""
    from tailrace import config
    from tailrace.telemetry.part import read_reports

    declared = _declared()
    reports = read_reports(config.load(".").state_directory)
    figures: dict[str, dict[str, Any]] = {}
    for report in reports:
        if report.get("kind") == "events":
            figures |= report.get("topics") or {}
    with _log() as log:
        rows = [_row(log, each, figures.get(name, {})) for name, each in declared.items()]
    columns = ["topic", "partitions", "events", "bytes", "streams", "foreign", "rebuild_seconds"]
    print_rows(rows, columns, as_json=as_json, empty="the project declares no event topics")


def _row(log: Log, declared: Events[Any], figures: dict[str, Any]) -> dict[str, object]:
    exists = log.topic(declared.name) is not None
    return {
        "topic": declared.name,
        "partitions": declared.partitions,
        "types": [each.written for each in declared.types],
        "commands": list(declared.commands),
        "events": figures.get("events") if exists else 0,
        "bytes": figures.get("bytes") if exists else 0,
        "streams": figures.get("streams") if exists else 0,
        "foreign": figures.get("foreign") if exists else 0,
        **_measured(declared.name, figures),
    }


def _measured(topic: str, figures: dict[str, Any]) -> dict[str, object]:
    """The time of a rebuild: the last one of its owners, or of `tailrace events rebuild`."""
    events, seconds = figures.get("rebuilt_events"), figures.get("rebuilt_seconds")
    if not events:
        import orjson

        events = seconds = None
        with contextlib.suppress(OSError, orjson.JSONDecodeError, AttributeError):
            found = orjson.loads(_measure_path(topic).read_bytes())
            events, seconds = found.get("events"), found.get("seconds")
    return {"rebuild_events": events, "rebuild_seconds": seconds}


def _measure_path(topic: str) -> Path:
    from tailrace import config

    return config.load(".").state_directory / "events" / f"{topic}.rebuild.json"


def _keep_measure(topic: str, told: dict[str, Any]) -> None:
    """For `events list`; a directory that cannot be written only loses the figure."""
    import orjson

    from tailrace.files import FILES
    from tailrace.modes import make_private

    path = _measure_path(topic)
    with contextlib.suppress(OSError):
        make_private(path.parent)
        FILES.write_whole(path, orjson.dumps(told), sync=False)


@events.command()
@click.argument("topic", shell_complete=known_names.events)
@click.argument("stream")
@click.option("--version", type=int, help="The state at this version.")
@click.option("--at", metavar="TIME|POSITION", help="The state at a time or position.")
@click.option("--diff", nargs=2, metavar="A B", help="What differs between two versions or times.")
@click.option("--history", is_flag=True, help="Every event of the stream.")
@in_project
@json_option
def show(
    topic: str,
    stream: str,
    version: int | None,
    at: str | None,
    diff: tuple[str, str] | None,
    history: bool,
    as_json: bool,
) -> None:
    """The state of a stream, now or then, or its history."""
    if sum((version is not None, at is not None, diff is not None, history)) > 1:
        raise UsageError("--version, --at, --diff and --history exclude each other")
    with _calling(topic) as opened:
        if history:
            rows = [_fact(each) for each in opened.history(stream)]
            columns = ["version", "at", "type", "event", "command", "name", "actor"]
            print_rows(rows, columns, as_json=as_json, empty=f"{stream} has no events")
            return
        if diff is not None:
            changed = opened.diff(stream, *map(_moment, diff))
            fields = {name: {"then": then, "now": now} for name, (then, now) in changed.items()}
            if as_json:
                print_json(_plain(fields))
                return
            rows = [{"field": name, **each} for name, each in fields.items()]
            print_rows(rows, ["field", "then", "now"], as_json=False, empty="no difference")
            return
        found = opened.state(stream, version=version, at=at)
    told = {"version": found.version, "position": found.position, "state": _plain(found.value)}
    if as_json:
        print_json(told)
    else:
        click.echo(f"{stream} at version {found.version} ({found.position or 'no events'})")
        for name, value in _fields(told["state"]).items():
            click.echo(f"  {name}: {value}")


def _moment(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _plain(value: object) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def _fields(state: object) -> dict[str, Any]:
    return state if isinstance(state, dict) else {"state": state}


def _fact(fact: Any) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(fact)
    return plain


@events.command()
@click.argument("topic", shell_complete=known_names.events)
@click.argument("command")
@click.argument("stream")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--expected", type=int, help="The version the stream must have; 0: new.")
@click.option("--id", "command_id", help="Repeating a call with the same id is harmless.")
@click.option("--actor", help="Who decides, for the history.")
@in_project
@json_option
def execute(
    topic: str,
    command: str,
    stream: str,
    arguments: tuple[str, ...],
    expected: int | None,
    command_id: str | None,
    actor: str | None,
    as_json: bool,
) -> None:
    """Decide on a stream: tailrace events execute accounts withdraw acc-1 amount=50"""
    with _calling(topic) as opened:
        found = opened.declared.find_command(command)
        done = opened.execute(
            command,
            stream,
            expected=expected,
            id=command_id,
            actor=actor,
            **found.convert(_arguments(arguments), strict=False),
        )
        types = opened.declared.types.by_class
    told = {
        "events": [{"type": types[type(e)].name, **_plain(e)} for e in done.events],
        "version": done.version,
        "position": done.position,
        "state": _plain(done.state),
        "id": done.id,
        "repeated": done.repeated,
    }
    if as_json:
        print_json(told)
        return
    for event in done.events:
        click.echo(f"{event!r}")
    repeated = ", repeated" if done.repeated else ""
    click.echo(f"{stream} is at version {done.version} ({done.position or 'no events'}{repeated})")


def _arguments(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name or name in found:
            raise UsageError(f"{each!r} is no argument", hint="name=value, each name once")
        found[name] = value
    return found


@events.command()
@click.argument("topic", shell_complete=known_names.events)
@in_project
@json_option
def owners(topic: str, as_json: bool) -> None:
    """Where the owner of each partition listens, and the epoch of its fence."""
    from tailrace.client.event_topics import fences

    with _calling(topic) as opened:
        found = opened.owners()
        count = opened.declared.partitions
        known = fences(opened.log.cluster(timeout=PATIENCE), topic, count)
    rows = [
        {
            "partition": number,
            "owner": found.get(number),
            "epoch": known[number].epoch if number in known else None,
        }
        for number in range(count)
    ]
    print_rows(rows, ["partition", "owner", "epoch"], as_json=as_json)


@events.command()
@click.argument("topic", shell_complete=known_names.events)
@in_project
@json_option
def rebuild(topic: str, as_json: bool) -> None:
    """Read every event and fold every stream again; how long that takes.

    Indexes need no rebuilding by hand: one that does not fit the log or the code is thrown away
    when its partition is opened.
    """
    from tailrace.facts.folding import fold

    with _log() as log:
        found = fold(log, _declared(topic)[topic])
    told = {
        "topic": topic,
        "events": found.events,
        "seconds": round(found.seconds, 3),
        "streams": len(found.streams),
        "foreign": found.foreign,
        "broken": found.broken,
    }
    _keep_measure(topic, told)
    if as_json:
        print_json(told)
    else:
        click.echo(
            f"{found.events} events of {len(found.streams)} streams in {found.seconds:.3f} s, "
            f"{found.foreign} foreign records"
        )
        for stream, why in found.broken.items():
            click.echo(f"  {stream}: {why}")


@events.command()
@click.argument("topic", shell_complete=known_names.events)
@in_project
@json_option
@click.pass_context
def verify(context: click.Context, topic: str, as_json: bool) -> None:
    """Fold every stream from the log alone and compare with what its owner tells."""
    from tailrace.facts.folding import differences, fold

    declared = _declared(topic)[topic]
    with _log() as log:
        folded = fold(log, declared)
        found = dict(differences(log, declared, folded))
    if as_json:
        told = {"topic": topic, "streams": len(folded.streams), "events": folded.events}
        print_json({**told, "differences": found})
    else:
        for stream, why in found.items():
            click.echo(f"{stream}: {why}")
        click.echo(f"{len(folded.streams)} streams, {len(found)} differences")
    if found:
        context.exit(1)


@events.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Also processes with nothing open.")
@in_project
@json_option
def reactions(name: str | None, everything: bool, as_json: bool) -> None:
    """Open processes: commands to send, attempts, timers due, and what is stuck."""
    from tailrace.facts.open_processes import look

    found = _reactions(name)
    with _log() as log:
        rows = [row.as_dict() for each in found.values() for row in look(log, each, all=everything)]
    if not as_json:
        for row in rows:
            row["stuck"] = "stuck" if row["stuck"] else ""
            row["timers"] = ", ".join(
                f"{each['name']} {each['due'][:19]}" for each in row["timers"]
            )
    columns = ["reaction", "process", "stuck", "command", "attempts", "timers", "error"]
    print_rows(rows, columns, as_json=as_json, empty="nothing is open")


def _reactions(name: str | None) -> dict[str, Reaction]:
    import difflib

    from tailrace.project.load import load

    declared = load(Path()).reactions
    if name is None:
        return declared
    if name in declared:
        return {name: declared[name]}
    near = difflib.get_close_matches(name, declared, 1)
    raise UsageError(
        f'the project declares no reaction "{name}"',
        detail=f"it declares {', '.join(declared) or 'none'}",
        hint=f"did you mean {near[0]}?" if near else "@tr.reaction(…)",
    )
