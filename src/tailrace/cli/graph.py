"""`tailrace graph`: what feeds what."""

from __future__ import annotations

from pathlib import Path

import click

from tailrace.cli.output import directory_argument, print_json


@click.command()
@directory_argument()
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "json"]), default="text")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def graph(directory: Path, form: str, as_json: bool) -> None:
    """Draw the project's topology."""
    from tailrace.project import graph as project_graph
    from tailrace.project import load

    topology = project_graph.build(load.load(directory))
    if as_json or form == "json":
        print_json(topology.as_dict())
    else:
        click.echo(topology.mermaid() if form == "mermaid" else topology.text())
