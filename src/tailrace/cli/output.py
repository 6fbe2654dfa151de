"""What commands print: tables for people, JSON for machines, errors in four parts."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson
from click.core import ParameterSource

from tailrace.errors import UsageError, render

_SAID_AS_JSON = "tailrace.said_as_json"
_SAID_WHERE = "tailrace.said_where"
Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    """Adds `--json`, passed to the command as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")(command)


def said_option(command: Command) -> Command:
    """Adds `--json` to a command that only does something and says so with `say`."""

    def keep(context: click.Context, option: click.Parameter, chosen: bool) -> None:
        context.meta[_SAID_AS_JSON] = chosen

    return click.option(
        "--json", is_flag=True, expose_value=False, callback=keep, help="Machine-readable output."
    )(command)


def say(text: str, *, err: bool = False) -> None:
    """What was done: a line, or `{"did": …}` where `said_option` was chosen."""
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(_SAID_AS_JSON):
        print_json({"did": text})
    else:
        click.echo(text, err=err)


def log_option(command: Command) -> Command:
    """Adds `--project DIR` and `--bootstrap ADDRESS`, the two ways to say where; passed as
    `address`: a project's directory or a HOST:PORT. `--log` is the old name of both."""

    def choose(context: click.Context, parameter: click.Parameter, chosen: str | None) -> None:
        if chosen is not None:
            context.meta.setdefault(_SAID_WHERE, []).append((parameter.opts[0], chosen))

    def address(context: click.Context, parameter: click.Parameter, old: str | None) -> str | None:
        said = context.meta.get(_SAID_WHERE, [])
        given = context.get_parameter_source("address")
        if old is not None and (given is not ParameterSource.ENVIRONMENT or not said):
            said = [*said, ("--log", old)]
        if len(said) > 1:
            names = " and ".join(name for name, _ in said)
            raise UsageError(f"{names} both say where", hint="give one of them")
        return said[0][1] if said else None

    where = click.option(
        "--log", "address", metavar="ADDRESS", envvar="TAILRACE_LOG", hidden=True, callback=address,
    )  # fmt: skip
    bootstrap = click.option(
        "--bootstrap", metavar="ADDRESS", is_eager=True, expose_value=False, callback=choose,
        help="HOST:PORT of a Kafka-protocol broker; of the console, for views and sinks.",
    )  # fmt: skip
    return project_option(choose)(bootstrap(where(command)))


def said_directory(context: click.Context) -> str | None:
    """What `--project` said, in the middle of a line too; None for nothing."""
    said = context.meta.get(_SAID_WHERE) or []
    chosen = (
        [value for name, value in said if name == "--project"] if isinstance(said, list) else [said]
    )
    return next((str(value) for value in chosen if value), None)


def project_option(
    choose: Callable[[click.Context, click.Parameter, str | None], None],
) -> Callable[[Command], Command]:
    """Adds `--project DIR`."""
    return click.option(
        "--project", "-C", metavar="DIR", is_eager=True, expose_value=False, callback=choose,
        help="A project's directory (default: here).",
    )  # fmt: skip


def in_project(command: Command) -> Command:
    """Adds `--project DIR`: the command then runs as if it were called there."""

    def choose(context: click.Context, parameter: click.Parameter, chosen: str | None) -> None:
        if chosen is None:
            return
        context.meta[_SAID_WHERE] = chosen
        before = Path.cwd()
        try:
            os.chdir(chosen)
        except OSError as error:
            raise UsageError(
                f"no project can be read in {chosen}", detail=error.strerror or str(error)
            ) from error
        context.call_on_close(lambda: os.chdir(before))

    return project_option(choose)(command)


def directory_argument(*, exists: bool = False) -> Callable[[Command], Command]:
    """Adds DIRECTORY, or `--project DIR`, passed as `directory`: the project's (default: here)."""

    def choose(context: click.Context, parameter: click.Parameter, chosen: str | None) -> None:
        context.meta[_SAID_WHERE] = chosen

    def directory(context: click.Context, parameter: click.Parameter, said: Path | None) -> Path:
        chosen = context.meta[_SAID_WHERE]
        if said is not None and chosen is not None:
            raise UsageError("DIRECTORY and --project both say where", hint="give one of them")
        return Path(said or chosen or ".")

    kind = click.Path(exists=exists, file_okay=False, path_type=Path)

    def add(command: Command) -> Command:
        argument = click.argument("directory", type=kind, required=False, callback=directory)
        return argument(project_option(choose)(command))

    return add


PATIENCE_SECONDS = 3.0  # a broker that is being started again is back by then


def bootstrap_address(address: str | None, *, reach: bool = True) -> str:
    """HOST:PORT for where the command was told to look: an address as it is, a directory by its project's file.

    With `reach` somebody listens there: a person should not wait a client's minute to be
    told that nothing runs.
    """
    from tailrace import config
    from tailrace.node.health import log_address

    if address and ":" in address and not address.startswith((".", "/")):
        found = address
    elif address and not Path(address).is_dir():
        raise UsageError(
            f"{address}: no such directory",
            hint="HOST:PORT of a broker, or a project's directory",
        )
    else:
        found = log_address(config.load(address or "."))
    if reach:
        _refuse_silence(found)
    return found


def _refuse_silence(bootstrap: str) -> None:
    from tailrace.client.cluster import parse_addresses
    from tailrace.client.errors import BrokerUnavailableError
    from tailrace.clock import SYSTEM

    until = SYSTEM.monotonic() + PATIENCE_SECONDS
    addresses = parse_addresses(bootstrap)
    while True:
        for place in addresses:
            try:
                socket.create_connection(place, timeout=PATIENCE_SECONDS).close()
            except OSError as error:
                reason = error
            else:
                return
        if SYSTEM.monotonic() > until:
            raise BrokerUnavailableError(
                f"no broker answers at {bootstrap}",
                detail=str(reason),
                hint="`tailrace up` starts a project, `tailrace broker start` a log alone; another is named by --bootstrap HOST:PORT",
            ) from reason
        SYSTEM.sleep(0.1)


def render_in_full(error: Mapping[str, str]) -> str:
    """An error in four parts, and its traceback if it has one."""
    trace = error.get("traceback", "")
    return render(error) + (f"\n{trace.rstrip()}" if trace else "")


def tell(line: str) -> None:
    """A line for whoever watches; a terminal that is gone is no reason to end."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """One JSON document on stdout, indented on a terminal."""
    option = orjson.OPT_INDENT_2 if sys.stdout.isatty() else 0
    click.echo(orjson.dumps(document, default=str, option=option | orjson.OPT_NON_STR_KEYS))


def print_rows(
    rows: Iterable[Mapping[str, object]], columns: Sequence[str], *, as_json: bool, empty: str = ""
) -> None:
    """Rows as an aligned table, or as a JSON list. Numbers stand to the right."""
    listed = list(rows)
    if as_json:
        print_json(listed)
        return
    if not listed:
        click.echo(empty or "nothing here")
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in listed]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(columns)]
    numeric = [
        all(isinstance(row.get(column), int | float) for row in listed) for column in columns
    ]

    def line(values: Sequence[str]) -> str:
        parts = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        )
        return "  ".join(parts).rstrip()

    click.echo(line(list(columns)))
    click.echo(line(["─" * width for width in widths]))
    for row in cells:
        click.echo(line(row))


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return str(value)
