"""`tailrace shell`: a prompt for SQL over the views.

In a terminal TAB completes words of SQL, views and columns, and the arrows bring back earlier
statements; they are kept in `.tailrace/sql_history`. Without one, statements are read from the
standard input. A statement ends with `;` or, at the prompt, with an empty line.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from tailrace.cli.output import log_option, print_rows
from tailrace.cli.view import open_views
from tailrace.errors import TailraceError
from tailrace.modes import make_private
from tailrace.serving.reader import Views
from tailrace.serving.remote import RemoteViews

HISTORY = "sql_history"
LONGEST_HISTORY = 1000
PROMPT, MORE = "tailrace> ", "       -> "
HELP = "A statement ends with `;`.  .views lists views and columns,  .quit or Ctrl-D leaves."
COMMANDS = (".help", ".quit", ".views")
WORDS = ["SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "HAVING", "LIMIT", "JOIN", "LEFT", "ON", "AND", "OR", "NOT", "NULL", "IS", "IN", "LIKE", "BETWEEN", "AS", "DISTINCT", "COUNT(", "SUM(", "AVG(", "MIN(", "MAX(", "CASE", "WHEN", "THEN", "ELSE", "END", "WITH", "UNION", "DESC"]  # fmt: skip


@click.command()
@log_option
def shell(address: str | None) -> int:
    """A prompt for SQL over the views, with completion of views and columns.

    \b
    tailrace shell
    echo 'SELECT * FROM open_orders;' | tailrace shell
    """
    with open_views(address) as views:
        columns = columns_of(views)
        if not sys.stdin.isatty():
            return run_all(views, columns, split(sys.stdin))
        return _prompt(views, columns, _history_of(address))


def columns_of(views: Views | RemoteViews) -> dict[str, list[str]]:
    """The columns of every view."""
    if isinstance(views, Views):
        return {name: [column for column, _ in views.describe(name).columns] for name in views}
    return {one["name"]: [column for column, _ in one["columns"]] for one in views.describe_all()}


def split(lines: Iterable[str]) -> Iterator[str]:
    """Statements of a text, each to its `;`, which counts only outside quotes and comments."""
    statement, quote = "", ""
    for line in lines:
        for at, letter in enumerate(line):
            if quote:
                quote = "" if letter == quote else quote
            elif line.startswith("--", at):
                statement += "\n"
                break
            elif letter in "'\"":
                quote = letter
            elif letter == ";":
                if statement.strip():
                    yield statement.strip()
                statement = ""
                continue
            statement += letter
        if not quote and statement.strip() in COMMANDS:
            yield statement.strip()
            statement = ""
    if statement.strip():
        yield statement.strip()


def run_all(
    views: Views | RemoteViews, columns: Mapping[str, Sequence[str]], statements: Iterable[str]
) -> int:
    """Answer one statement after the other; 1 if one failed."""
    status = False
    for statement in statements:
        if statement == ".quit":
            break
        status |= not _answered(views, columns, statement)
    return int(status)


def _answered(
    views: Views | RemoteViews, columns: Mapping[str, Sequence[str]], statement: str
) -> bool:
    if statement == ".help":
        click.echo(HELP)
        return True
    if statement == ".views":
        rows = [{"view": name, "columns": ", ".join(of)} for name, of in sorted(columns.items())]
        print_rows(rows, ["view", "columns"], as_json=False, empty="no views")
        return True
    try:
        page = views.sql(statement)
    except TailraceError as error:
        click.echo(error.render(), err=True)
        return False
    found = list(page.rows[0]) if page.rows else []
    print_rows(page.rows, found, as_json=False, empty="no rows")
    click.echo(f"at {page.position}", err=True)
    return True


def completions(columns: Mapping[str, Sequence[str]], line: str, begun: str) -> list[str]:
    """What `begun`, the last word of `line`, may become: columns of the views named in the line
    first, then views, words of SQL, and columns of all others."""
    if line.lstrip().startswith("."):
        return [word for word in COMMANDS if word.startswith(begun)]
    view, dot, part = begun.rpartition(".")
    if dot:
        return [f"{view}.{one}" for one in columns.get(view, ()) if one.startswith(part)]
    named = [name for name in columns if name in line and name != begun]
    near = [one for name in named for one in columns[name]]
    others = [one for of in columns.values() for one in of] if not named else []
    small = begun.islower()
    words = [word.lower() if small else word for word in WORDS]
    found = [*near, *sorted(columns), *words, *others]
    return [one for one in dict.fromkeys(found) if one.lower().startswith(begun.lower())]


def _history_of(address: str | None) -> Path | None:
    from tailrace.project.found import settings_of

    if address and ":" in address and not address.startswith((".", "/")):
        return None  # a console elsewhere: there is no project here to keep it in
    return settings_of(address or ".").state_directory / HISTORY


def _prompt(
    views: Views | RemoteViews, columns: Mapping[str, Sequence[str]], history: Path | None
) -> int:
    import readline

    def complete(begun: str, number: int) -> str | None:
        found = completions(columns, readline.get_line_buffer(), begun)
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,()=<>+-*/;")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(LONGEST_HISTORY)
    if history is not None:
        with contextlib.suppress(OSError):
            readline.read_history_file(history)
    click.echo(f"{len(columns)} view{'' if len(columns) == 1 else 's'}. {HELP}")
    try:
        for statement in _typed(input):
            if statement == ".quit":
                break
            _answered(views, columns, statement)
    finally:
        if history is not None:
            make_private(history.parent)
            with contextlib.suppress(OSError):
                readline.write_history_file(history)
                history.chmod(0o600)
    return 0


def _typed(ask: Callable[[str], str]) -> Iterator[str]:
    """Statements as they are typed, until the end of the input; Ctrl-C drops what is begun."""
    begun: list[str] = []
    while True:
        try:
            line = ask(MORE if begun else PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            begun = []
            continue
        begun.append(line + "\n")
        text = "".join(begun)
        whole = text.rstrip().endswith(";") or text.strip() in COMMANDS
        if whole or not line.strip():
            yield from split(begun)
            begun = []
