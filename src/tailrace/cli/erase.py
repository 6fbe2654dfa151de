"""`tailrace erase`: what is known of a subject, made unreadable for good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tailrace.cli.output import bootstrap_address, json_option, print_json, print_rows

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.sealing import Erased, Keys
    from tailrace.project.load import Project


@click.group()
def erase() -> None:
    """Erase what is known of a subject, with a proof."""


@dataclass(frozen=True, slots=True)
class _Opened:
    project: Project
    log: Log
    keys: Keys

    @property
    def places(self) -> list[Path]:
        """Directories of this machine that hold what the project keeps."""
        settings = self.project.settings
        found = [settings.state_directory]
        if settings.log.bootstrap is None and not settings.log.directory.is_relative_to(found[0]):
            found.append(settings.log.directory)
        return [each for each in found if each.is_dir()]


@contextmanager
def _opened() -> Iterator[_Opened]:
    from tailrace.client.log import connect
    from tailrace.facts.sealing import Keys
    from tailrace.project.load import load

    project = load(Path())
    with connect(bootstrap_address(None)) as log:
        keys = Keys(log, project.settings.events.key)
        try:
            yield _Opened(project, log, keys)
        finally:
            keys.close()


@erase.command()
@click.argument("subject")
@click.option("--reason", help="Why; it stays in the log for good, so name nobody.")
@click.option("--dry-run", is_flag=True, help="Only count what would become unreadable, by place.")
@click.option("--timeout", default=60.0, help="Seconds to wait until the log has dropped the keys.")
@json_option
@click.pass_context
def subject(
    context: click.Context,
    subject: str,
    reason: str | None,
    dry_run: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Destroy the keys of a subject: tailrace erase subject customer:17 --reason "request 4711"

    Sealed values of it become unreadable in every topic, segment, archive, mirror and view. What
    cannot be reached is listed.
    """
    from tailrace.errors import UsageError
    from tailrace.facts.erasing import UNREACHABLE, erase_subject, search

    if not dry_run and not reason:
        raise UsageError("an erasure needs a reason", hint='--reason "request 4711"')
    with _opened() as opened:
        if dry_run:
            tag = opened.keys.tag(subject)
            told: dict[str, Any] = {
                "subject": subject,
                "tag": tag,
                "erased": opened.keys.is_erased(tag),
                "keys": opened.keys.live(tag),
                "counts": search(opened.log, tag).counts,
                "unreachable": list(UNREACHABLE),
            }
            _tell(told, as_json)
            return
        done = erase_subject(opened.log, opened.keys, subject, str(reason), patience=timeout)
    _tell(_plain(done), as_json)
    if done.state != "done":
        if not as_json:
            click.echo(f"the log has not dropped the keys yet: `tailrace erase verify {done.id}`")
        context.exit(1)


@erase.command("list")
@json_option
def list_erasures(as_json: bool) -> None:
    """Every erasure, with its reason and whether it is done."""
    with _opened() as opened:
        rows = [_plain(each) for each in opened.keys.erasures.values()]
    rows.sort(key=lambda row: row["at"])
    columns = ["id", "at", "state", "tag", "reason"]
    print_rows(rows, columns, as_json=as_json, empty="nothing was erased")


@erase.command()
@click.argument("id")
@click.option("--needle", help="A text that must stand nowhere: in no record and in no file.")
@click.option("--timeout", default=60.0, help="Seconds to wait until the log has dropped the keys.")
@json_option
@click.pass_context
def verify(
    context: click.Context, id: str, needle: str | None, timeout: float, as_json: bool
) -> None:
    """Look again whether an erasure is whole; finish it if it is not."""
    from tailrace.facts.erasing import finish
    from tailrace.facts.erasing import verify as look

    with _opened() as opened:
        finish(opened.log, opened.keys, id, patience=timeout)
        found = look(opened.log, opened.keys, id, needle=needle, places=opened.places)
    told = {
        **_plain(found.erased),
        "good": found.good,
        "keys_left": found.keys_left,
        "values": found.values,
        "needles": list(found.needles),
    }
    _tell(told, as_json)
    if not found.good:
        context.exit(1)


def _plain(erased: Erased) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(erased)
    return plain


def _tell(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    for name, value in told.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {each}" for key, each in value.items()) or "none"
        if isinstance(value, list):
            click.echo(f"{name.replace('_', ' ')}:" + ("" if value else " none"))
            for each in value:
                click.echo(f"  {each}")
        else:
            click.echo(f"{name.replace('_', ' ')}: {value}")
