"""`tailrace view …`: look up, list, watch, explain and rebuild views."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tailrace.cli.output import bootstrap_address, json_option, log_option, print_json, print_rows
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.views.reader import Views
    from tailrace.views.remote import RemoteViews


def open_views(address: str | None) -> Views | RemoteViews:
    """The views behind `--log`: a console's HOST:PORT or a project's directory."""
    from tailrace import config
    from tailrace.views.connect import views

    if address and ":" in address and not address.startswith((".", "/")):
        return views(address)
    return views(config.load(address or ".").state_directory)


@click.group()
def view() -> None:
    """Views: look up, watch, explain, rebuild."""


@view.command("list")
@log_option
@json_option
def list_views(address: str | None, as_json: bool) -> None:
    """Every view: key, number of rows, columns."""
    from tailrace.views.reader import Views

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
        print_json(found)
        return
    rows = [
        {
            **item,
            "key": ", ".join(item["key"]) or "(bag)",
            "columns": ", ".join(f"{name} {kind}" for name, kind in item["columns"]),
        }
        for item in found
    ]
    print_rows(rows, ["name", "key", "rows", "columns"], as_json=False, empty="no views yet")


@view.command()
@click.argument("name")
@click.argument("key", nargs=-1, required=True)
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
    """The row of view NAME under KEY (one value per key column)."""
    with open_views(address) as views:
        row = views.get(name, list(key), at_least=at_least, timeout=timeout)
    if as_json:
        print_json({"row": row})
    elif row is None:
        click.echo(f"no row {' '.join(key)}", err=True)
    else:
        width = max(len(column) for column in row)
        for column, value in row.items():
            click.echo(f"{column.ljust(width)}  {'–' if value is None else value}")
    if row is None:
        context.exit(1)


@view.command()
@click.argument("name")
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
@click.argument("name")
@log_option
@json_option
def explain(name: str, address: str | None, as_json: bool) -> None:
    """How view NAME is kept up to date, and why not otherwise."""
    from tailrace.project.explain import explain_view
    from tailrace.project.load import load

    project = load(address or ".")
    text = explain_view(project, bootstrap_address(address), name)
    if as_json:
        print_json({"name": name, "text": text})
    else:
        click.echo(text)


@view.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--copy", is_flag=True, help="Only read the served copy again from the changelog.")
@log_option
def rebuild(names: tuple[str, ...], copy: bool, address: str | None) -> None:
    """Compute views NAMES again from their inputs, beside the ones in use.

    They are served as they were until the new ones are complete.
    """
    from tailrace import config
    from tailrace.pipelines.requests import ask

    directory: Path = config.load(address or ".").state_directory
    if not directory.is_dir():
        raise UsageError("this project has not run yet", hint="start it: `tailrace up`")
    if copy:
        (directory / "views").mkdir(exist_ok=True)
        draft = directory / "views" / "rebuild.tmp"
        draft.write_text(" ".join(names))
        draft.replace(directory / "views" / "rebuild")
    else:
        for name in names:
            ask(directory, "rebuild", name)
    click.echo("asked; it begins within a second (see `tailrace status`)")


@view.command()
@click.argument("name")
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
        if other is None:
            other = next((n for n in names if n.startswith(f"{name}@")), None)
            if other is None:
                raise UsageError(
                    f"nothing is being built beside {name!r}",
                    hint=f"name another view to compare with: {', '.join(names)}",
                )
        sides = {
            left: views.sql(f'SELECT * FROM "{left}" EXCEPT ALL SELECT * FROM "{right}"')
            for left, right in ((name, other), (other, name))
        }
    if as_json:
        print_json({f"only in {side}": page.rows[:most] for side, page in sides.items()})
    else:
        for side, page in sides.items():
            click.echo(f"{len(page.rows)} rows only in {side}")
            for row in page.rows[:most]:
                click.echo(f"  {row}")
    if any(page.rows for page in sides.values()):
        context.exit(1)
