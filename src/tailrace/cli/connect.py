"""`tailrace connect`: a worker that runs connectors, in the foreground."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from tailrace.broker.start import LOG_FORMATS as FORMATS
from tailrace.broker.start import LOG_LEVELS as LEVELS
from tailrace.cli.output import bootstrap_address, log_option
from tailrace.errors import UsageError

LISTEN = "127.0.0.1:8083"
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_DIRECTORY = click.Path(path_type=Path, exists=True, file_okay=False)


@click.group()
def connect() -> None:
    """Connectors: sources and sinks of your own, with Kafka Connect's REST interface."""


@connect.command()
@log_option
@click.option("--listen", metavar="HOST:PORT", default=LISTEN, show_default=True, help="Where to serve; port 0 picks a free one.")  # fmt: skip
@click.option("--plugins", metavar="DIR", multiple=True, type=_DIRECTORY, help="A directory of modules with connectors and transforms; may be given several times.")  # fmt: skip
@click.option("--set", "given", metavar="NAME=VALUE", multiple=True, help="A setting of the worker by Kafka Connect's name, such as group.id.")  # fmt: skip
@click.option("--users", metavar="FILE", type=_FILE, help="Ask who comes in: a line NAME: PASSWORD each; `, read` behind it for those who may only read.")  # fmt: skip
@click.option("--cert", metavar="FILE", type=_FILE, help="Serve HTTPS with this certificate (PEM).")
@click.option("--key", metavar="FILE", type=_FILE, help="The private key of --cert (PEM).")
@click.option("--ca", metavar="FILE", type=_FILE, help="Authorities (PEM) of the other workers' certificates; the system's if absent.")  # fmt: skip
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without asking who comes in or without TLS.")  # fmt: skip
@click.option("--log-level", default="warning", show_default=True, type=click.Choice(LEVELS))
@click.option("--log-format", default="human", type=click.Choice(FORMATS))
def start(
    address: str | None,
    listen: str,
    plugins: tuple[Path, ...],
    given: tuple[str, ...],
    users: Path | None,
    cert: Path | None,
    key: Path | None,
    ca: Path | None,
    insecure: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Run connectors until SIGTERM or Ctrl-C.

    Prints `listening on HOST:PORT` once it answers. Workers of one log with the same group.id share
    the connectors: they spread the tasks, and take over those of a worker that dies.
    """
    from tailrace.client.log import connect as connect_to
    from tailrace.connectors.serve import ConnectServer, Settings
    from tailrace.telemetry import logs

    logs.configure(log_level, log_format)
    pairs: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"--set {each} has no value", hint="--set NAME=VALUE")
        pairs[name.strip()] = value
    settings = Settings(listen, plugins, pairs, insecure, users, cert, key, ca)
    stopping = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stopping.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    at = bootstrap_address(address)
    try:
        with connect_to(at) as log, ConnectServer(log, at, settings) as server:
            server.start()
            click.echo(f"listening on {server.address}")
            stopping.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
