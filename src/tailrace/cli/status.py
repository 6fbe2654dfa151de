"""`tailrace status`: every part of a running project, from outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tailrace.cli.filling import filling, working
from tailrace.cli.output import (
    directory_argument,
    json_option,
    print_json,
    print_rows,
    render_in_full,
)
from tailrace.errors import in_one_line


def _last_error(part: Mapping[str, Any]) -> str | None:
    """The error in one line; of a part that starts it is that of the process before."""
    error = part.get("error")
    if not error:
        return None
    line = in_one_line(error)["error"]
    return f"before this start: {line}" if part["state"] == "starting" else line


@click.command()
@directory_argument()
@click.option("--verbose", is_flag=True, help="Show each error in full, with its traceback.")
@json_option
def status(directory: Path, verbose: bool, as_json: bool) -> int:
    """Show every part: running, lagging or stopped, freshness, lag, last error.

    Below it, views that are being filled, with how far they are, and ticks that take long."""
    from tailrace.clock import SYSTEM
    from tailrace.node.health import status_of
    from tailrace.project.found import settings_of

    found = status_of(settings_of(directory))
    if as_json:
        print_json(found)
    else:
        rows = [
            {
                "part": f"{part['kind']} {part['name']}",
                "state": part["state"],
                "pid": part.get("pid"),
                "freshness ms": part.get("freshness_ms"),
                "lag": part.get("lag"),
                "last error": _last_error(part),
            }
            for part in found["parts"]
        ]
        columns = ["part", "state", "pid", "freshness ms", "lag", "last error"]
        print_rows(rows, columns, as_json=False, empty="nothing runs here; `tailrace up` starts it")
        for part in found["parts"] if verbose else ():
            if part.get("error"):
                click.echo(f"\n{part['kind']} {part['name']}")
                click.echo(render_in_full(in_one_line(part["error"])))
        for part in found["parts"]:
            if part["kind"] == "pipelines" and part.get("dead"):
                many = "records" if part["dead"] != 1 else "record"
                click.echo(
                    f"{part['dead']} {many} of the views' tables could not be read:"
                    " `tailrace pipeline dead-letters VIEW` says why"
                )
        for line in working(found["parts"], SYSTEM.wall_ms()):
            click.echo(line)
        for name, words in filling(found["parts"]).items():
            click.echo(f"view {name}: {words}")
    return 0 if found["ready"] else 1
