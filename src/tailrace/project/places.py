"""Where a view's SQL stands in the user's files, so that an error names the line to open."""

from __future__ import annotations

import ast
from pathlib import Path

from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.syntax.parse import line_pointed_at
from tailrace.pipelines.declare import View


def tell_place(error: TailraceError, view: View, declared_at: str, home: Path) -> None:
    """Put into an error's detail where its line of SQL is written, else where `view` is
    declared."""
    line = line_pointed_at(error.detail)
    where = None if line is None else _line_in_file(view, line)
    if where is None or view.declared_at is None:
        told = f"declared at {declared_at}"
    else:
        path = Path(view.declared_at.file)
        told = f"at {path.relative_to(home) if path.is_relative_to(home) else path}:{where}"
    if told not in error.detail.splitlines():
        error.detail = f"{error.detail}\n{told}".strip()


def _line_in_file(view: View, line: int) -> int | None:
    """The line of the file with line `line` of the view's SQL; None where the SQL is not
    written down as it is (put together from parts, in another file)."""
    if view.declared_at is None:
        return None
    try:
        text = Path(view.declared_at.file).read_text(encoding="utf-8")
        if text == view.sql:
            return line  # a file of SQL
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return None
    wanted, written = view.sql.splitlines(), text.splitlines()
    found = [
        node.lineno + line - 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == view.sql
    ]
    # Text in quotes of one line may go over several lines: told by what stands there.
    fitting = [
        at
        for at in found
        if at <= len(written) and line <= len(wanted) and wanted[line - 1] in written[at - 1]
    ]
    # Of two that are alike, the one at the declaration or the nearest before it.
    return min(fitting, key=lambda at: abs(at - view.declared_at.line), default=None)  # type: ignore[union-attr]
