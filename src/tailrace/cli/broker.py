"""`tailrace broker`: the log alone, in the foreground, and a look into its files."""

from __future__ import annotations

from pathlib import Path

import click

from tailrace.cli.output import json_option
from tailrace.errors import UsageError


@click.group()
def broker() -> None:
    """The log alone: start it, look into its files."""


@broker.command()
@click.option(
    "--data", "directories", metavar="DIR", multiple=True, required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the log lives; several spread partitions over disks.",
)  # fmt: skip
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:9092", show_default=True,
    help="Address to serve; port 0 picks a free one.",
)  # fmt: skip
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True,
    help="A broker setting by Kafka's name, e.g. log.retention.ms=3600000.",
)  # fmt: skip
@click.option("--metrics", metavar="HOST:PORT", default=None, help="Serve Prometheus metrics here.")
@click.option(
    "--log-level", default="warning", show_default=True,
    type=click.Choice(["debug", "info", "warning", "error"]),
)  # fmt: skip
@click.option("--log-format", default="human", type=click.Choice(["human", "json"]))
def start(
    directories: tuple[Path, ...],
    listen: str,
    settings: tuple[str, ...],
    metrics: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Serve the log to any Kafka client until SIGTERM or Ctrl-C.

    Prints `listening on HOST:PORT` once it answers.
    """
    from tailrace.broker.process import serve
    from tailrace.broker.server import Broker
    from tailrace.broker.settings import BrokerSettings
    from tailrace.telemetry import logs

    logs.configure(log_level, log_format)
    host, port = split_address(listen, "--listen")
    given = dict(_pair(one) for one in settings)
    if metrics:
        given["metrics.listen"] = metrics
    running = Broker(directories, host=host, port=port, settings=BrokerSettings(given))
    serve(running, lambda address: click.echo(f"listening on {address}"))


def split_address(text: str, option: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, `[::1]:9092` included."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise UsageError(
            f"{option} takes HOST:PORT, not {text!r}", hint=f"for example {option} 127.0.0.1:9092"
        )
    return host.strip("[]"), int(port)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(
            f"--set takes NAME=VALUE, not {text!r}", hint="for example --set num.partitions=3"
        )
    return name.strip(), value.strip()


@broker.command()
@click.argument("directories", nargs=-1, required=True, metavar="DIR…",
                type=click.Path(path_type=Path, exists=True, file_okay=False))  # fmt: skip
@json_option
def inspect(directories: tuple[Path, ...], as_json: bool) -> None:
    """Topics, segments, sizes, index health, producers and open transactions.

    Reads the files without starting a broker or changing anything.
    """
    from tailrace.cli.broker_inspect import inspect_directories

    inspect_directories(directories, as_json=as_json)
