"""The `tailrace` command.

Sub-commands are imported when they are called, so `tailrace --help` loads no room.
Exit status: 0 good; 1 the answer is "no" or work failed; 2 wrong usage.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from types import TracebackType

import click

from tailrace import __version__
from tailrace.errors import (
    EnvironmentProblem,
    NotWritableError,
    PortInUseError,
    TailraceError,
    UsageError,
)
from tailrace.extras import component_missing
from tailrace.masking import mask

# group → name → (module in tailrace.cli, one line of help); shown in this order.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("demo", "A shop with live traffic: database, capture, views, sinks, console."),
        "init": ("init", "Make a project."),
        "up": ("up", "Run a project."),
        "deploy": ("deploy", "Files that run a project on Kubernetes or YARN."),
        "apply": ("apply", "Take over the changed files of a running project; shown first."),
    },
    "Look": {
        "status": ("status", "Show every part: running, lagging, stopped."),
        "sql": ("sql", "Query the project's views in one consistent tick."),
        "shell": ("shell", "A prompt for SQL, with completion of views and columns."),
        "search": ("search", "Search the embedded full-text sinks."),
        "graph": ("graph", "Draw what feeds what."),
        "mcp": ("mcp", "Answer an assistant's questions (Model Context Protocol)."),
    },
    "Validate": {
        "check": ("check", "Validate everything without running it."),
        "test": ("test", "Run the project's own tests."),
        "plan": ("plan", "Tell how many partitions and brokers a load needs."),
        "doctor": ("doctor", "Tell what this machine has and lacks, and what that means."),
        "errors": ("errors", "Explain an error code."),
    },
    "Operate a project": {
        "source": ("source", "Databases captured into the log."),
        "pipeline": ("pipeline", "Pipelines: status, state, dead letters."),
        "view": ("view", "Views: look up, watch, explain, compare with Spark, rebuild."),
        "pattern": ("pattern", "Patterns of events: steps, partial matches, how they are kept."),
        "percolate": ("percolate", "Stored queries: what they cost, which match an event."),
        "sink": ("sink", "Sinks: status, replay, verify, dead letters."),
        "events": ("events", "Event topics: states, histories, commands, owners."),
        "erase": ("erase", "Erase what is known of a subject, with a proof."),
        "schema": ("schema", "Schemas of a registry: list, get, check, register."),
    },
    "Operate the log": {
        "topic": ("topic", "Topics: list, create, read, write, alter."),
        "group": ("group", "Consumer groups: lag, members, reset."),
        "broker": ("broker", "The log alone: start it, its users, a look into its files."),
        "cluster": ("cluster", "Leaders, in-sync replicas, controller; elections, moves."),
        "mirror": ("mirror", "Topics of one log kept in another, exactly once."),
        "verify": ("verify", "Test the promises of a log while its processes are hurt."),
        "registry": ("registry", "A schema registry with Confluent's REST interface."),
        "connect": (
            "connect",
            "Connectors: sources and sinks of your own, with Kafka Connect's REST interface.",
        ),
        "quota": ("quota", "How much clients may send, fetch and ask."),
        "acl": ("acl", "Who may do what at the log."),
        "certificate": ("certificate", "Certificates to try TLS with on a laptop."),
    },
    "This program": {
        "version": ("version", "Version of Tailrace and of its dependencies."),
        "completion": ("completion", "Shell completion for bash, zsh or fish."),
    },
}
COMMANDS = {name: told for group in GROUPS.values() for name, told in group.items()}


class LazyCommands(click.Group):
    """A group whose commands live in modules that are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tailrace.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            raise UsageError(
                f"there is no command `{args[0]}`",
                hint=f"did you mean `tailrace {near[0]}`?" if near else "see `tailrace --help`",
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in group.items()], col_max=14)


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="tailrace %(version)s")
def cli() -> None:
    """Tailrace keeps every copy of your data in step with its source."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; every error leaves in its four-part form."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    sys.excepthook = _tell_bug
    try:
        status = cli.main(args=arguments, prog_name="tailrace", standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except TailraceError as error:
        _fail(error, arguments, 2 if isinstance(error, UsageError) else 1)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.Abort as aborted:
        interrupted = isinstance(aborted.__cause__, KeyboardInterrupt)
        if not interrupted and (sys.stdin is None or not sys.stdin.isatty()):
            unasked = UsageError(
                "this asks for confirmation, and there is no terminal", hint="give --yes"
            )
            _fail(unasked, arguments, 2)
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f"see `{context.command_path} --help`" if context else "see `tailrace --help`"
        message = error.format_message().rstrip(".")
        usage = UsageError(message[:1].lower() + message[1:], hint=hint)
        _fail(usage, arguments, 2)
    except BrokenPipeError:
        # The reader of our output went away (`tailrace topic read … | head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(machine_error(error), arguments, 1)
    except ImportError as error:
        lacking = component_missing(error)
        if lacking is None:
            raise
        _fail(lacking, arguments, 1)


def _tell_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The traceback of an error nobody foresaw, without the secrets that may be in it."""
    import traceback

    sys.stderr.write(mask("".join(traceback.format_exception(kind, error, trace))))


def machine_error(error: OSError) -> TailraceError:
    """An error of the operating system in four parts."""
    place = f"{error.filename}: " if error.filename else ""
    detail = f"{place}{error.strerror or error}"
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return NotWritableError(
                "the operating system refuses access",
                detail=detail,
                hint="choose a directory you own",
            )
        case errno.EADDRINUSE:
            return PortInUseError(
                "another process listens there", detail=detail, hint="choose another port, or 0"
            )
        case errno.ENOSPC | errno.EDQUOT:
            return EnvironmentProblem(
                "the disk is full",
                detail=detail,
                hint="free some space; nothing acknowledged is lost",
            )
        case _:
            return EnvironmentProblem("the operating system reports an error", detail=detail)


def _fail(error: TailraceError, arguments: Sequence[str], status: int) -> None:
    if "--json" in arguments:
        import orjson

        click.echo(orjson.dumps(error.as_dict()), err=True)
    else:
        click.echo(error.render(), err=True)
    sys.exit(status)
