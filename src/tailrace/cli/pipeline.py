"""`tailrace pipeline …`: views and streams as they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import orjson

from tailrace.cli import known_names
from tailrace.cli.filling import filling
from tailrace.cli.output import (
    json_option,
    log_option,
    print_json,
    print_rows,
    render_in_full,
    said_option,
    say,
)
from tailrace.errors import UsageError, render

if TYPE_CHECKING:
    from tailrace.pipelines.ticks.tick_row import Tick
    from tailrace.project.load import Project


AT_WORK = ("running", "lagging")
LONG_BATCH_SECONDS = 30


def _load(address: str | None) -> Project:
    from tailrace.project.load import load

    return load(address or ".")


def _report(project: Project) -> dict[str, Any]:
    """The last words of the process that runs the pipelines; empty if it never ran."""
    from tailrace.telemetry.part import read_reports

    reports = read_reports(project.settings.state_directory)
    return next((report for report in reports if report.get("kind") == "pipelines"), {})


def _bootstrap(project: Project) -> str:
    from tailrace.telemetry.part import read_reports

    for report in read_reports(project.settings.state_directory):
        if report.get("kind") == "broker" and report.get("address"):
            return str(report["address"])
    return project.settings.bootstrap


def _last(project: Project) -> Tick | None:
    from tailrace.pipelines.reading.reader import LogReader
    from tailrace.pipelines.ticks.driver import last_row

    with LogReader(_bootstrap(project)) as reader:
        return last_row(reader, project.name)


def _known(project: Project, name: str) -> None:
    if name not in project.views and name not in project.streams:
        names = ", ".join([*project.views, *project.streams])
        raise UsageError(f"no pipeline {name!r} is declared", hint=f"there are: {names or 'none'}")


def _rows(project: Project) -> Iterator[dict[str, Any]]:
    from tailrace.pipelines.declare import mark_of

    report = _report(project)
    state = report.get("state", "stopped")
    for name, view in project.views.items():
        yield {
            "name": name,
            "kind": "view",
            "state": _view_state(report, name, mark_of(view.sql, view.policy)),
            "at": f"tick {report.get('tick')}" if report.get("tick") is not None else None,
            "lag": report.get("lag"),
            "dead": (report.get("dead_by_view") or {}).get(name),
            "declared": str(view.declared_at) if view.declared_at else None,
        }
    for name in _runs(report).keys() - project.views.keys():
        yield {
            "name": name,
            "kind": "view",
            "state": "running, no longer declared: `tailrace apply`",
        }
    for name, stream in project.streams.items():
        progress = (report.get("streams") or {}).get(name) or {}
        yield {
            "name": name,
            "kind": "stream",
            "state": _state(state, progress),
            "at": f"batch {progress['batch']}" if progress.get("batch") is not None else None,
            "lag": progress.get("lag"),
            "dead": progress.get("dead"),
            "declared": str(stream.declared_at) if stream.declared_at else None,
        }

    for pattern in project.matchers:
        name = pattern.name
        progress = (report.get("patterns") or {}).get(name) or {}
        yield {
            "name": name,
            "kind": type(pattern).__name__.lower(),
            "state": progress.get("state", state),
            "at": f"tick {progress['tick']}" if progress.get("tick") else None,
            "lag": progress.get("lag"),
            "dead": progress.get("dead"),
            "declared": str(pattern.declared_at) if pattern.declared_at else None,
        }


def _runs(report: dict[str, Any]) -> dict[str, str]:
    """The views that the running process knows, each with the mark of its text."""
    return (report.get("views") or {}) if report.get("state") in AT_WORK else {}


def _view_state(report: dict[str, Any], name: str, mark: str) -> str:
    """A view's own state while the process runs, else the process's."""
    state = str(report.get("state", "stopped"))
    if state in AT_WORK:  # it lags where a view has failed, which need not be this one
        if name in (report.get("failed") or {}):
            return "failed"
        state = "running"
    runs = _runs(report)
    if runs and runs.get(name) != mark:
        return "changed: `tailrace apply`" if name in runs else "new: `tailrace apply`"
    return filling([report]).get(name, state) if report else state


def _state(process: str, progress: dict[str, Any]) -> str:
    """A stream's own state while the process runs, else the process's."""
    if process not in (*AT_WORK, "starting"):
        return process
    busy = int(progress.get("busy_seconds") or 0)
    long = f", {busy} s in a batch" if busy >= LONG_BATCH_SECONDS else ""
    return str(progress.get("state") or "starting") + long


@click.group()
def pipeline() -> None:
    """Pipelines: status, state, dead letters."""


@pipeline.command("list")
@log_option
@json_option
def list_pipelines(address: str | None, as_json: bool) -> None:
    """Every view and stream of the project."""
    columns = ["name", "kind", "state", "at", "lag", "dead", "declared"]
    print_rows(_rows(_load(address)), columns, as_json=as_json, empty="no views or streams")


@pipeline.command()
@click.argument("name", shell_complete=known_names.pipelines)
@click.option("--verbose", is_flag=True, help="Show the error's traceback too.")
@log_option
@json_option
def status(name: str, verbose: bool, address: str | None, as_json: bool) -> None:
    """Show the status of NAME: where it begins, how far it is, how fast, its last error."""
    project = _load(address)
    _known(project, name)
    report = _report(project)
    found: dict[str, Any] = next(row for row in _rows(project) if row["name"] == name)
    found |= {
        "freshness_ms": report.get("freshness_ms"),
        "error": report.get("error"),
        "pid": report.get("pid"),
    }
    if name in project.streams:
        progress = dict((report.get("streams") or {}).get(name) or {})
        found["error"] = progress.pop("error", None)
        found["progress"] = progress or None
        found["begins"] = _begins(project, name)
    else:
        found["tick_ms"] = report.get("tick_ms")
        found["forgotten"] = report.get("forgotten") or None
        if report.get("state") in AT_WORK:  # else the error is that of them all
            found["error"] = (report.get("failed") or {}).get(name)
    if as_json:
        print_json(found)
        return
    error = found.pop("error")
    figures = found.pop("progress", None) or {}
    if begins := found.pop("begins", None):
        found["begins"] = _begins_in_words(begins)
    for key, value in {**found, **figures, "state": found["state"]}.items():
        if value is not None:
            click.echo(f"{key:<16}{value}")
    if error is not None:
        click.echo(render_in_full(error) if verbose else render(error))


def _begins(project: Project, name: str) -> dict[str, Any] | None:
    """Where a stream begins, as it was written down when it was first run."""
    from tailrace.clock import to_datetime
    from tailrace.pipelines.streams.beginnings import DIRECTORY
    from tailrace.pipelines.streams.checkpoint import StreamFiles

    files = StreamFiles(project.settings.state_directory / DIRECTORY, name)
    document = files.written()
    if document is None:
        return None
    at = document.get("began_ms")
    inputs = [
        {"topics": topics, "offsets": None if start is None else start.offsets}
        for topics, start in zip(document["inputs"], files.starts(), strict=True)
    ]
    moment = None if at is None else to_datetime(at).isoformat(timespec="milliseconds")
    return {"written_at": moment, "inputs": inputs}


def _begins_in_words(begins: dict[str, Any]) -> str:
    """`shop.public.orders/0@17`, per partition; topics that did not exist then, by name."""
    words: list[str] = []
    for one in begins["inputs"]:
        offsets = one["offsets"] or {}
        words += [f"{t}/{p}@{offset}" for t, by in offsets.items() for p, offset in by.items()]
        absent = [topic for topic in one["topics"] or ["a view"] if topic not in offsets]
        words += [f"{topic}: its first record" for topic in absent]
    return ", ".join(words)


def _ask(address: str | None, action: str, name: str) -> None:
    from tailrace.pipelines.process.requests import ask

    project = _load(address)
    _known(project, name)
    ask(project.settings.state_directory, action, name)
    say("asked; it begins within a second (see `tailrace pipeline list`)")


@pipeline.command()
@click.argument("name", shell_complete=known_names.pipelines)
@log_option
@said_option
def restart(name: str, address: str | None) -> None:
    """Start the process that runs NAME again; it goes on from what it last committed."""
    _ask(address, "restart", name)


@pipeline.command()
@click.argument("name", shell_complete=known_names.pipelines)
@log_option
@said_option
def reset(name: str, address: str | None) -> None:
    """Start NAME over: a view is filled again beside itself, a stream forgets its checkpoint."""
    _ask(address, "reset", name)


@pipeline.command()
@click.argument("name", shell_complete=known_names.pipelines)
@click.option("--key", default=None, help="Only entries in which this text occurs.")
@click.option("--limit", default=20, show_default=True, help="Most entries shown with --key.")
@log_option
@json_option
def state(name: str, key: str | None, limit: int, address: str | None, as_json: bool) -> None:
    """What the operators of view NAME keep: rows and bytes, or the entries of a key."""
    import tempfile
    from pathlib import Path

    from tailrace.pipelines.state.files import open_files
    from tailrace.pipelines.state.inspect import entries, sizes
    from tailrace.pipelines.ticks.carried import as_carried
    from tailrace.pipelines.ticks.failed_views import subgraph
    from tailrace.project.explain import compiled

    project = _load(address)
    if name not in project.views:
        raise UsageError(f"no view {name!r} is declared", hint="streams keep Spark's own state")
    tick = _last(project)
    if tick is None:
        raise UsageError("the project has not ticked yet", hint="run it: `tailrace up`")
    graph = compiled(project, _bootstrap(project))
    nodes = subgraph(as_carried(graph, tick), [name]).nodes
    files = open_files(project.settings.spark.state or project.settings.state_directory / "state")
    with tempfile.TemporaryDirectory() as scratch:
        if key is None:
            found = sizes(files, Path(scratch), tick.state)
            rows = [
                {
                    "operator": node.id,
                    "what": node.operator.describe(),
                    "rows": found[node.id].rows if node.id in found else 0,
                    "bytes": found[node.id].bytes if node.id in found else 0,
                }
                for node in nodes
            ]
            print_rows(rows, ["operator", "rows", "bytes", "what"], as_json=as_json)
            return
        kinds = {node.id: node.operator.kind for node in nodes}
        matching = (
            {"operator": kinds[operator], "shard": shard, "key": repr(entry), "value": repr(value)}
            for operator, shard, entry, value in entries(
                files, Path(scratch), tick.state, [node.id for node in nodes]
            )
            if key in repr(entry) or key in repr(value)
        )
        shown = [row for row, _ in zip(matching, range(limit), strict=False)]
    print_rows(shown, ["operator", "shard", "key", "value"], as_json=as_json, empty="no such entry")


@pipeline.command("dead-letters")
@click.argument("name", shell_complete=known_names.pipelines)
@click.option("--retry", is_flag=True, help="Let the stream read them again.")
@log_option
@json_option
def dead_letters(name: str, retry: bool, address: str | None, as_json: bool) -> None:
    """Records that NAME could not read or process; views share those of their project."""
    from tailrace.pipelines.streams.dead_letters import letters, retry_letters

    project = _load(address)
    _known(project, name)
    topic = f"{project.name if name in project.views else name}.dead"
    bootstrap = _bootstrap(project)
    if retry and name in project.views:
        raise UsageError(
            "a table's old record must not be written again behind newer ones",
            hint=f"correct the cause, then `tailrace pipeline reset {name}` reads everything again",
        )
    if retry:
        count = retry_letters(bootstrap, topic)
        click.echo(f"{count} records put into {name}.retry, from where {name} reads them again")
        return
    rows = [orjson.loads(orjson.dumps(letter)) for letter in letters(bootstrap, topic)]
    print_rows(rows, ["position", "reason"], as_json=as_json, empty="no dead letters")
