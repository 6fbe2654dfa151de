"""`tailrace sink …`: the copies a project keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tailrace.cli import known_names
from tailrace.cli.output import json_option, log_option, print_json, print_rows, said_option, say
from tailrace.clock import SYSTEM

if TYPE_CHECKING:
    from tailrace.project.copies import OpenedCopy
    from tailrace.project.load import Project


def _load(address: str | None) -> Project:
    from tailrace.project.load import load

    return load(address or ".")


def _bootstrap(project: Project) -> str:
    """The log's address: the running broker's own word first, then the settings."""
    from tailrace.telemetry.part import read_reports

    for report in read_reports(project.settings.state_directory):
        if report.get("kind") == "broker" and report.get("address"):
            return str(report["address"])
    return project.settings.bootstrap


@contextmanager
def _opened(address: str | None, name: str) -> Iterator[OpenedCopy]:
    from tailrace.project.copies import opened_copy

    project = _load(address)
    with opened_copy(project, _bootstrap(project), name) as opened:
        yield opened


def _reports(project: Project) -> dict[str, dict[str, Any]]:
    from tailrace.telemetry.part import read_reports

    return {
        report["name"]: report
        for report in read_reports(project.settings.state_directory)
        if report.get("kind") == "sink"
    }


@click.group()
def sink() -> None:
    """Copies: status, replay, verify, dead letters."""


@sink.command("list")
@log_option
@json_option
def list_sinks(address: str | None, as_json: bool) -> None:
    """List sinks: view, target, state."""
    project = _load(address)
    reports = _reports(project)
    rows = [
        {
            "name": copy.name,
            "of": copy.subject,
            "to": copy.declaration.place,
            "state": reports.get(copy.name, {}).get("state", "not started"),
            "freshness_ms": reports.get(copy.name, {}).get("freshness_ms"),
        }
        for copy in project.sinks.values()
    ]
    print_rows(
        rows,
        ["name", "of", "to", "state", "freshness_ms"],
        as_json=as_json,
        empty="this project declares no sinks",
    )


@sink.command()
@click.argument("name", shell_complete=known_names.sinks)
@log_option
@json_option
def status(name: str, address: str | None, as_json: bool) -> None:
    """How sink NAME is: position, freshness, dead letters, last error."""
    from tailrace.project.copies import find_copy

    project = _load(address)
    copy = find_copy(project, name)
    report = _reports(project).get(name, {})
    facts = {
        "name": name,
        "of": copy.subject,
        "to": copy.declaration.place,
        **{k: v for k, v in report.items() if k not in ("name", "kind", "project")},
    }
    if as_json:
        print_json(facts)
        return
    width = max(len(key) for key in facts)
    for key, value in facts.items():
        if key == "error" and isinstance(value, dict):
            value = "\n".join(f"{' ' * width}  {v}" for v in value.values() if v).lstrip()
        click.echo(f"{key.ljust(width)}  {'–' if value is None else value}")


@sink.command()
@click.argument("name", shell_complete=known_names.sinks)
@click.option("--timeout", default=600.0, show_default=True, help="Seconds to wait for it.")
@log_option
@said_option
def replay(name: str, timeout: float, address: str | None) -> None:
    """Fill the copy NAME again from the log, beside the one in use where the target can
    have two, and switch when it is complete."""
    if not _ask_running(address, name, "replay", timeout):
        with _opened(address, name) as opened:
            opened.delivery.replay()
    say(f"{name} is filled again")


@sink.command()
@click.argument("name", shell_complete=known_names.sinks)
@click.option("--resume", is_flag=True, help="Go on with a copy that was begun.")
@click.option("--switch", "and_switch", is_flag=True, help="Switch to it if it is in step.")
@click.option("--list", "most", default=20, show_default=True, help="Differences to print.")
@log_option
@json_option
@click.pass_context
def rebuild(
    context: click.Context,
    name: str,
    resume: bool,
    and_switch: bool,
    most: int,
    address: str | None,
    as_json: bool,
) -> None:
    """Fill a second copy of NAME beside the one in use and compare it with the log. The
    one in use is kept in step meanwhile; `tailrace sink switch` puts the new one in its
    place, `tailrace sink rollback` brings the old one back."""
    with _opened(address, name) as opened:
        beside, goal = opened.delivery.rebuild(resume=resume)
        try:
            found = opened.verifier_of(beside, goal.shape).compare()
        finally:
            beside.close()
    _print_verification(found, most, as_json)
    if not found.in_step:
        context.exit(1)
    if and_switch:
        context.invoke(switch, name=name, timeout=600.0, address=address)


@sink.command()
@click.argument("name", shell_complete=known_names.sinks)
@click.option("--timeout", default=600.0, show_default=True, help="Seconds to wait for it.")
@log_option
@said_option
def switch(name: str, timeout: float, address: str | None) -> None:
    """Bring the second copy of NAME up to date and put it in place of the one in use, at
    once; the old one is kept for `tailrace sink rollback`."""
    if not _ask_running(address, name, "switch", timeout):
        with _opened(address, name) as opened:
            opened.delivery.switch()
    say(f"{name} is switched to its new copy; the old one is kept", err=True)


@sink.command()
@click.argument("name", shell_complete=known_names.sinks)
@click.option("--timeout", default=60.0, show_default=True, help="Seconds to wait for it.")
@log_option
@said_option
def rollback(name: str, timeout: float, address: str | None) -> None:
    """Go back to the copy of NAME that the last switch replaced. If it is of another
    generation than the view has now, the sink stays there until `switch` or `replay`."""
    if not _ask_running(address, name, "rollback", timeout):
        with _opened(address, name) as opened:
            opened.delivery.rollback()
    say(f"{name} is back at the copy before", err=True)


def _ask_running(address: str | None, name: str, work: Any, timeout: float) -> bool:
    """Have a sink that runs do something, and wait; False if it does not run."""
    from tailrace.project.copies import ask_running

    return ask_running(_load(address), name, work, timeout) is not None


@sink.command()
@click.argument("name", shell_complete=known_names.sinks)
@click.option("--repair", is_flag=True, help="Write the rows that differ as the log has them.")
@click.option("--watch", is_flag=True, help="Verify continuously, at most --share of the time.")
@click.option(
    "--share",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0.001, 1),
    help="How much of the time --watch may work.",
)
@click.option("--rounds", default=0, help="With --watch: stop after so many; 0 never.")
@click.option("--list", "most", default=20, show_default=True, help="Differences to print.")
@log_option
@json_option
@click.pass_context
def verify(
    context: click.Context,
    name: str,
    repair: bool,
    watch: bool,
    share: float,
    rounds: int,
    most: int,
    address: str | None,
    as_json: bool,
) -> None:
    """Compare the copy NAME with its source at one position, by checksums. With --watch
    the first round reads the whole topic, the others what has come since."""
    from tailrace.project.copies import repair as repair_rows

    good, done = True, 0
    with _opened(address, name) as opened:
        verifier = opened.verifier()
        while True:
            started = SYSTEM.monotonic()
            found = verifier.compare()
            _print_verification(found, most, as_json)
            repaired = repair_rows(opened, verifier, found) if repair else 0
            if repaired:
                click.echo(f"repaired {repaired} rows", err=as_json)
            good = found.in_step or bool(repaired)
            done += 1
            if not watch or done == rounds:
                break
            spent = SYSTEM.monotonic() - started
            SYSTEM.sleep(max(0.2, spent * (1 - share) / share))
            if opened.delivery.goal(1.0).shape != verifier.shape:
                verifier = opened.verifier()  # the view has other columns by now
    if not good:
        context.exit(1)


def _print_verification(found: Any, most: int, as_json: bool) -> None:
    if as_json:
        from tailrace.project.copies import verification_document

        print_json(verification_document(found, most))
        return
    if found.in_step:
        click.echo(f"{found.sink}: {found.rows} rows, in step at {found.position}")
        return
    ranges = ", ".join(map(str, found.ranges[:10])) + (" …" if len(found.ranges) > 10 else "")
    click.echo(f"{found.sink}: {found.count} of {found.rows} rows differ, in ranges {ranges}")
    for difference in found.differences[:most]:
        click.echo(f"  {difference.key}")
        click.echo(f"    log   {difference.expected}")
        click.echo(f"    copy  {difference.found}")
    if found.count > most:
        click.echo(f"  … and {found.count - most} more")


@sink.command("dead-letters")
@click.argument("name", shell_complete=known_names.sinks)
@click.option("--retry", is_flag=True, help="Write these rows again, as the log has them now.")
@log_option
@json_option
def dead_letters(name: str, retry: bool, address: str | None, as_json: bool) -> None:
    """Rows that the target of sink NAME refused, and why."""
    from tailrace.project.copies import retry as retry_rows
    from tailrace.sinks.dead_letters import read_letters

    with _opened(address, name) as opened:
        letters = read_letters(opened.reader, name)
        if retry:
            done = retry_rows(opened)
            click.echo(f"{done} rows written, {len(letters) - done} not", err=as_json)
            return
    rows = [
        {
            "record": letter.address,
            "row": letter.row,
            "reason": letter.error.get("detail") or letter.error.get("error"),
            "at_ms": letter.at_ms,
        }
        for letter in letters
    ]
    print_rows(rows, ["record", "reason", "row"], as_json=as_json, empty="no dead letters")
