"""`tailrace doctor`: what this machine has, lacks, and what that means."""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import shutil
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from tailrace import config, modes
from tailrace.cli.output import json_option, print_json
from tailrace.errors import TailraceError
from tailrace.loopback import is_loopback
from tailrace.project_token import asks_everybody


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `good`, `note` (works with less) or `bad` (something cannot run)."""

    what: str
    verdict: str
    found: str
    meaning: str = ""


_MARKS = {"good": "✓", "note": "·", "bad": "✗"}

_OPTIONAL = (
    ("pyspark", "spark", "pipelines and views cannot run"),
    ("pyarrow", "spark", "pipelines and views cannot run"),
    ("lmdb", "spark", "views cannot be served"),
    ("psycopg", "postgres", "Postgres cannot be captured or written"),
    ("fastapi", "console", "no console and no HTTP API"),
    ("duckdb", "duckdb", "no SQL over views, no DuckDB sink"),
    ("tantivy", "search", "no embedded full-text search"),
    ("redis", "redis", "no Redis sink"),
    ("deltalake", "delta", "no Delta sink"),
    ("pymysql", "mysql", "no MySQL sink"),
    ("fastavro", "avro", "no Avro topics"),
)
_SERVERS = (
    ("redis-server", "the demo keeps its cache in SQLite instead"),
    ("mariadbd", "tests against MariaDB are skipped"),
    ("chromium", "browser tests are skipped"),
)


def examine(directory: Path) -> Iterator[Finding]:
    """Everything worth knowing before a project starts in `directory`."""
    yield Finding("Python", "good", platform.python_version())
    yield from _java()
    for module, extra, meaning in _OPTIONAL:
        if importlib.util.find_spec(module):
            yield Finding(module, "good", "installed")
        else:
            yield Finding(module, "note", "missing", f"{meaning}; pip install 'tailrace[{extra}]'")
    for program, meaning in _SERVERS:
        path = shutil.which(program) or shutil.which(program, path="/usr/sbin")
        yield Finding(program, "good" if path else "note", path or "missing", "" if path else meaning)  # fmt: skip
    yield from _disk(directory)
    yield from _limits()
    yield from _settings(directory)


def _java() -> Iterator[Finding]:
    if not importlib.util.find_spec("pyspark"):
        return
    from tailrace.pipelines.spark import java

    try:
        found = java.find()
    except TailraceError as error:
        yield Finding("Java", "bad", error.message, error.hint)
    else:
        yield Finding("Java", "good", f"{found.version} ({found.origin})")


def _disk(directory: Path) -> Iterator[Finding]:
    usage = shutil.disk_usage(directory)
    free = usage.free / 2**30
    verdict = "good" if free > 5 else "note" if free > 1 else "bad"
    meaning = "" if verdict == "good" else "the log stops accepting records when the disk is full"
    yield Finding("disk", verdict, f"{free:.1f} GiB free of {usage.total / 2**30:.1f}", meaning)
    if not os.access(directory, os.W_OK):
        yield Finding("directory", "bad", f"{directory} is read-only", "a project cannot run here")


def _limits() -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    verdict = "good" if hard >= 4096 else "note"
    meaning = (
        "" if verdict == "good" else "each partition and connection takes a file: raise `ulimit -n`"
    )
    yield Finding("open files", verdict, f"{soft} (up to {hard})", meaning)


def _settings(directory: Path) -> Iterator[Finding]:
    try:
        settings = config.load(directory)
    except TailraceError as error:
        yield Finding("settings", "bad", error.message, f"{error.detail} {error.hint}".strip())
        return
    yield from _modes(settings)
    if settings.log.broker.get("transaction.flush") == "false":
        yield Finding("transaction.flush", "note", "off", "a power cut can undo a committed transaction")  # fmt: skip
    if settings.log.bootstrap is None and not is_loopback(config.parse_address(settings.log.listen)[0]):  # fmt: skip
        yield Finding("log.insecure", "note", settings.log.listen, "whoever reaches this port reads and writes everything")  # fmt: skip
    if settings.log.bootstrap is None and asks_everybody(settings.log.broker):
        from tailrace.broker import endpoints
        from tailrace.broker.settings import BrokerSettings

        try:
            given = BrokerSettings(settings.log.broker)
            for what, meaning in endpoints.warnings(given):
                yield Finding("log.broker", "note", what, meaning)
        except TailraceError as error:
            yield Finding("log.broker", "bad", error.message, error.hint)
    for warning in settings.console.warnings:
        found, _, meaning = warning.partition(": ")
        yield Finding("console", "note", found, meaning)
    for name, address in (("log.listen", settings.log.listen), ("console.listen", settings.console.listen)):  # fmt: skip
        host, port = config.parse_address(address)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                yield Finding(name, "note", f"{address}: {error.strerror}", "in use: is the project running already?")  # fmt: skip
            else:
                yield Finding(name, "good", f"{address} is free")


def _modes(settings: config.Settings) -> Iterator[Finding]:
    """Directories that let other users of this machine read the rows in them."""
    mode = settings.project.mode
    others = (settings.spark.state, settings.log.broker.get("tailrace.archive.url"))
    places = [settings.state_directory, settings.log.directory]
    places += [settings.directory / each for each in others if each and "://" not in each]
    for place in places:
        found = modes.looser(place, mode)
        # What is in `.tailrace` is as safe as that is.
        hidden = place != places[0] and place.is_relative_to(places[0])
        if found is not None and not hidden:
            yield Finding(
                "modes",
                "note",
                f"{place} is open to others ({found:04o})",
                f"it holds rows of your databases: `chmod {mode} {place}`, or set project.mode",
            )


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@json_option
def doctor(directory: Path, as_json: bool) -> int:
    """Look at Python, Java, Spark, disk, limits, ports and optional components."""
    findings = list(examine(directory))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            line = f"{_MARKS[finding.verdict]} {finding.what:<18} {finding.found}"
            click.echo(line + (f"  — {finding.meaning}" if finding.meaning else ""))
    return 1 if any(finding.verdict == "bad" for finding in findings) else 0
