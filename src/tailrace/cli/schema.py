"""`tailrace schema`: a registry's subjects and schemas from the command line."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tailrace.cli.output import json_option, print_json, print_rows, say
from tailrace.errors import TailraceError, UsageError

if TYPE_CHECKING:
    from tailrace.client.schemas import Schemas

Command = TypeVar("Command", bound=Callable[..., Any])
_KINDS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


@click.group()
def schema() -> None:
    """Schemas of a registry: list, get, check, register."""


def registry_option(command: Command) -> Command:
    """Adds `--registry URL` and `--project DIR`, and passes the registry as `registry`."""

    @click.option("--registry", "url", metavar="URL", envvar="TAILRACE_REGISTRY", help="http://HOST:PORT of a registry, perhaps with USER:PASSWORD@ (default: that of the project).")  # fmt: skip
    @click.option("--project", "-C", "directory", metavar="DIR", default=".", help="A project's directory (default: here).")  # fmt: skip
    @functools.wraps(command)
    def wrapped(url: str | None, directory: str, **arguments: Any) -> Any:
        return command(registry=_registry(url, directory), **arguments)

    return wrapped  # type: ignore[return-value]


def _registry(url: str | None, directory: str) -> Schemas:
    from tailrace import config
    from tailrace.client.schemas import Schemas

    if url is None:
        chosen = config.load(directory).registry
        if chosen.url is None:
            raise UsageError(
                "no registry is named here",
                detail=f"{os.path.join(directory, config.FILE_NAME)} has no [registry]",
                hint='give --registry http://HOST:PORT, or write listen = "127.0.0.1:8081" under [registry]',
            )
        return Schemas(chosen.url, user=chosen.user, password=chosen.password)
    return Schemas.at(url)


@schema.command("list")
@registry_option
@json_option
def list_(registry: Schemas, as_json: bool) -> None:
    """Every subject with its last version, type, id and compatibility level."""
    rows = []
    for subject in registry.subjects():
        found = registry.version(subject)
        rows.append(
            {
                "subject": subject,
                "type": found.kind,
                "versions": len(registry.versions(subject)),
                "latest": found.version,
                "id": found.id,
                "compatibility": registry.level(subject),
            }
        )
    columns = ["subject", "type", "versions", "latest", "id", "compatibility"]
    print_rows(rows, columns, as_json=as_json, empty="no subjects yet")


@schema.command()
@click.argument("subject")
@click.argument("version", default="latest")
@registry_option
@json_option
def get(registry: Schemas, subject: str, version: str, as_json: bool) -> None:
    """The schema of SUBJECT, its last VERSION or another."""
    found = registry.version(subject, version)
    if as_json:
        print_json(
            {"subject": found.subject, "version": found.version, "id": found.id,
             "type": found.kind, "references": list(found.references), "schema": found.text}
        )  # fmt: skip
    else:
        click.echo(_pretty(found.text, found.kind))


def _pretty(text: str, kind: str) -> str:
    return text.rstrip() if kind == "PROTOBUF" else json.dumps(json.loads(text), indent=2, ensure_ascii=False)  # fmt: skip


def _schema_options(command: Command) -> Command:
    for option in (
        click.option("--reference", "references", metavar="NAME=SUBJECT:VERSION", multiple=True, help="A schema that this one uses, under the name it uses."),
        click.option("--type", "kind", type=click.Choice(["avro", "json", "protobuf"]), help="The language (default: by the file's ending, .avsc, .json or .proto)."),
        click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)),
        click.argument("subject"),
    ):  # fmt: skip
        command = option(command)
    return command


@schema.command()
@_schema_options
@registry_option
@json_option
def register(
    registry: Schemas,
    subject: str,
    file: Path,
    kind: str | None,
    references: tuple[str, ...],
    as_json: bool,
) -> None:
    """Register the schema in FILE as the next version of SUBJECT."""
    text = _read(file)
    number = registry.register(subject, text, _kind(file, kind), _references(references))
    if as_json:
        print_json({"id": number, "subject": subject})
    else:
        say(f"schema {number} is registered under {subject}")


@schema.command()
@_schema_options
@registry_option
@json_option
def check(
    registry: Schemas,
    subject: str,
    file: Path,
    kind: str | None,
    references: tuple[str, ...],
    as_json: bool,
) -> None:
    """Whether the schema in FILE may be the next version of SUBJECT; status 1 if not."""
    found = registry.check(subject, _read(file), _kind(file, kind), _references(references))
    if as_json:
        print_json({"fits": found.fits, "messages": list(found.messages), "hint": found.hint})
    elif found.fits:
        click.echo(f"{file} may be the next version of {subject}")
    else:
        raise _refusal(file, subject, found.messages, found.hint)
    if not found.fits:
        raise SystemExit(1)


def _refusal(file: Path, subject: str, messages: tuple[str, ...], hint: str) -> TailraceError:
    from tailrace.schemas.errors import IncompatibleSchemaError

    shown = [one for one in messages if not one.startswith("{oldSchema:")]
    return IncompatibleSchemaError(
        f"{file} may not be the next version of {subject}", detail="\n".join(shown), hint=hint
    )


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.read()
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no text", detail=str(error)) from error


def _kind(file: Path, kind: str | None) -> str:
    if kind is not None:
        return kind.upper()
    if file.suffix not in _KINDS:
        raise UsageError(
            f"{file} does not say its language", hint="--type avro, --type json or --type protobuf"
        )
    return _KINDS[file.suffix]


def _references(given: tuple[str, ...]) -> list[dict[str, Any]]:
    found = []
    for one in given:
        name, equals, place = one.rpartition("=")
        subject, colon, version = place.rpartition(":")
        if not equals or not name or not colon or not version.isdigit():
            raise UsageError(
                f"--reference takes NAME=SUBJECT:VERSION, not {one!r}",
                hint="for example --reference shop.Money=money-value:1",
            )
        found.append({"name": name, "subject": subject, "version": int(version)})
    return found
