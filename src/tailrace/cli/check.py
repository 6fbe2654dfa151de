"""`tailrace check`: validate a project without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tailrace.cli.output import directory_argument, json_option, print_json
from tailrace.errors import UsageError
from tailrace.masking import mask

if TYPE_CHECKING:
    from tailrace.config import Settings

SECRETS = ("console.token", "console.viewer_token", "events.key", "registry.password")


@click.command()
@directory_argument(exists=True)
@click.option("--connect", is_flag=True, help="Also ask the databases: tables, columns, types.")
@click.option("--origins", is_flag=True, help="Say where each setting came from, defaults too.")
@click.option("--elsewhere", is_flag=True, help="It runs on another machine: leave out variables, addresses and files of databases.")  # fmt: skip
@json_option
def check(directory: Path, connect: bool, origins: bool, elsewhere: bool, as_json: bool) -> int:
    """Load and validate everything in DIRECTORY: names, SQL, inputs, settings, addresses.

    ✓ is good, ! is for you to look at, ✗ is wrong and makes the exit status 1.
    """
    if connect and elsewhere:
        raise UsageError("--connect asks the databases, --elsewhere leaves them out")
    from tailrace.project import load
    from tailrace.project.check import check as look

    project = load.load(directory)
    checked = list(look(project, connect=connect, ask=True, connections=not elsewhere))
    good = all(one.error is None for one in checked)
    if as_json:
        print_json(
            {
                "good": good,
                "checked": [
                    {"what": one.what, "found": one.found, "warning": one.warning, "error": one.error and one.error.as_dict()}
                    for one in checked
                ],
                "origins": {name: str(origin) for name, origin in project.settings.origins.items()},
            }
        )  # fmt: skip
        return 0 if good else 1
    for one in checked:
        mark = "✗" if one.error else "!" if one.warning else "✓"
        click.echo(f"{mark} {one.what:<28} {one.found}".rstrip())
        if one.what == "settings":
            _tell_origins(project.settings, every=origins)
    for one in checked:
        if one.error is not None:
            click.echo("\n" + one.error.render(), err=True)
    return 0 if good else 1


def _tell_origins(settings: Settings, *, every: bool) -> None:
    """Where values came from; without `every` those that somebody chose."""
    for name, origin in settings.origins.items():
        if not every and origin.place == "default":
            continue
        section, _, key = name.partition(".")
        value = getattr(getattr(settings, section), key, None)
        shown = (
            "…" if name in SECRETS else "" if value is None or isinstance(value, dict) else value
        )
        click.echo(f"    {name:<24} {mask(str(shown)):<24} {origin}".rstrip())
