"""`tailrace completion SHELL`: the script that completes commands on TAB."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tailrace.errors import UsageError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL; add it to your shell's start file.

    \b
    bash:  eval "$(tailrace completion bash)"
    """
    from tailrace.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"no completion for {shell}")
    script = kind(cli, {}, "tailrace", "_TAILRACE_COMPLETE")
    try:
        click.echo(script.source())
    except RuntimeError as error:  # bash older than 4.4
        raise UsageError(str(error).rstrip(".")) from error
