"""`tailrace view …`: look up, list, watch, explain, verify and rebuild views."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tailrace.cli import known_names
from tailrace.cli.output import (
    bootstrap_address,
    json_option,
    log_option,
    print_json,
    print_rows,
    said_option,
    say,
)
from tailrace.errors import TailraceError, UsageError
from tailrace.files import FILES

if TYPE_CHECKING:
    from tailrace.pipelines.ticks.tick_row import Tick
    from tailrace.pipelines.ticks.verification import Verdict
    from tailrace.serving.reader import Views
    from tailrace.serving.remote import RemoteViews


def open_views(address: str | None) -> Views | RemoteViews:
    """The views of a place: a console's HOST:PORT or a project's directory."""
    from tailrace.project.found import settings_of
    from tailrace.serving.connect import views

    if address and ":" in address and not address.startswith((".", "/")):
        return views(address)
    return views(settings_of(address or ".").state_directory)


@click.group()
def view() -> None:
    """Views: look up, watch, explain, compare with Spark, rebuild."""


@view.command("list")
@log_option
@json_option
def list_views(address: str | None, as_json: bool) -> None:
    """Every view: key, number of rows, columns; those being filled, and how far."""
    from tailrace.serving.reader import Views

    fills = _fills(address)
    with open_views(address) as views:
        if isinstance(views, Views):
            with views.snapshot() as snapshot:
                found: list[dict[str, Any]] = [
                    {
                        "name": name,
                        "key": list(snapshot.view(name).info.key),
                        "columns": [list(c) for c in snapshot.view(name).info.columns],
                        "rows": snapshot.count(name),
                        "generation": snapshot.view(name).info.generation,
                        "changed": snapshot.view(name).changed,
                        "position": snapshot.position,
                    }
                    for name in snapshot.names
                ]
        else:
            found = views.describe_all()
    if as_json:
        print_json([{**item, "filling": fills.get(item["name"])} for item in found])
        return
    rows = [
        {
            **item,
            "key": ", ".join(item["key"]) or "(one row)",
            "columns": ", ".join(f"{name} {kind}" for name, kind in item["columns"]),
        }
        for item in found
    ]
    print_rows(rows, ["name", "key", "rows", "columns"], as_json=False, empty="no views yet")
    shown = {item["name"] for item in found}
    for name, words in fills.items():
        click.echo(f"{name}: {words}{'' if name in shown else '; not shown until then'}")


def _fills(address: str | None) -> dict[str, str]:
    """Views that are being filled, in words; none where only a console's address is known."""
    from tailrace.cli.filling import filling
    from tailrace.node.health import status_of
    from tailrace.project.found import settings_of

    if address and ":" in address and not address.startswith((".", "/")):
        return {}
    return filling(status_of(settings_of(address or "."))["parts"])


@view.command()
@click.argument("name", shell_complete=known_names.views)
@click.argument("key", nargs=-1)
@click.option("--at-least", metavar="POSITION", help="Wait until the view has reached it.")
@click.option("--timeout", default=5.0, show_default=True, help="Seconds to wait.")
@log_option
@json_option
@click.pass_context
def get(
    context: click.Context,
    name: str,
    key: tuple[str, ...],
    at_least: str | None,
    timeout: float,
    address: str | None,
    as_json: bool,
) -> None:
    """The row of view NAME under KEY: one value per key column, \\N for NULL.

    A view of one row, such as a total of everything, has no key: give none."""
    from tailrace.serving.keys import read_part

    with open_views(address) as views:
        row = views.get(name, [read_part(part) for part in key], at_least=at_least, timeout=timeout)
    if as_json:
        print_json({"row": row})
    elif row is None:
        click.echo(" ".join(["no row", *key]), err=True)
    else:
        width = max(len(column) for column in row)
        for column, value in row.items():
            click.echo(f"{column.ljust(width)}  {'–' if value is None else value}")
    if row is None:
        context.exit(1)


@view.command()
@click.argument("name", shell_complete=known_names.views)
@click.option("--after", type=int, help="Go on after this tick instead of a snapshot.")
@click.option("--max", "most", type=int, help="Stop after this many changes.")
@log_option
@json_option
def watch(
    name: str, after: int | None, most: int | None, address: str | None, as_json: bool
) -> None:
    """Rows of view NAME, then its changes as they happen."""
    seen = 0
    with open_views(address) as views:
        for event in views.subscribe(name, after=after, idle=1.0):
            if event.kind == "idle":
                continue
            if event.kind == "snapshot":
                for row in event.rows:
                    _line("=", event.tick, row, as_json)
                continue
            for change in event.changes:
                if change.row is None:
                    _line("-", event.tick, change.key, as_json)
                else:
                    _line("+", event.tick, change.row, as_json)
                seen += 1
                if most is not None and seen >= most:
                    return


def _line(sign: str, tick: int, row: Any, as_json: bool) -> None:
    import orjson

    if as_json:
        kind = {"=": "row", "+": "put", "-": "gone"}[sign]
        click.echo(orjson.dumps({"tick": tick, kind: row}))
    else:
        click.echo(f"{tick:>8} {sign} {orjson.dumps(row).decode()}")


@view.command()
@click.argument("name", shell_complete=known_names.views)
@log_option
@json_option
def explain(name: str, address: str | None, as_json: bool) -> None:
    """How view NAME is kept up to date, what its operators keep, what is recomputed and why."""
    from tailrace.project.explain import explain_view
    from tailrace.project.load import load

    project = load(address or ".")
    text = explain_view(project, bootstrap_address(address, reach=False), name)
    words = _fills(address).get(name)
    if as_json:
        print_json({"name": name, "text": text, "filling": words})
    else:
        click.echo(text)
        if words is not None:
            click.echo(f"at present: {words}")


@view.command()
@click.argument("names", nargs=-1, required=True, shell_complete=known_names.views)
@click.option("--hold", is_flag=True, help="Show the new ones only after `tailrace view switch`.")
@click.option("--copy", is_flag=True, help="Only read the served copy again from the changelog.")
@log_option
@said_option
def rebuild(names: tuple[str, ...], hold: bool, copy: bool, address: str | None) -> None:
    """Compute views NAMES again from their inputs, beside the ones in use.

    They are served as they were until the new ones are complete.
    """
    if hold and copy:
        raise UsageError(
            "--hold and --copy do not go together",
            detail="a copy is read again from the same generation: there is nothing to hold",
            hint="leave one of them out",
        )
    directory = _state_directory(address)
    if copy:
        FILES.make_directories(directory / "views")
        FILES.write_whole(directory / "views" / "rebuild", " ".join(names).encode(), shared=True)
        say(_ASKED)
        return
    if (directory / "views").is_dir():
        with open_views(address) as views:
            unknown = [name for name in names if name not in views.names]
            if unknown:
                raise UsageError(
                    f"there is no view {unknown[0]!r} to rebuild",
                    detail=f"Views there are: {', '.join(views.names) or 'none'}.",
                    hint="a view that is declared for the first time is filled by itself",
                )
    for name in names:
        _ask(directory, "build" if hold else "rebuild", name)


_ASKED = "asked; it begins within a second (see `tailrace status`)"


def _ask(directory: Path, action: str, name: str, generation: int | None = None) -> None:
    from tailrace.pipelines.process.requests import ask

    ask(directory, action, name, generation=generation)
    say(_ASKED)


def _state_directory(address: str | None) -> Path:
    from tailrace.project.found import settings_of

    directory: Path = settings_of(address or ".").state_directory
    if not directory.is_dir():
        raise UsageError("this project has not run yet", hint="start it: `tailrace up`")
    return directory


def _is_held(directory: Path, name: str) -> bool:
    from tailrace.pipelines.process.requests import waiting

    return any(request.action == "build" and request.name == name for request in waiting(directory))


def _last_tick(address: str | None) -> Tick:
    """The last committed tick of the project; an error before the first."""
    from tailrace.pipelines.reading.reader import LogReader
    from tailrace.pipelines.ticks.driver import last_row
    from tailrace.project.found import settings_of

    name = settings_of(address or ".").project.name
    with LogReader(bootstrap_address(address)) as reader:
        last = last_row(reader, name)
    if last is None:
        raise UsageError(
            f"project {name!r} has not ticked yet",
            detail="Its views have no generation.",
            hint="start it: `tailrace up`",
        )
    return last


def _known(last: Tick, name: str) -> None:
    """Refuse the name of a view that the project does not have."""
    if name not in last.views:
        raise _unknown(name, last.views)


def _unknown(name: str, names: Iterable[str]) -> UsageError:
    known = sorted(names)
    near = difflib.get_close_matches(name, known, 1)
    return UsageError(
        f"there is no view {name!r}",
        detail=f"Views there are: {', '.join(known) or 'none'}.",
        hint=f"did you mean {near[0]!r}?" if near else "one that is being filled is not there yet",
    )


@view.command()
@click.argument("name", shell_complete=known_names.views)
@log_option
@json_option
def generations(name: str, address: str | None, as_json: bool) -> None:
    """The generations of view NAME that are kept, and which is shown."""
    last = _last_tick(address)
    shown = last.views.get(name)
    kept = {g.info.topic: g.info for g in last.others.get(name, ())}
    if shown is not None:
        kept[shown.topic] = shown
    live = last.written(name)
    rows = [
        {
            "generation": info.generation,
            "topic": info.topic,
            "shown": shown is not None and info.topic == shown.topic,
            "kept up to date": name in last.views and live is not None and info.topic == live.topic,
        }
        for info in sorted(kept.values(), key=lambda info: info.generation)
    ]
    if not rows:
        _known(last, name)
    columns = ["generation", "topic", "shown", "kept up to date"]
    print_rows(rows, columns, as_json=as_json, empty=f"nothing is known of view {name!r}")


@view.command()
@click.argument("name", shell_complete=known_names.views)
@log_option
@said_option
def switch(name: str, address: str | None) -> None:
    """Show the newest generation of view NAME: one that was held, or rolled back."""
    directory, last = _state_directory(address), _last_tick(address)
    _known(last, name)
    if not _is_held(directory, name) and name not in last.live:
        raise UsageError(
            f"there is nothing to switch view {name!r} to",
            detail="No generation is held beside it, and it is not rolled back.",
            hint=f"build one: `tailrace view rebuild --hold {name}`",
        )
    _ask(directory, "switch", name)


@view.command()
@click.argument("name", shell_complete=known_names.views)
@log_option
@said_option
def rollback(name: str, address: str | None) -> None:
    """Show the generation of view NAME before the present one, as it last was.

    It does not follow the tables any more; the present one does, unseen, until `tailrace view
    switch NAME` or until the view is rebuilt.
    """
    directory, last = _state_directory(address), _last_tick(address)
    _known(last, name)
    if last.previous(name) is None:
        raise UsageError(
            f"view {name!r} has no earlier generation to show",
            detail="Earlier ones are kept from a rebuild or a change of SQL until they are dropped.",
            hint=f"see `tailrace view generations {name}`",
        )
    _ask(directory, "rollback", name, last.views[name].generation)


@view.command()
@click.argument("name", shell_complete=known_names.views)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@log_option
@said_option
def drop(name: str, yes: bool, address: str | None) -> None:
    """Delete the generations of view NAME that are not in use.

    Of a view that is no longer declared, that is all of them. A generation that is held
    beside the view is given up.
    """
    directory, last = _state_directory(address), _last_tick(address)
    topics = last.droppable(name)
    if _is_held(directory, name):
        topics.append("of the generation that is held")
    if not topics:
        known = name in last.views
        raise UsageError(
            f"view {name!r} has nothing to drop",
            detail="What is kept of it is in use." if known else "Nothing of it is kept.",
            hint="take the view out of the project and let it tick once, then drop it"
            if known
            else "`tailrace view list` shows the views there are",
        )
    if not yes:
        click.confirm(f"delete the topics {', '.join(topics)}?", abort=True, err=True)
    _ask(directory, "drop", name)


@view.command()
@click.argument("name", shell_complete=known_names.views)
@click.argument("other", required=False)
@click.option("--max", "most", default=20, show_default=True, help="Rows to print of each side.")
@log_option
@json_option
@click.pass_context
def diff(
    context: click.Context,
    name: str,
    other: str | None,
    most: int,
    address: str | None,
    as_json: bool,
) -> None:
    """Compare view NAME with OTHER (default: the generation being built beside it)."""
    with open_views(address) as views:
        names = views.names
        for one in (name, other):
            if one is not None and one not in names:
                raise _unknown(one, names)
        if other is None:
            other = next((n for n in names if n.startswith(f"{name}@")), None)
            if other is None:
                raise UsageError(
                    f"nothing is being built beside {name!r}",
                    detail=f"Views there are: {', '.join(names)}.",
                    hint=f"`tailrace view rebuild --hold {name}`, or name a view to compare with",
                )
        # One question for both sides: between two of them a tick may come.
        one_sided = (
            'SELECT \'{0}\' AS __side, * FROM (SELECT * FROM "{0}" EXCEPT ALL SELECT * FROM "{1}")'
        )
        found = views.sql(
            f"{one_sided.format(name, other)} UNION ALL {one_sided.format(other, name)}"
        )
    sides: dict[str, list[dict[str, Any]]] = {name: [], other: []}
    for row in found.rows:
        sides[row.pop("__side")].append(row)
    if as_json:
        print_json({f"only in {side}": rows[:most] for side, rows in sides.items()})
    else:
        for side, rows in sides.items():
            click.echo(f"{len(rows)} rows only in {side}")
            for row in rows[:most]:
                click.echo(f"  {row}")
    if found.rows:
        context.exit(1)


@view.command()
@click.argument("names", nargs=-1, shell_complete=known_names.views)
@click.option("--max", "most", default=20, show_default=True, help="Differing keys to list.")
@log_option
@json_option
@click.pass_context
def verify(
    context: click.Context, names: tuple[str, ...], most: int, address: str | None, as_json: bool
) -> None:
    """Compare view NAMES, or all views, with Spark's own batch answer to their SQL.

    The tables are read again up to where the last tick read them, and Spark, started here for
    this question alone, gets the SQL as it is written: what it answers is compared with the view
    as of that tick, key by key. Exits with 1 if anything differs, or cannot be compared.
    """
    from tailrace.project.load import load
    from tailrace.project.verify import verify_views

    project = load(address or ".")
    for name in names:
        if name not in project.views:
            raise _unknown(name, project.views)
    bootstrap = bootstrap_address(address)
    found: list[dict[str, Any]] = []
    for name, verdict in verify_views(project, bootstrap, names or [*project.views], most=most):
        if not isinstance(verdict, TailraceError):
            found.append(_verdict(verdict))
        elif len(names) == 1:
            raise verdict
        else:
            found.append({"view": name, "error": verdict.as_dict(), "equal": None})
    if as_json:
        print_json(found[0] if len(names) == 1 else found)
    else:
        for one in found:
            click.echo("\n".join(_judged(one)))
    if not all(one["equal"] for one in found):
        context.exit(1)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "view": verdict.view,
        "tick": verdict.tick,
        "positions": dict(verdict.positions),
        "equal": verdict.equal,
        "rows": verdict.rows,
        "spark_rows": verdict.spark_rows,
        "differing": verdict.differing,
        "differences": [
            {"key": one.key, "view": one.view, "spark": one.spark, "times": one.times}
            for one in verdict.differences
        ],
        "types": [
            {"column": name, "view": ours, "spark": theirs} for name, ours, theirs in verdict.types
        ],
    }


def _judged(one: Mapping[str, Any]) -> Iterator[str]:
    """A verdict in words."""
    if "error" in one:
        yield f"{one['view']}: not compared\n  {one['error']['error']}"
        if one["error"]["detail"]:
            yield f"  {one['error']['detail']}"
        return
    rows = counted(one["rows"], "row")
    if one["equal"]:
        yield f"{one['view']}: equal to Spark's answer at tick {one['tick']}, {rows}"
        return
    yield (
        f"{one['view']}: {counted(one['differing'], 'key')} of {rows} differ at tick {one['tick']}"
        f" (Spark has {counted(one['spark_rows'], 'row')})"
    )
    for kind in one["types"]:
        yield f"  column {kind['column']} is {kind['view']}, in Spark {kind['spark']}"
    for difference in one["differences"]:
        yield f"  {_json(difference['key'])}"
        yield f"    view   {_json(difference['view']) if difference['view'] is not None else 'no row'}"
        often = f" ({difference['times']} times)" if difference["times"] > 1 else ""
        yield f"    spark  {_json(difference['spark']) + often if difference['spark'] is not None else 'no row'}"
    if one["differing"] > len(one["differences"]):
        yield f"  … {one['differing'] - len(one['differences'])} more: --max"


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _json(value: Any) -> str:
    import orjson

    return orjson.dumps(value).decode()
