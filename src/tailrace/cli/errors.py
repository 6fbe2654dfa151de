"""`tailrace errors CODE`: what an error code means."""

from __future__ import annotations

import difflib
import inspect

import click

from tailrace.cli.output import json_option, print_json, print_rows
from tailrace.errors import UsageError, all_errors, explain


@click.command()
@click.argument("code", required=False)
@json_option
def errors(code: str | None, as_json: bool) -> None:
    """Explain CODE, or list every code."""
    if code is None:
        rows: list[dict[str, str]] = [
            {"code": kind.code, "meaning": _text(kind).split(". ")[0].rstrip(".")}
            for kind in all_errors()
        ]
        rows.sort(key=lambda row: row["code"])
        print_rows(rows, ["code", "meaning"], as_json=as_json)
        return
    kind = explain(code)
    if kind is None:
        near = difflib.get_close_matches(code, [known.code for known in all_errors()], n=1)
        raise UsageError(
            f"there is no error code `{code}`",
            hint=f"did you mean `{near[0]}`?" if near else "`tailrace errors` lists all codes",
        )
    if as_json:
        print_json({"code": kind.code, "meaning": _text(kind)})
    else:
        click.echo(f"{kind.code}\n\n{click.wrap_text(_text(kind), 79, '  ', '  ')}")


def _text(kind: type) -> str:
    return " ".join((inspect.getdoc(kind) or "").split())
