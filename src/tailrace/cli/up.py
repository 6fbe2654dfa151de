"""`tailrace up`: run a project until Ctrl-C."""

from __future__ import annotations

import signal
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tailrace.cli.output import directory_argument, tell

if TYPE_CHECKING:
    from tailrace.node.plan import Plan

TELL_SECONDS = 5.0


@click.command()
@directory_argument(exists=True)
@click.option("--only", multiple=True, metavar="NAME", help="Start only these parts, with the log and the console.")  # fmt: skip
@click.option("--listen", help="Where the embedded log listens (HOST:PORT).")
@click.option("--console", "console_listen", help="Where the console listens (HOST:PORT).")
@click.option("--quiet", is_flag=True, help="Keep the parts' output out of the terminal.")
@click.option("--watch", is_flag=True, help="Take over what changes in the project's files, as `tailrace apply` does.")  # fmt: skip
def up(
    directory: Path,
    only: tuple[str, ...],
    listen: str | None,
    console_listen: str | None,
    quiet: bool,
    watch: bool,
) -> None:
    """Run the project in DIRECTORY: broker, sources, pipelines, sinks, views, console.

    Prints `ready` once every part runs and every view answers; after a minute of filling it
    says `ready, still filling: …`. Ctrl-C drains and stops.
    """
    from tailrace.node.plan import plan

    flags = {"log.listen": listen, "console.listen": console_listen}
    run_project(plan(directory, flags=flags, only=only), quiet=quiet, watch=watch)


def run_project(project: Plan, *, quiet: bool = False, watch: bool = False) -> None:
    """Supervise until a signal comes; prints `console …` and `ready` on stdout."""
    from tailrace import console_token
    from tailrace.cli.progress import Progress
    from tailrace.node.supervisor import Supervisor
    from tailrace.node.takeover import TakeOver
    from tailrace.telemetry import logs
    from tailrace.telemetry.part import read_reports

    logs.configure()
    stop: list[int] = []

    def leave(number: int, frame: types.FrameType | None) -> None:
        stop.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
    progress = Progress(quiet=quiet)
    echo = (lambda line: None) if quiet else progress.say
    with Supervisor(project, echo=echo) as supervisor:
        supervisor.start()
        changes = TakeOver(supervisor, progress.say, watch, stopping=lambda: bool(stop))
        announced = ready = False
        wait = FillWait(say=progress.say)
        while not stop:
            supervisor.run_once()
            supervisor.check_state()
            reports = [] if ready else read_reports(supervisor.directory)
            progress.look(reports)
            if not announced:
                for report in reports:
                    if report["kind"] == "console" and report.get("address"):
                        token = console_token.read(supervisor.directory)
                        progress.done(again=True)
                        click.echo(f"console {console_token.link(report['address'], token)}")
                        announced = True
            if not ready and supervisor.parts_run():
                line = wait.line(supervisor.filling(), supervisor.clock.monotonic())
                ready = line is not None
                if line is not None:
                    progress.done()
                    click.echo(line)
            if announced:
                changes.step()
        changes.close()
        progress.done()
        tell("stopping")
        supervisor.drain(lambda: progress.leave(supervisor.running))
        progress.done()


@dataclass(slots=True)
class FillWait:
    """What to say of a project whose parts run: `ready` once every view answers, or, after a
    while of filling, what is still to come."""

    began: float | None = None
    said: float = float("-inf")
    say: Callable[[str], None] = tell

    def line(self, filling: Mapping[str, str], now: float) -> str | None:
        """The line to print, if it is time; tells on stderr meanwhile how far fills are."""
        from tailrace.node.health import FILL_PATIENCE_SECONDS

        self.began = now if self.began is None else self.began
        if not filling:
            return "ready"
        words = ", ".join(f"{name} ({how})" for name, how in filling.items())
        if now - self.began >= FILL_PATIENCE_SECONDS:
            return f"ready, still filling: {words}"
        if now - self.said >= TELL_SECONDS:
            self.said = now
            self.say(f"filling: {words}")
        return None
