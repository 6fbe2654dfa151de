"""`tailrace broker`: the log alone, in the foreground, and a look into its files."""

from __future__ import annotations

from pathlib import Path

import click

from tailrace.broker.start import LISTEN, LOG_FORMATS, LOG_LEVELS
from tailrace.cli.acl import acl
from tailrace.cli.broker_users import user
from tailrace.cli.output import json_option


@click.group()
def broker() -> None:
    """The log alone: start it, its users, a look into its files."""


broker.add_command(user)


broker.add_command(acl)


@broker.command()
@click.option(
    "--data", "directories", metavar="DIR", multiple=True, required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the log lives; several spread partitions over disks.",
)  # fmt: skip
@click.option(
    "--listen", metavar="[NAME://]HOST:PORT,…", default=None,
    help=f"Addresses to serve, the setting `listeners`; port 0 picks a free one.  [default: {LISTEN}]",
)  # fmt: skip
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True,
    help="A broker setting by Kafka's name, e.g. log.retention.ms=3600000.",
)  # fmt: skip
@click.option(
    "--config", "properties", metavar="FILE", multiple=True,
    help="Broker settings in a file, as Kafka's server.properties; ${NAME} is a variable.",
)  # fmt: skip
@click.option(
    "--insecure", is_flag=True,
    help="Let anybody who reaches the address read and write: PLAINTEXT where other machines come.",
)  # fmt: skip
@click.option("--metrics", metavar="HOST:PORT", default=None, help="Serve Prometheus metrics here.")
@click.option(
    "--log-level", default="warning", show_default=True,
    type=click.Choice(LOG_LEVELS),
)  # fmt: skip
@click.option("--log-format", default="human", type=click.Choice(LOG_FORMATS))
def start(
    directories: tuple[Path, ...],
    listen: str | None,
    settings: tuple[str, ...],
    properties: tuple[str, ...],
    insecure: bool,
    metrics: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Serve the log to any Kafka client until SIGTERM or Ctrl-C.

    Prints `listening on HOST:PORT` once it answers.
    """
    from tailrace.broker.start import Start, run

    run(
        Start(
            [str(directory) for directory in directories],
            listen,
            list(settings),
            list(properties),
            metrics,
            insecure,
            log_level,
            log_format,
        )
    )


@broker.command()
@click.argument("directories", nargs=-1, required=True, metavar="DIR…",
                type=click.Path(path_type=Path, exists=True, file_okay=False))  # fmt: skip
@click.option("--check", is_flag=True, help="Read every batch and compare it with its checksum; status 1 if one is damaged.")  # fmt: skip
@json_option
def inspect(directories: tuple[Path, ...], check: bool, as_json: bool) -> None:
    """Topics, segments, sizes, index health, producers and open transactions.

    Reads the files without starting a broker or changing anything.
    """
    from tailrace.cli.broker_inspect import inspect_directories

    if not inspect_directories(directories, check=check, as_json=as_json):
        raise SystemExit(1)
