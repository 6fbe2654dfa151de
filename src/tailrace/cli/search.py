"""`tailrace search NAME "words"`: ask the embedded full-text copies."""

from __future__ import annotations

import click

from tailrace.cli.output import json_option, log_option, print_json, print_rows


@click.command()
@click.argument("name")
@click.argument("words")
@click.option("--limit", default=10, show_default=True, help="How many rows at most.")
@log_option
@json_option
def search(name: str, words: str, limit: int, address: str | None, as_json: bool) -> None:
    """Rows of the full-text copy NAME (a sink or the view it copies) that match WORDS.

    `*` matches everything; `"red shoes"`, `title:red`, `price:[10 TO 20]`, AND, OR and NOT
    are understood.
    """
    from tailrace.project.load import load
    from tailrace.project.search import search as find

    found = find(load(address or "."), name, words, limit)
    if as_json:
        print_json(found)
        return
    rows = [{"score": item["score"], **item["row"]} for item in found]
    print_rows(rows, list(rows[0]) if rows else [], as_json=False, empty="nothing matches")
