"""`tailrace source …`: the databases a project captures."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TextIO

import click

from tailrace.cli import known_names
from tailrace.cli.output import json_option, log_option, print_json, print_rows, said_option, say
from tailrace.modes import make_private

if TYPE_CHECKING:
    from tailrace.project.load import Project
    from tailrace.sources.declare import Source
    from tailrace.sources.postgres.ownership import Ownership


def _load(address: str | None) -> Project:
    from tailrace.project.load import load

    project = load(address or ".")
    # Relative paths in declarations are the project's, wherever the command is typed.
    click.get_current_context().with_resource(contextlib.chdir(project.directory))
    return project


def _find(project: Project, name: str) -> Source:
    from tailrace.errors import UsageError

    found: Any = project.sources.get(name)
    if found is None:
        raise UsageError(
            f"no source {name!r}",
            detail=f"Declared are: {', '.join(project.sources) or 'none'}.",
            hint="see `tailrace source list`",
        )
    declared: Source = found
    return declared


def _reports(project: Project, kind: str = "source") -> dict[str, dict[str, Any]]:
    from tailrace.telemetry.part import read_reports

    return {
        report["name"]: report
        for report in read_reports(project.settings.state_directory)
        if report.get("kind") == kind
    }


@click.group()
def source() -> None:
    """Databases captured into the log."""


@source.command("list")
@log_option
@json_option
def list_sources(address: str | None, as_json: bool) -> None:
    """Every declared source and how it is."""
    from tailrace.sources.control import paused
    from tailrace.sources.declare import patterns

    project = _load(address)
    reports = _reports(project)
    rows = []
    for name, declared in project.sources.items():
        report = reports.get(name, {})
        stopped = paused(project.settings.state_directory, name)
        rows.append(
            {
                "name": name,
                "kind": declared.kind,
                "tables": ", ".join(patterns(declared)),
                "state": "paused" if stopped else report.get("state", "not running"),
                "position": report.get("position"),
                "lag": report.get("lag"),
            }
        )
    print_rows(
        rows, ["name", "kind", "tables", "state", "position", "lag"], as_json=as_json,
        empty="no source is declared",
    )  # fmt: skip


@source.command()
@click.argument("name", shell_complete=known_names.sources)
@log_option
@json_option
def status(name: str, address: str | None, as_json: bool) -> None:
    """One source: position, lag, copies, last error."""
    project = _load(address)
    _find(project, name)
    report = _reports(project).get(name)
    if report is None:
        click.echo(f"{name} has not run yet" if not as_json else "null")
        raise SystemExit(1)
    if as_json:
        print_json(report)
    else:
        for key, value in report.items():
            if key != "error":
                click.echo(f"{key:<18} {_shown(value)}")
        if isinstance(report.get("error"), dict):
            from tailrace.errors import render

            click.echo(render(report["error"]))
    if report.get("state") not in ("running", "starting"):
        raise SystemExit(1)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or "–"
    return "–" if value is None or value == {} else str(value)


@source.command()
@click.argument("name", shell_complete=known_names.sources)
@log_option
@json_option
def doctor(name: str, address: str | None, as_json: bool) -> None:
    """What stands in the way of capture, and the SQL that repairs it."""
    from dataclasses import asdict

    from tailrace.sources.doctor import examine

    project = _load(address)
    declared, owned, known = _with_names(project, _find(project, name))
    findings = list(examine(declared, owned, known=known))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(finding.render())
    if any(finding.state == "bad" for finding in findings):
        raise SystemExit(1)


def _with_names(project: Project, declared: Source) -> tuple[Source, Ownership | None, bool]:
    """A source with the names of slot and publication that it uses, or will use; what it owns;
    and whether those names are known to be its own."""
    from tailrace.sources.declare import Postgres

    if not isinstance(declared, Postgres):
        return declared, None, True
    from tailrace.sources.postgres.ownership import resolve_names

    settings = project.settings
    recorded = _reports(project).get(declared.name, {}).get("owns")
    named, owned = resolve_names(
        declared, settings.project.name, settings.state_directory, recorded, resumed=False
    )
    return named, owned, recorded is not None or declared.slot is not None


@source.command()
@click.argument("name", shell_complete=known_names.sources)
@click.option("--table", default=None, help="Only this table (default: all).")
@click.option("--where", default=None, help="Only rows that fulfil this SQL condition.")
@click.option("--key", "given", multiple=True, help="Only the row with this key; again for more.")
@click.option(
    "--keys", "file", type=click.File("r"), default=None, help="A file with one key a line, or -."
)
@log_option
@said_option
def snapshot(
    name: str, table: str | None, where: str | None, given: tuple[str, ...],
    file: TextIO | None, address: str | None,
) -> None:  # fmt: skip
    """Copy tables again while their changes go on streaming.

    A key is a value, or a JSON object by column name where the key has several columns. A
    given key that the table no longer has becomes a delete.
    """
    from tailrace.sources.control import ask_for_snapshot

    declared = _find(_load(address), name)
    keys = None
    if given or file is not None:
        lines = [*given, *([] if file is None else file.read().splitlines())]
        keys = [_key(line) for line in lines if line.strip()]
    ask_for_snapshot(declared, table, where, keys)
    what = table or "every table"
    if keys is not None:
        what = f"{len(keys)} rows of {table}"
    say(f"asked for a copy of {what}; see `tailrace source status {name}`")


def _key(text: str) -> object:
    """A key as it was typed: JSON, or else the text itself."""
    import json

    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(found, (list, bool)) or found is None else found


@source.command()
@click.argument("name", shell_complete=known_names.sources)
@click.argument("statement")
@log_option
@said_option
def alter(name: str, statement: str, address: str | None) -> None:
    """Change a table of an SQLite source: ALTER TABLE … DROP COLUMN and the like.

    SQLite refuses to drop a column that a trigger names; here our triggers are taken off and
    put back in the transaction that changes the table, so that no change is missed.
    """
    from tailrace.errors import UsageError
    from tailrace.sources.declare import SQLite
    from tailrace.sources.sqlite.change_table import alter as change

    declared = _find(_load(address), name)
    if not isinstance(declared, SQLite):
        raise UsageError(
            f"{name} is no SQLite source",
            hint="run the statement in the database; nothing is in its way",
        )
    from tailrace.config import resolve

    change(resolve(declared.path), statement)
    say("done; rows from here on have the new form")


@source.command()
@click.argument("name", shell_complete=known_names.sources)
@log_option
@said_option
def pause(name: str, address: str | None) -> None:
    """Stop capturing until `resume`. The database keeps what is not read meanwhile."""
    from tailrace.sources.control import pause_path
    from tailrace.sources.declare import MySQL, SQLite

    project = _load(address)
    declared = _find(project, name)
    path = pause_path(project.settings.state_directory, name)
    make_private(path.parent)
    path.touch()
    if isinstance(declared, SQLite):
        kept = "its changes stay in its change table"
    elif isinstance(declared, MySQL):
        kept = "its server keeps the binlog for as long as it is set to"
    else:
        kept = "its slot keeps WAL"
    say(f"{name} pauses; {kept} until `tailrace source resume {name}`")


@source.command()
@click.argument("name", shell_complete=known_names.sources)
@log_option
@said_option
def resume(name: str, address: str | None) -> None:
    """Go on capturing where the log ends."""
    from tailrace.sources.control import pause_path

    project = _load(address)
    _find(project, name)
    pause_path(project.settings.state_directory, name).unlink(missing_ok=True)
    say(f"{name} goes on")


@source.command()
@click.argument("name", shell_complete=known_names.sources)
@click.option("--yes", is_flag=True, help="Do not ask.")
@log_option
@said_option
def drop(name: str, yes: bool, address: str | None) -> None:
    """Remove from the database what a source made there.

    Postgres: the replication slot, the publication and, with the last source of the database,
    the event trigger. SQLite: the triggers and the change table. MySQL: the table of requests. A
    webhook: the hook at its provider. The log keeps its topics. The source must not run; started again
    it makes them again and compares every table.
    """
    from tailrace.errors import UsageError
    from tailrace.node.processes import running
    from tailrace.sources.edges.declare import Webhook
    from tailrace.sources.removal import remove, remove_hook

    project = _load(address)
    edge = project.edges.get(name)
    hooked = edge if isinstance(edge, Webhook) else None
    declared = None if hooked is not None else _find(project, name)
    report = _reports(project, "source" if hooked is None else "edge").get(name, {})
    if report.get("state") in ("starting", "running", "lagging") and running(report["pid"]):
        raise UsageError(
            f"source {name!r} runs",
            hint="stop the project"
            + ("" if hooked else f", or `tailrace source pause {name}`,")
            + " and try again",
        )
    where = "in its database" if hooked is None else "at its provider"
    if not yes:
        click.confirm(f"remove what {name} made {where}?", abort=True)
    directory = project.settings.state_directory
    if hooked is not None:
        found = remove_hook(hooked, directory)
    else:
        assert declared is not None
        found = remove(declared, project.settings.project.name, directory, report.get("owns"))
    gone = False
    for one in found:
        gone = True
        say(f"dropped {one}")  # at once: what comes after it may fail
    if not gone:
        say(f"{name} has left nothing {where}")
