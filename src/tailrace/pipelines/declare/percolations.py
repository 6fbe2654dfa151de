"""`tr.percolate`: stored queries, each matched against every event of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tailrace.analyzers import LANGUAGES, is_language
from tailrace.pipelines.declare.checks import (
    are_names,
    as_names,
    as_targets,
    caller,
    check_kinds,
    checked_name,
    refused,
    require_one_of,
)
from tailrace.pipelines.declare.declarations import Input, Percolation, Place, TableLike, Topic
from tailrace.pipelines.declare.patterns import check_events_input

OWN_COLUMNS = ("op", "query_id", "query_version", "event")  # of what a percolation reports


def percolate(
    name: str,
    stream: Input,
    *,
    queries: TableLike | Topic,
    id: str,
    query: str,
    text: str | Sequence[str] | Mapping[str, str] = (),
    fields: str | Sequence[str] = (),
    carry: str | Sequence[str] = (),
    language: str | None = None,
    operator: str = "or",
    once: str | None = None,
    per_hour: str | None = None,
    to: object | Iterable[object] = (),
) -> Percolation:
    """Stored queries over a stream; see `Percolation`.

    `queries` is a captured table, or a topic with a key: rows that come, change and go while this
    runs. `id` is its key, `query` the column of the query's text; `carry` are columns that stand
    in every match. `text`: the columns of the stream that are searched word by word, as
    `sinks.Search` does: `{"title": "text:en", "body": "text"}`, or names alone with one `language`
    for all. `fields`: the columns that are compared as a whole. `operator`: whether bare words
    mean any of them ("or") or all ("and"). `once`: a column that is true for queries reported
    once; `per_hour`: a column with the most matches to report within an hour.
    """
    place = caller()
    check_kinds(place, "tr.percolate", percolate, locals())
    what = f'percolation "{name}"'
    check_events_input(place, stream, False, "percolation")
    if isinstance(queries, Topic):
        if not queries.tabular or not queries.key:
            raise refused(
                place,
                f'topic "{queries.name}" has no key: its rows cannot change or go',
                f'tr.topic("{queries.name}", schema="id BIGINT, query STRING", key="id")',
            )
    elif getattr(queries, "kind", None) != "table":
        raise refused(
            place,
            f"queries= of {what} is {queries!r}",
            'a table of a source, shop.table("saved_searches"), or a topic with a key',
        )
    for given, column in (("id", id), ("query", query), ("once", once), ("per_hour", per_hour)):
        if column is not None and not column:
            raise refused(place, f"{given}= of {what} is empty", f'{given}="…", a column')
    if id == query:
        raise refused(place, f"id= and query= of {what} are one column", 'id="id", query="query"')
    texts = _text_columns(place, what, text, language)
    compared, carried = _column_names(place, what, "fields", fields), _column_names(place, what, "carry", carry)  # fmt: skip
    if not texts and not compared:
        raise refused(place, f"{what} has neither text= nor fields=", 'text=["title"]')
    twice = {name for name, _ in texts} & set(compared)
    if twice:
        raise refused(
            place, f"{what}: column {min(twice)!r} is in text= and in fields=", "leave one out"
        )
    taken = [column for column in carried if column in OWN_COLUMNS or column.startswith("__")]
    if taken:
        raise refused(
            place,
            f"carry= of {what} has {taken[0]!r}, which every match has of its own",
            "name another column of the queries",
        )
    require_one_of(place, "operator", operator, ("or", "and"))
    return Percolation(
        checked_name(name, place), stream, queries, id, query, texts, compared, carried,
        operator == "and", once, per_hour, as_targets(to), place,
    )  # fmt: skip


def _text_columns(
    place: Place, what: str, text: str | Sequence[str] | Mapping[str, str], language: str | None
) -> tuple[tuple[str, str], ...]:
    """Columns and their languages."""
    if not isinstance(text, Mapping):
        text = dict.fromkeys(_column_names(place, what, "text", text), "text")
    found: list[tuple[str, str]] = []
    for column, treatment in text.items():
        kind, colon, own = treatment.partition(":")
        if kind != "text" or (colon and not is_language(own)):
            raise refused(
                place,
                f"text= of {what}: column {column!r} cannot be {treatment!r}",
                f"text, or text and a language as in text:en; languages: {', '.join(LANGUAGES)}",
            )
        found.append((column, own or language or ""))
    if language is not None and not is_language(language):
        raise refused(
            place, f"unknown language {language!r} of {what}", f"one of {', '.join(LANGUAGES)}"
        )
    return tuple(found)


def _column_names(
    place: Place, what: str, given: str, columns: str | Sequence[str]
) -> tuple[str, ...]:
    if columns != () and columns != [] and not are_names(columns):
        raise refused(place, f"{given}= of {what} is {columns!r}", f'{given}=["title", "body"]')
    names = as_names(columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise refused(place, f"{given}= of {what} names {twice!r} twice", "leave one out")
    return names
