"""`tailrace pattern …`: what patterns there are, what waits in them, how they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tailrace.cli import known_names
from tailrace.cli.output import (
    bootstrap_address,
    json_option,
    log_option,
    print_json,
    print_rows,
)

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
