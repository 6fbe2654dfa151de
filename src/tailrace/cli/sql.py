"""`tailrace sql "SELECT …"`: ask the views, all at one tick."""

from __future__ import annotations

import click

from tailrace.cli.output import json_option, log_option, print_json, print_rows
from tailrace.cli.view import open_views


@click.command()
@click.argument("query")
@click.option("--at-least", metavar="POSITION", help="Wait until the views have reached it.")
@click.option("--timeout", default=5.0, show_default=True, help="Seconds to wait.")
@log_option
@json_option
def sql(
    query: str, at_least: str | None, timeout: float, address: str | None, as_json: bool
) -> None:
    """Query the project's views in one consistent tick (DuckDB's dialect, read-only)."""
    with open_views(address) as views:
        page = views.sql(query, at_least=at_least, timeout=timeout)
    if as_json:
        print_json({"rows": page.rows, "next": page.next, "position": page.position})
        return
    columns = list(page.rows[0]) if page.rows else []
    print_rows(page.rows, columns, as_json=False, empty="no rows")
    click.echo(f"at {page.position}", err=True)
