"""`tailrace registry`: the schema registry, in the foreground."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from tailrace.broker.start import LOG_FORMATS as FORMATS
from tailrace.broker.start import LOG_LEVELS as LEVELS
from tailrace.cli.output import bootstrap_address, log_option

LISTEN = "127.0.0.1:8081"
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group()
def registry() -> None:
    """A schema registry with Confluent's REST interface."""


@registry.command()
@log_option
@click.option("--listen", metavar="HOST:PORT", default=LISTEN, show_default=True, help="Where to serve; port 0 picks a free one.")  # fmt: skip
@click.option("--topic", metavar="NAME", default="_schemas", show_default=True, help="The topic that holds everything.")  # fmt: skip
@click.option("--users", metavar="FILE", type=_FILE, help="Ask who comes in: a line NAME: PASSWORD each; `, read` behind it for those who may only read.")  # fmt: skip
@click.option("--cert", metavar="FILE", type=_FILE, help="Serve HTTPS with this certificate (PEM).")
@click.option("--key", metavar="FILE", type=_FILE, help="The private key of --cert (PEM).")
@click.option("--client-ca", metavar="FILE", type=_FILE, help="Let in only who shows a certificate of these authorities (PEM).")  # fmt: skip
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without asking who comes in or without TLS.")  # fmt: skip
@click.option("--log-level", default="warning", show_default=True, type=click.Choice(LEVELS))
@click.option("--log-format", default="human", type=click.Choice(FORMATS))
def start(
    address: str | None,
    listen: str,
    topic: str,
    users: Path | None,
    cert: Path | None,
    key: Path | None,
    client_ca: Path | None,
    insecure: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Serve subjects and schemas until SIGTERM or Ctrl-C.

    Prints `listening on HOST:PORT` once it answers. Everything is kept in one compacted topic of
    the log; several registries may serve the same one.
    """
    from tailrace.client.log import connect
    from tailrace.registry.serve import RegistryServer, Settings
    from tailrace.telemetry import logs

    logs.configure(log_level, log_format)
    settings = Settings(listen, topic, users, cert, key, client_ca, insecure)
    stopping = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stopping.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        with connect(bootstrap_address(address)) as log, RegistryServer(log, settings) as server:
            server.start()
            click.echo(f"listening on {server.address}")
            stopping.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
