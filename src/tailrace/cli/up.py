"""`tailrace up`: run a project until Ctrl-C."""

from __future__ import annotations

import signal
import types
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tailrace.cli.output import tell

if TYPE_CHECKING:
    from tailrace.node.plan import Plan


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")  # fmt: skip
@click.option("--only", multiple=True, metavar="NAME", help="Start only these parts, with the log and the console.")  # fmt: skip
@click.option("--listen", help="Where the embedded log listens (HOST:PORT).")
@click.option("--console", "console_listen", help="Where the console listens (HOST:PORT).")
@click.option("--quiet", is_flag=True, help="Keep the parts' output out of the terminal.")
def up(
    directory: Path,
    only: tuple[str, ...],
    listen: str | None,
    console_listen: str | None,
    quiet: bool,
) -> None:
    """Run the project in DIRECTORY: broker, sources, pipelines, sinks, views, console.

    Prints `ready` once every part runs. Ctrl-C drains and stops.
    """
    from tailrace.node.plan import plan

    flags = {"log.listen": listen, "console.listen": console_listen}
    run_project(plan(directory, flags=flags, only=only), quiet=quiet)


def run_project(project: Plan, *, quiet: bool = False) -> None:
    """Supervise until a signal comes; prints `console …` and `ready` on stdout."""
    from tailrace.node.supervisor import Supervisor
    from tailrace.telemetry import logs
    from tailrace.telemetry.part import read_reports

    logs.configure()
    stop: list[int] = []

    def leave(number: int, frame: types.FrameType | None) -> None:
        stop.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
    echo = (lambda line: None) if quiet else tell
    with Supervisor(project, echo=echo) as supervisor:
        supervisor.start()
        announced = ready = False
        while not stop:
            supervisor.run_once()
            if not announced:
                for report in read_reports(supervisor.directory):
                    if report["kind"] == "console" and report.get("address"):
                        click.echo(f"console {report['address']}")
                        announced = True
            if not ready and supervisor.ready():
                click.echo("ready")
                ready = True
        click.echo("stopping", err=True)
