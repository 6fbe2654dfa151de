"""`tailrace broker user`: who may log in at a log by name and password."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tailrace.cli.output import (  # fmt: skip
    bootstrap_address,
    json_option,
    log_option,
    print_rows,
    said_option,
    say,
)
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.broker.authentication.users import Users as KeptUsers

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
Command = TypeVar("Command", bound=Callable[..., Any])


def _data_option(*, exists: bool = True) -> Callable[[Command], Command]:
    return click.option(
        "--data", "directories", metavar="DIR", multiple=True,
        type=click.Path(path_type=Path, exists=exists, file_okay=False),
        help="Work on the files of a log that no broker serves, instead of asking one.",
    )  # fmt: skip


@click.group()
def user() -> None:
    """Users who log in by SCRAM or PLAIN: add, remove, list.

    Asks a running broker (Apache Kafka too), or with --data works on the files of a log that
    is not running, so that the first user can be made before the first start.
    """


@user.command()
@click.argument("name")
@click.option(
    "--mechanism", "mechanisms", type=click.Choice(MECHANISMS), multiple=True,
    help="What the user may log in with; both if absent.",
)  # fmt: skip
@click.option("--iterations", default=4096, show_default=True, type=click.IntRange(4096, 16384))
@click.option(
    "--password-file", metavar="FILE", default=None,
    help="Read the password from its first line, - for standard input; else it is asked for.",
)  # fmt: skip
@log_option
@_data_option(exists=False)
@said_option
def add(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: str | None,
    address: str | None,
    directories: tuple[Path, ...],
) -> None:
    """Add a user, or give one a new password."""
    password = _password(password_file)
    chosen = mechanisms or MECHANISMS
    if directories:
        from tailrace.wire.scram import make_credential

        made = {
            one: make_credential(one, password.encode(), iterations=iterations) for one in chosen
        }
        with _kept(directories) as users:
            users.change(name, made)
    else:
        from tailrace.client.admin import Admin
        from tailrace.client.users import Users

        with Admin(bootstrap_address(address)) as admin:
            Users(admin).add(name, password, chosen, iterations)
    say(f"added user {name}")


@user.command()
@click.argument("name")
@log_option
@_data_option()
@said_option
def remove(name: str, address: str | None, directories: tuple[Path, ...]) -> None:
    """Remove a user. Connections that exist stay until their session ends."""
    if directories:
        with _kept(directories) as users:
            users.remove(name)
    else:
        from tailrace.client.admin import Admin
        from tailrace.client.users import Users

        with Admin(bootstrap_address(address)) as admin:
            Users(admin).remove(name)
    say(f"removed user {name}")


@user.command("list")
@log_option
@_data_option()
@json_option
def list_users(address: str | None, directories: tuple[Path, ...], as_json: bool) -> None:
    """List users and the mechanisms they may log in with."""
    found: dict[str, dict[str, int]]
    if directories:
        with _kept(directories) as users:
            found = {
                name: {each.mechanism: each.iterations for each in kept} for name, kept in users
            }
    else:
        from tailrace.client.admin import Admin
        from tailrace.client.users import Users

        with Admin(bootstrap_address(address)) as admin:
            found = {each.name: each.mechanisms for each in Users(admin).every()}
    rows = [
        {"user": name, "mechanism": mechanism, "iterations": iterations}
        for name, mechanisms in found.items()
        for mechanism, iterations in mechanisms.items()
    ]
    print_rows(rows, ["user", "mechanism", "iterations"], as_json=as_json, empty="no users")


@contextmanager
def _kept(directories: tuple[Path, ...]) -> Iterator[KeptUsers]:
    """The users in the files of a log; refused while a broker has it."""
    from tailrace.broker.authentication.users import Users as KeptUsers
    from tailrace.log.store import Store
    from tailrace.modes import hide

    hide()
    store = Store.open(directories)
    try:
        yield KeptUsers(store, b"")
    finally:
        store.close()


def _password(file: str | None) -> str:
    if file is None:
        if not sys.stdin.isatty():
            raise UsageError(
                "no password was given", hint="--password-file FILE, or - for standard input"
            )
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    elif file == "-":
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        try:
            lines = Path(file).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read", detail=str(error)) from error
        password = lines[0] if lines else ""
    if not password:
        raise UsageError("the password is empty")
    return password
