"""Names that TAB completes: of views, pipelines, patterns, sinks, sources and topics.

They are read from the reports of the project in `--project`, or here; of topics the log is
asked, if it answers at once. Whatever goes wrong, nothing is completed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

Complete = Callable[[click.Context, click.Parameter, str], list[str]]

PATIENCE_SECONDS = 0.3


def _completed(names: Callable[[Path], Iterable[str]]) -> Complete:
    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        chosen = context.params.get(parameter.name or "")
        given = set(chosen) if isinstance(chosen, tuple) else set()
        try:
            found = names(_directory(context))
        except Exception:  # a person types on, and is told by the command
            return []
        return sorted(name for name in set(found) - given if name.startswith(begun))

    return complete


def _directory(context: click.Context) -> Path:
    """The project's directory: that of `--project`, else here."""
    from tailrace.cli.output import said_directory

    return Path(said_directory(context) or ".")


def _reports(directory: Path) -> list[dict[str, Any]]:
    from tailrace.telemetry.part import read_reports

    return read_reports(directory / ".tailrace")


def _matchers(kind: str, directory: Path) -> list[str]:
    """Patterns or percolations, which are reported together."""
    told = [one.get("patterns") or {} for one in _reports(directory) if one["kind"] == "pipelines"]
    return [name for each in told for name, about in each.items() if about.get("kind", "pattern") == kind]  # fmt: skip


def _of_pipelines(fact: str, directory: Path) -> list[str]:
    return [name for one in _reports(directory) for name in (one.get(fact) or ()) if one["kind"] == "pipelines"]  # fmt: skip


def _parts(kind: str, directory: Path) -> list[str]:
    return [str(one["name"]) for one in _reports(directory) if one["kind"] == kind]


def _event_topics(directory: Path) -> list[str]:
    return [name for one in _reports(directory) if one["kind"] == "events" for name in one.get("topics") or ()]  # fmt: skip


def _topics(directory: Path) -> list[str]:
    from tailrace import config
    from tailrace.client.admin import Admin
    from tailrace.client.cluster import parse_addresses
    from tailrace.node.health import log_address

    address = log_address(config.load(directory))
    # A log that does not answer must not hold up who types.
    socket.create_connection(parse_addresses(address)[0], timeout=PATIENCE_SECONDS).close()
    with Admin(address, timeout=2.0) as admin:
        return [topic.name for topic in admin.list_topics() if not topic.name.startswith("__")]


views = _completed(lambda directory: _of_pipelines("views", directory))
pipelines = _completed(
    lambda directory: [*_of_pipelines("views", directory), *_of_pipelines("streams", directory)]
)
patterns = _completed(lambda directory: _matchers("pattern", directory))
percolations = _completed(lambda directory: _matchers("percolation", directory))
events = _completed(_event_topics)
sinks = _completed(lambda directory: _parts("sink", directory))
sources = _completed(lambda directory: _parts("source", directory))
topics = _completed(_topics)
