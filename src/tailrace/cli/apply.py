"""`tailrace apply`: have a running project take over its changed files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tailrace.cli.output import directory_argument, json_option, print_json, print_rows, tell

if TYPE_CHECKING:
    from tailrace.config import Settings

LOAD_SECONDS = 120.0  # for the project to be loaded and compared
TAKE_OVER_SECONDS = 180.0
COLUMNS = ["change", "what", "name", "records", "detail"]


@click.command()
@directory_argument(exists=True)
@click.option("--dry-run", is_flag=True, help="Show what it would do, and do nothing.")
@click.option("--drop", is_flag=True, help="Also delete the topics and state of what is no longer declared.")  # fmt: skip
@click.option("--no-wait", is_flag=True, help="Do not wait until changed views answer.")
@json_option
def apply(directory: Path, dry_run: bool, drop: bool, no_wait: bool, as_json: bool) -> None:
    """Take over the changed files of the running project in DIRECTORY.

    Shows what that does, then does it: new and changed views are filled beside what they show,
    changed streams go on from their checkpoints, changed sources and sinks are started again,
    and what is no longer declared stops. Spark and everything else go on. Topics of what is no
    longer declared stay, unless --drop is given.
    """
    from tailrace.node.takeover import ask
    from tailrace.project.found import settings_of

    settings = settings_of(directory)
    _refuse_stopped(settings)
    answer = ask(settings.state_directory, dry_run=dry_run)
    try:
        found = _await(settings, answer, ("prepared", "nothing"), LOAD_SECONDS)
        if not as_json:
            _show(found, offer=not drop)
        if dry_run or found["state"] == "nothing":
            if as_json:
                print_json(_document(found, applied=False))
            return
        found = _await(settings, answer, ("applied",), TAKE_OVER_SECONDS)
    finally:
        answer.unlink(missing_ok=True)
    dropped = _drop(settings, found["changes"]) if drop else []
    filling = {} if no_wait else _await_views(settings, {one["name"] for one in _filled(found)})
    if as_json:
        print_json(_document(found, applied=True) | {"dropped": dropped, "filling": filling})
        return
    for part in found["waiting"]:
        click.echo(f"{part} is busy, and takes it over as soon as it can")
    for topic in dropped:
        click.echo(f"dropped {topic}")
    click.echo("applied" + "".join(f", {name}: {words}" for name, words in filling.items()))


def _document(found: dict[str, Any], *, applied: bool) -> dict[str, Any]:
    return {"applied": applied, "changes": found["changes"], "waiting": found["waiting"]}


def _show(found: dict[str, Any], *, offer: bool) -> None:
    rows = [{**change, "what": change["kind"]} for change in found["changes"]]
    if not rows:
        click.echo("nothing to do: what runs is what the files declare")
        return
    print_rows(rows, COLUMNS, as_json=False)
    left = [topic for change in found["changes"] for topic in change["topics"]]
    if left and offer:
        click.echo(f"topics that stay: {', '.join(left)} (`tailrace apply --drop` deletes them)")


def _filled(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        c for c in found["changes"] if c["kind"] == "view" and c["change"] in ("new", "rebuild")
    ]


def _refuse_stopped(settings: Settings) -> None:
    from tailrace.node.errors import NotRunningError
    from tailrace.node.health import status_of

    states = [part["state"] for part in status_of(settings)["parts"]]
    if not any(state in ("running", "lagging") for state in states):
        raise NotRunningError(
            "this project does not run",
            detail=f"looked in {settings.directory}",
            hint="`tailrace up` starts it as its files are now",
        )


def _await(
    settings: Settings, answer: Path, states: tuple[str, ...], seconds: float
) -> dict[str, Any]:
    """The answer of the running project, once it has come so far."""
    from tailrace.errors import reported
    from tailrace.node.errors import NotTakenOverError
    from tailrace.node.takeover import read_answer

    deadline = time.monotonic() + seconds
    looked_at = time.monotonic()
    while time.monotonic() < deadline:
        found = read_answer(answer)
        if found is not None and found["state"] == "failed":
            raise reported(found["error"])
        if found is not None and found["state"] in (*states, "applied"):
            return found
        if time.monotonic() - looked_at > 1:
            looked_at = time.monotonic()
            _refuse_stopped(settings)
        time.sleep(0.05)
    answer.with_suffix(".ask").unlink(missing_ok=True)
    raise NotTakenOverError(
        "the running project does not answer",
        detail=f"asked for {seconds:g} s",
        hint="is it of an earlier version? stop `tailrace up` and start it again",
    )


def _drop(settings: Settings, changes: list[dict[str, Any]]) -> list[str]:
    """Delete what is left of views and streams that are no longer declared."""
    import shutil

    from tailrace.client.admin import Admin
    from tailrace.node.health import log_address
    from tailrace.pipelines.process.requests import ask as ask_pipelines
    from tailrace.pipelines.streams.beginnings import DIRECTORY

    dropped: list[str] = []
    for change in changes:
        if change["change"] != "remove" or not change["topics"]:
            continue
        if change["kind"] == "view":
            ask_pipelines(settings.state_directory, "drop", change["name"])
        elif change["kind"] == "stream":
            with Admin(log_address(settings)) as admin:
                for topic in change["topics"]:
                    admin.delete_topic(topic)
            shutil.rmtree(settings.state_directory / DIRECTORY / change["name"], ignore_errors=True)
        dropped += change["topics"]
    return dropped


def _await_views(settings: Settings, names: set[str]) -> dict[str, str]:
    """Wait until these views answer; those that take longer than a minute, and how far they
    are."""
    from tailrace.node.health import FILL_PATIENCE_SECONDS, filling
    from tailrace.telemetry.part import read_reports

    deadline = time.monotonic() + FILL_PATIENCE_SECONDS
    said = time.monotonic()
    while True:
        reports = read_reports(settings.state_directory)
        failed = {n: e for r in reports for n, e in (r.get("failed") or {}).items() if n in names}
        waits = {name: words for name, words in filling(reports).items() if name in names}
        if (not waits and _shown(reports)) or time.monotonic() > deadline:
            return waits | {name: f"failed: {error.get('error')}" for name, error in failed.items()}
        if time.monotonic() - said > 5:
            said = time.monotonic()
            tell("filling: " + ", ".join(f"{name} ({words})" for name, words in waits.items()))
        time.sleep(0.1)


def _shown(reports: list[dict[str, Any]]) -> bool:
    """Whether the part that answers questions has come to the tick of the pipelines."""
    ticks = [report.get("tick") or 0 for report in reports if report["kind"] == "pipelines"]
    shown = [report.get("position") or "" for report in reports if report["kind"] == "views"]
    return all(int(position.rpartition(":")[2] or 0) >= max(ticks, default=0) for position in shown)
