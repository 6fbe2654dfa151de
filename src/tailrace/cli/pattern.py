"""`tailrace pattern …`: what patterns there are, what waits in them, how they are kept."""

from __future__ import annotations

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
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.project.load import Project


def _load(address: str | None) -> Project:
    from tailrace.project.load import load

    return load(address or ".")


@click.group()
def pattern() -> None:
    """Patterns of events: steps, partial matches, how they are kept."""


@pattern.command("list")
@log_option
@json_option
def list_patterns(address: str | None, as_json: bool) -> None:
    """Every pattern: what it reads, its watermark, late rows and dead letters."""
    from tailrace.project import patterns
    from tailrace.telemetry.part import read_reports

    project = _load(address)
    found = patterns.list_patterns(project, read_reports(project.settings.state_directory))
    if as_json:
        print_json(found)
        return
    rows = [{**one, "key": ", ".join(one["key"])} for one in found]
    columns = ["name", "state", "reads", "key", "match", "watermark", "late", "dead"]
    print_rows(rows, columns, as_json=False, empty="no patterns are declared")
    for one in found:
        if one["error"]:
            click.echo(f"{one['name']}: {one['error']['error']}")


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@click.option("--key", multiple=True, help="Partial matches of this key; one value a column.")
@log_option
@json_option
def show(name: str, key: tuple[str, ...], address: str | None, as_json: bool) -> None:
    """The steps of pattern NAME, and how many partial matches have come to each."""
    from tailrace.project import patterns

    found = patterns.show_pattern(
        _load(address), bootstrap_address(address, reach=False), name, key or None
    )
    if as_json:
        print_json(found)
        return
    behind: dict[str, list[str]] = {}
    for giver, taker in found["edges"]:
        behind.setdefault(giver, []).append(taker)
    rows = [
        {"step": one["id"], "open": one["open"], "then": ", ".join(behind.get(one["id"], []))}
        for one in found["steps"]
    ]
    print_rows(rows, ["step", "open", "then"], as_json=False, empty="no steps")
    told = f"{found['matches']} matches, {found['timeouts']} timed out"
    click.echo(f"{told}, {found['retracted']} taken back; watermark {found['watermark'] or 'none'}")
    if found["oldest_open"]:
        click.echo(f"the oldest partial match began at {found['oldest_open']}")
    for partial in found.get("partials", ()):
        click.echo(f"since {partial['began_at']}, at {partial['reached']}:")
        print_rows(
            [
                {"variable": row["variable"], "at": row["at"], **row["row"]}
                for row in partial["rows"]
            ],
            list(dict.fromkeys(("variable", "at", *partial["rows"][0]["row"]))),
            as_json=False,
            empty="",
        )


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@log_option
@json_option
def explain(name: str, address: str | None, as_json: bool) -> None:
    """How pattern NAME is kept: order, watermark, late rows, operators."""
    from tailrace.project import patterns

    text = patterns.explain_pattern(_load(address), bootstrap_address(address, reach=False), name)
    if as_json:
        print_json({"name": name, "text": text})
        return
    click.echo(text)


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@log_option
@json_option
def builds(name: str, address: str | None, as_json: bool) -> None:
    """The builds of pattern NAME: the one that is shown, and the one beside it."""
    from tailrace.project import patterns

    found = patterns.known_builds(_load(address), bootstrap_address(address, reach=False), name)
    rows = patterns.builds_of(found, name)
    columns = ["generation", "topic", "shown", "waits_for", "tick", "match"]
    print_rows(rows, columns, as_json=as_json, empty="no builds")


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@click.option("--hold", is_flag=True, help="Show the new one only after `tailrace pattern switch`.")
@click.option(
    "--from", "begin", default="", metavar="PLACE",
    help="Begin at `earliest`, offsets (0:120,1:90) or a time; without it where it first began.",
)  # fmt: skip
@log_option
@said_option
def rebuild(name: str, hold: bool, begin: str, address: str | None) -> None:
    """Build pattern NAME, as it is declared now, beside the one that is shown.

    The shown one goes on until the new one has read as much. Asked for while the project
    is stopped, it is done when `tailrace up` starts.
    """
    from tailrace.pipelines.ticks.pattern_builds import is_beginning

    if begin and not is_beginning(begin):
        raise UsageError(
            f"{begin!r} is no place to begin",
            hint="--from earliest, --from 0:120,1:90 or --from 2026-03-01T00:00:00Z",
        )
    project = _load(address)
    if name not in project.patterns and name not in project.percolations:
        listed = ", ".join([*project.patterns, *project.percolations]) or "none"
        raise UsageError(f"there is no pattern {name!r}", hint=f"there are: {listed}")
    _ask(project, "build" if hold else "rebuild", name, begin=begin)


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@log_option
@said_option
def switch(name: str, address: str | None) -> None:
    """Show the newer build of pattern NAME: one that was held, or rolled back."""
    _exchange(name, address, newer=True)


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@log_option
@said_option
def rollback(name: str, address: str | None) -> None:
    """Show the older build of pattern NAME again; it has been kept up to date.

    What the newer one has reported stays in the topic.
    """
    _exchange(name, address, newer=False)


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@log_option
@said_option
def drop(name: str, yes: bool, address: str | None) -> None:
    """Delete the build of pattern NAME that is not shown, with its topics and state."""
    project, beside, _ = _beside(name, address)
    if not yes:
        click.confirm(f"delete the topic {beside['topic']} and its state?", abort=True, err=True)
    _ask(project, "drop", name)


@pattern.command()
@click.argument("name", shell_complete=known_names.patterns)
@click.option("--max", "most", default=20, show_default=True, help="Matches to print of each side.")
@log_option
@json_option
@click.pass_context
def diff(context: click.Context, name: str, most: int, address: str | None, as_json: bool) -> None:
    """Compare what the two builds of pattern NAME have found. Exits with 1 if it differs."""
    import orjson

    from tailrace.project import patterns

    found = patterns.compare_builds(_load(address), bootstrap_address(address, reach=False), name)
    if as_json:
        print_json(found)
    else:
        for side, matches in found.items():
            click.echo(
                f"only the {'one shown' if side == 'shown' else 'one beside'}: {len(matches)}"
            )
            for match in matches[:most]:
                click.echo(f"  {orjson.dumps(match).decode()}")
    if any(found.values()):
        context.exit(1)


def _beside(name: str, address: str | None) -> tuple[Project, dict[str, Any], dict[str, Any]]:
    """The project, the build of a pattern that is not shown, and the one that is."""
    from tailrace.project import patterns

    project = _load(address)
    found = patterns.builds_of(
        patterns.known_builds(project, bootstrap_address(address, reach=False), name), name
    )
    if len(found) < 2:
        raise UsageError(
            f"nothing is built beside {name!r}", hint=f"`tailrace pattern rebuild --hold {name}`"
        )
    return project, found[1], found[0]


def _exchange(name: str, address: str | None, *, newer: bool) -> None:
    project, beside, shown = _beside(name, address)
    if (beside["generation"] > shown["generation"]) != newer:
        raise UsageError(
            f"the build beside {name!r} is {'older' if newer else 'newer'} than the shown one",
            hint=f"`tailrace pattern {'rollback' if newer else 'switch'} {name}`",
        )
    _ask(project, "switch" if newer else "rollback", name, generation=shown["generation"])


def _ask(
    project: Project, action: str, name: str, *, generation: int | None = None, begin: str = ""
) -> None:
    from tailrace.pipelines.process.requests import ask

    directory = project.settings.state_directory
    if not directory.is_dir():
        raise UsageError("this project has not run yet", hint="start it: `tailrace up`")
    ask(directory / "patterns", action, name, generation=generation, begin=begin)
    say("asked; it begins within a second, or when `tailrace up` starts")
