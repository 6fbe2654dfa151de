"""`tr.pattern`: what follows what among the rows of a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tailrace.pipelines.declare.checks import (
    are_names,
    as_names,
    as_targets,
    caller,
    check_kinds,
    checked_name,
    milliseconds,
    positive_milliseconds,
    refused,
    require_one_of,
)
from tailrace.pipelines.declare.declarations import (
    LATE_POLICIES,
    EventTime,
    Input,
    Pattern,
    Percolation,
    Place,
    Topic,
)


def pattern(
    name: str,
    input: Input,
    *,
    key: str | Sequence[str],
    order_by: str,
    match: str,
    define: Mapping[str, str],
    select: Mapping[str, str] | None = None,
    within: str | int | None = None,
    gap: str | int | None = None,
    contiguity: str = "strict",
    until: Mapping[str, str] | None = None,
    skip: str = "past last row",
    rows: str = "one",
    subsets: Mapping[str, Sequence[str]] | None = None,
    matches: str = "preferred",
    limit: int = 1_000,
    timeouts: bool = False,
    emit: str = "final",
    watermark: str | int | None = None,
    lateness: str | int | None = None,
    idle: str | int | None = None,
    late: str | None = None,
    keep: str | int | None = None,
    to: object | Iterable[object] = (),
) -> Pattern:
    """A pattern in the rows of a stream, by key and event time; see `Pattern`.

    `match` is SQL's PATTERN, and `a -> b` (followed by: others are skipped up to the first b),
    `a ->> b` (by any b), `!b` (none there: between two steps; last: none within `within`; first:
    none within it before). `define` has a condition by variable, `select` what a match reports.
    `contiguity` says what may lie between the rows of a repetition: "strict" nothing, "relaxed"
    what does not fit, "any" all; `until` ends repetitions of a variable. A match is shorter than
    `within`, and neighbours in it are at most `gap` apart. `skip`: where the next match may begin,
    "past last row", "to next row", "to first b", "to last b". `rows`: "one" for a match, or "all",
    "all, unmatched", "all, no empty". `matches="every"`: all matches of a row, not the preferred
    one; at most `limit` from one row. `timeouts` reports partial matches whose time is over.
    `emit="early"` reports at once, and takes back what a later row changes.

    `watermark`, `lateness`, `idle`, `late` and `keep` are those of `tr.topic`, for inputs that do
    not say them.
    """
    place = caller()
    check_kinds(place, "tr.pattern", pattern, locals())
    given = (watermark, lateness, idle, late, keep)
    check_events_input(place, input, any(one is not None for one in given))
    if not are_names(key):
        raise refused(place, f'the key of pattern "{name}" is {key!r}', 'key="card_id"')
    for what, text in (("order_by", order_by), ("match", match)):
        if not text.strip():
            raise refused(place, f'pattern "{name}" has an empty {what}=', f'{what}="…"')
    for what, texts in (("define", define), ("select", select or {}), ("until", until or {})):
        for one, text in texts.items():
            if not one or not text.strip():
                raise refused(
                    place, f'{what}= of pattern "{name}" has {one!r}: {text!r}',
                    f'{what}={{"probe": "amount < 2"}}: names and expressions of SQL',
                )  # fmt: skip
    for one, members in (subsets or {}).items():
        if not are_names(members):
            raise refused(
                place, f'subsets= of pattern "{name}" has {one!r}: {members!r}',
                'subsets={"any": ["probe", "theft"]}',
            )  # fmt: skip
    require_one_of(place, "contiguity", contiguity, ("strict", "relaxed", "any"))
    require_one_of(place, "rows", rows, ("one", "all", "all, unmatched", "all, no empty"))
    require_one_of(place, "matches", matches, ("preferred", "every"))
    require_one_of(place, "emit", emit, ("final", "early"))
    length = positive_milliseconds(within, place, "within=")
    if matches == "every":
        if length is None:
            raise refused(place, 'matches="every" needs within=', 'within="10 minutes"')
        if skip != "past last row":
            raise refused(
                place, 'skip= with matches="every"', "every match is told: leave skip= out"
            )
        if limit < 1:
            raise refused(place, f"limit is at least 1, not {limit!r}", "limit=1_000")
    if timeouts and length is None:
        raise refused(place, "timeouts= needs within=", 'within="10 minutes"')
    return Pattern(
        checked_name(name, place),
        input,
        as_names(key),
        order_by,
        match,
        dict(define),
        dict(select or {}),
        length,
        positive_milliseconds(gap, place, "gap="),
        contiguity,
        dict(until or {}),
        skip,
        rows,
        {one: as_names(members) for one, members in (subsets or {}).items()},
        limit if matches == "every" else 0,
        timeouts,
        emit == "early",
        _pattern_time(place, order_by, watermark, lateness, idle, late, keep),
        as_targets(to),
        place,
    )


def _pattern_time(
    place: Place,
    order_by: str,
    watermark: str | int | None,
    lateness: str | int | None,
    idle: str | int | None,
    late: str | None,
    keep: str | int | None,
) -> EventTime:
    """When the rows of a pattern's input happened, where that does not say so itself."""
    late = "correct" if late is None else late
    require_one_of(place, "policy for late rows", late, LATE_POLICIES)
    kept = None if keep is None else milliseconds(keep, place, "keep=")
    borne = 0 if lateness is None else milliseconds(lateness, place, "lateness=")
    if kept is not None and kept < borne:
        raise refused(place, "keep is shorter than lateness", 'lateness="1 minute", keep="1 day"')
    return EventTime(
        order_by,
        0 if watermark is None else milliseconds(watermark, place, "watermark="),
        borne,
        60_000 if idle is None else milliseconds(idle, place, "idle="),
        late,
        kept,
    )


def check_events_input(place: Place, given: object, timed: bool, what: str = "pattern") -> None:
    """That a pattern, or a percolation, reads events whose columns are known."""
    if isinstance(given, Topic):
        if not given.tabular:
            raise refused(
                place,
                f'a {what} cannot read topic "{given.name}": its columns are not known',
                'one topic of JSON rows: tr.topic("orders", schema="id BIGINT, at TIMESTAMP")',
            )
        if given.time is not None and timed:
            raise refused(
                place,
                f'topic "{given.name}" says itself when its rows happened and which are late',
                "leave watermark=, lateness=, idle=, late= and keep= to tr.topic(…)",
            )
        return
    if isinstance(given, Pattern | Percolation) or getattr(given, "kind", None) == "inserts":
        return
    if getattr(given, "kind", None) == "table":
        instead = "; or MATCH_RECOGNIZE in a view, which follows corrections"
        raise refused(
            place,
            f"a {what} reads events: a table changes",
            ".inserts() behind it" + (instead if what == "pattern" else ""),
        )
    raise refused(
        place,
        f"a {what} cannot read {given!r}",
        "a table's .inserts(), tr.topic(…) with a schema, or another pattern",
    )
