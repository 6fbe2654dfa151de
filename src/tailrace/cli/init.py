"""`tailrace init DIR`: a new project."""

from __future__ import annotations

from pathlib import Path

import click

from tailrace.cli.output import json_option, print_json


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--example", metavar="NAME", help="Copy an example that ships with Tailrace: shop.")
@json_option
def init(directory: Path, example: str | None, as_json: bool) -> None:
    """Make a project in DIRECTORY: tailrace.toml, pipelines/, tests/, README."""
    from tailrace.project import scaffold

    written = scaffold.copy_example(example, directory) if example else scaffold.create(directory)
    if as_json:
        print_json([str(path) for path in written])
        return
    for path in written:
        click.echo(f"  {path}")
    way = "" if directory.resolve() == Path.cwd() else f"cd {directory} && "
    makes = any(path.name == "make_database.py" for path in written)
    click.echo(f"now: {way}{'python make_database.py && ' if makes else ''}tailrace check")
