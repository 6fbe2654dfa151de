"""`tailrace version`."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from tailrace import __version__
from tailrace.cli.output import json_option, print_json

_PARTS = ("confluent-kafka", "pyspark", "pyarrow", "psycopg", "duckdb", "lmdb")


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Version of Tailrace and of its dependencies."""
    found = {"tailrace": __version__, "python": platform.python_version()}
    for name in _PARTS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    if as_json:
        print_json(found)
    else:
        for name, text in found.items():
            click.echo(f"{name:<16} {text}")
