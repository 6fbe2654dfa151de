"""`tailrace test`: the project's own tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from tailrace.cli.output import in_project
from tailrace.errors import ComponentMissingError


@click.command(context_settings={"ignore_unknown_options": True})
@in_project
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(arguments: tuple[str, ...]) -> int:
    """Run the project's tests with pytest; ARGUMENTS are passed on to it."""
    try:
        import pytest  # noqa: F401
    except ImportError as error:
        raise ComponentMissingError(
            "pytest is not installed", hint="pip install 'tailrace[test]'"
        ) from error
    from tailrace.project.found import settings_of

    settings_of(".")
    where = ["tests"] if Path("tests").is_dir() and not arguments else []
    # -m puts the project's directory on sys.path, so that tests can import `pipelines`.
    return subprocess.run([sys.executable, "-m", "pytest", *where, *arguments]).returncode
