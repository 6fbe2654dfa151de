"""`tailrace percolate …`: stored queries, what each costs, and which match an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import orjson

from tailrace.cli import known_names
from tailrace.cli.output import (
    bootstrap_address,
    json_option,
    log_option,
    print_json,
    print_rows,
)
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.project.load import Project


def _load(address: str | None) -> Project:
    from tailrace.project.load import load

    return load(address or ".")


@click.group()
def percolate() -> None:
    """Stored queries: what they cost, which match an event."""


@percolate.command("list")
@click.argument("name", required=False, shell_complete=known_names.percolations)
@click.option("--documents", default=1_000, show_default=True, help="Events to try them against.")
@click.option("--limit", default=20, show_default=True, help="Queries to show of each.")
@log_option
@json_option
def list_percolations(
    name: str | None, documents: int, limit: int, address: str | None, as_json: bool
) -> None:
    """Stored queries of every percolation (or of NAME), dearest first.

    The queries in force are tried against the last events of the stream: how many were
    candidates, how many matched, and what that cost.
    """
    from tailrace.project import percolations
    from tailrace.telemetry.part import read_reports

    project = _load(address)
    bootstrap = bootstrap_address(address, reach=False)
    reports = read_reports(project.settings.state_directory)
    about = {one["name"]: one for one in percolations.list_percolations(project, reports)}
    names = list(about) if name is None else [name]
    found = []
    for one in names:
        shown = percolations.show_percolation(project, bootstrap, one, documents)
        found.append({**about[one], **shown, "queries": shown["queries"][:limit]})
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no percolations are declared")
    for one in found:
        count, tried = one["count"], one["documents"]
        click.echo(
            f"{one['name']}: {one['state']}, {count} {'query' if count == 1 else 'queries'} of "
            f"{one['queries_of']} over {one['reads']}, tick {one['tick']}, {one['dead']} dead "
            f"{'letter' if one['dead'] == 1 else 'letters'}"
        )
        if one["error"]:
            click.echo(f"  {one['error']['error']}")
        if count:
            click.echo(f"tried against the last {tried} {'event' if tried == 1 else 'events'}:")
            columns = ["query_id", "candidates", "matches", "micros", "query_version", "query"]
            print_rows(one["queries"], columns, as_json=False, empty="")


@percolate.command("test")
@click.argument("name", shell_complete=known_names.percolations)
@click.option("--event", required=True, help="The event: a JSON object of the stream's columns.")
@click.option("--query", help="Say of the query with this id what it has and what it lacks.")
@log_option
@json_option
def try_event(name: str, event: str, query: str | None, address: str | None, as_json: bool) -> None:
    """Which stored queries of NAME match an event, and why. Nothing is written."""
    from tailrace.project import percolations

    try:
        given = orjson.loads(event)
    except orjson.JSONDecodeError as reason:
        raise UsageError(
            "--event is no JSON", detail=str(reason), hint='--event \'{"title": "red boat"}\''
        ) from None
    bootstrap = bootstrap_address(address, reach=False)
    found = percolations.try_event(_load(address), bootstrap, name, given, query)
    if as_json:
        print_json(found)
        return
    rows = [{**one, "because": ", ".join(one["because"])} for one in found["matches"]]
    columns = ["query_id", "query", "because"]
    print_rows(rows, columns, as_json=False, empty=f"none of {found['queries']} queries matches")
    if len(rows) < found["count"]:
        click.echo(f"and {found['count'] - len(rows)} more")
    if query is not None:
        one = found["query"]
        click.echo(f"query {one['query_id']} {'matches' if one['matches'] else 'does not match'}")
        for word in ("has", "lacks"):
            click.echo(f"  {word}: {', '.join(one[word]) or 'nothing'}")


@percolate.command()
@click.argument("name", shell_complete=known_names.percolations)
@log_option
@json_option
def explain(name: str, address: str | None, as_json: bool) -> None:
    """How percolation NAME is kept, and the queries that are looked at for every event."""
    from tailrace.project import percolations

    text = percolations.explain_percolation(
        _load(address), bootstrap_address(address, reach=False), name
    )
    if as_json:
        print_json({"name": name, "text": text})
        return
    click.echo(text)
