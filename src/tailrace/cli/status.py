"""`tailrace status`: every part of a running project, from outside."""

from __future__ import annotations

from pathlib import Path

import click

from tailrace.cli.filling import filling, working
from tailrace.cli.output import json_option, print_json, print_rows


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".")
@json_option
def status(directory: Path, as_json: bool) -> int:
    """Show every part: running, lagging or stopped, freshness, lag, last error.

    Views that are being filled are told below, with how far they are, and a tick that takes long."""
    from tailrace import config
    from tailrace.clock import SYSTEM
    from tailrace.node.health import status_of

    found = status_of(config.load(directory))
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
                "last error": (part.get("error") or {}).get("error"),
            }
            for part in found["parts"]
        ]
        columns = ["part", "state", "pid", "freshness ms", "lag", "last error"]
        print_rows(rows, columns, as_json=False, empty="nothing runs here; `tailrace up` starts it")
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
