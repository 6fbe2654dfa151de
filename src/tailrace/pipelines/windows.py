"""Windows over event time, as views: what a late or corrected row changes is corrected.

`windowed` writes the SQL of a view that groups rows by windows. The view is kept like any
other: a row that arrives late, changes or goes retracts its window's result and emits it
again, under the window's key in a compacted topic. Its columns are the key columns,
`window_start`, `window_end` and what `select` names. Lengths are whole seconds; windows
are aligned to 1970-01-01 UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tailrace.config import parse_duration
from tailrace.pipelines.declare import View, caller, view_at
from tailrace.pipelines.errors import DeclarationError

MOST_WINDOWS = 1_000
MOST_COPIES = 64


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one length, one after the other."""

    size: int


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows of `size` seconds that begin every `hop` seconds: they overlap."""

    size: int
    hop: int


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Windows that begin together every `size` seconds and end every `step` seconds."""

    size: int
    step: int


@dataclass(frozen=True, slots=True)
class Session:
    """Rows of a key with pauses of at most `gap` seconds between them."""

    gap: int


@dataclass(frozen=True, slots=True)
class Sliding:
    """For every row, the rows of its key in the `size` seconds up to it; `row` names the
    columns that tell rows apart."""

    size: int
    row: tuple[str, ...]


Window = Tumbling | Hopping | Cumulative | Session | Sliding


def tumbling(size: str | timedelta) -> Tumbling:
    """Windows of one length: `tumbling("1 minute")`."""
    return Tumbling(_seconds(size))


def hopping(size: str | timedelta, every: str | timedelta) -> Hopping:
    """Overlapping windows: `hopping("10 minutes", every="1 minute")`."""
    made = Hopping(_seconds(size), _seconds(every))
    _divides(made.size, made.hop, "every")
    return made


def cumulative(size: str | timedelta, step: str | timedelta) -> Cumulative:
    """Growing windows: `cumulative("1 day", step="1 hour")`."""
    made = Cumulative(_seconds(size), _seconds(step))
    _divides(made.size, made.step, "step")
    return made


def session(gap: str | timedelta) -> Session:
    """Windows of activity: `session("30 minutes")`."""
    return Session(_seconds(gap))


def sliding(size: str | timedelta, row: str | Sequence[str]) -> Sliding:
    """A window that ends at every row: `sliding("10 minutes", row="id")`."""
    return Sliding(_seconds(size), (row,) if isinstance(row, str) else tuple(row))


def windowed(
    name: str,
    source: object,
    *,
    time: str,
    window: Window,
    select: Mapping[str, str],
    key: str | Sequence[str] = (),
    where: str | None = None,
    to: object = (),
) -> View:
    """A view of `source` (a table, topic or view, or its name in SQL) by windows.

    `select` maps columns to aggregates: `{"orders": "count(*)", "value": "sum(amount)"}`.
    """
    place = caller()
    keys = (key,) if isinstance(key, str) else tuple(key)
    if not select:
        raise DeclarationError(
            f'view "{name}" selects nothing',
            detail=f"declared at {place}",
            hint='select={"rows": "count(*)"}',
        )
    sql = window_sql(relation_sql(source), time, window, keys, select, where)
    row = window.row if isinstance(window, Sliding) else (*keys, "window_start", "window_end")
    return view_at(place, name, sql, key=row, to=to)


def window_sql(
    relation: str, time: str, window: Window, keys: Sequence[str],
    select: Mapping[str, str], where: str | None,
) -> str:  # fmt: skip
    """The SQL of a windowed view."""
    seconds = f"CAST(CAST(t.{time} AS TIMESTAMP) AS BIGINT)"
    chosen = "".join(f", {expression} AS {name}" for name, expression in select.items())
    leading = "".join(f"{name}, " for name in keys)
    filtered = f"t.{time} IS NOT NULL" + (f" AND ({where})" if where else "")
    match window:
        case Tumbling(size):
            inner = (
                f"SELECT t.*, CAST({_floor(seconds, size)} AS TIMESTAMP) AS window_start, "
                f"CAST({_floor(seconds, size)} + {size} AS TIMESTAMP) AS window_end "
                f"FROM {relation} t WHERE {filtered}"
            )
        case Hopping(size, hop):
            inner = _copies(
                relation, filtered, range(size // hop),
                start=f"{_floor(seconds, hop)} - {{i}} * {hop}",
                end=f"{_floor(seconds, hop)} - {{i}} * {hop} + {size}",
                on=f"{_rest(seconds, hop)} + {{i}} * {hop} < {size}",
            )  # fmt: skip
        case Cumulative(size, step):
            inner = _copies(
                relation, filtered, range(1, size // step + 1),
                start=_floor(seconds, size),
                end=f"{_floor(seconds, size)} + {{i}} * {step}",
                on=f"{_rest(seconds, size)} < {{i}} * {step}",
            )  # fmt: skip
        case Session(gap):
            return _session_sql(relation, time, gap, keys, chosen, leading, filtered)
        case Sliding(size, row):
            return _sliding_sql(relation, time, size, row, keys, select, where)
    return (
        f"SELECT {leading}window_start, window_end{chosen} FROM ({inner}) w "
        f"GROUP BY {leading}window_start, window_end"
    )


def _session_sql(
    relation: str, time: str, gap: int, keys: Sequence[str], chosen: str, leading: str,
    filtered: str,
) -> str:  # fmt: skip
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    over = f"OVER ({partition}ORDER BY {time})"
    before = f"SELECT t.*, lag({time}) {over} AS before_it FROM {relation} t WHERE {filtered}"
    opens = (
        f"CASE WHEN before_it IS NULL OR {time} > before_it + INTERVAL '{gap}' SECOND "
        "THEN 1 ELSE 0 END"
    )
    numbered = f"SELECT b.*, sum({opens}) {over} AS session_number FROM ({before}) b"
    return (
        f"SELECT {leading}min({time}) AS window_start, "
        f"max({time}) + INTERVAL '{gap}' SECOND AS window_end{chosen} "
        f"FROM ({numbered}) s GROUP BY {leading}session_number"
    )


def _sliding_sql(
    relation: str, time: str, size: int, row: Sequence[str], keys: Sequence[str],
    select: Mapping[str, str], where: str | None,
) -> str:  # fmt: skip
    source = f"(SELECT * FROM {relation} t WHERE t.{time} IS NOT NULL{f' AND ({where})' if where else ''})"
    equal = "".join(f"a.{name} = b.{name} AND " for name in keys)
    shown = dict.fromkeys([*row, *keys])
    inner = (
        f"SELECT {', '.join(f'a.{name} AS a_{name}' for name in shown)}, "
        f"a.{time} AS window_end, b.* FROM {source} a JOIN {source} b ON {equal}"
        f"b.{time} <= a.{time} AND b.{time} > a.{time} - INTERVAL '{size}' SECOND"
    )
    out = ", ".join(f"a_{name} AS {name}" for name in shown)
    grouped = ", ".join(f"a_{name}" for name in shown)
    chosen = "".join(f", {expression} AS {name}" for name, expression in select.items())
    return (
        f"SELECT {out}, window_end - INTERVAL '{size}' SECOND AS window_start, window_end{chosen} "
        f"FROM ({inner}) p GROUP BY {grouped}, window_end"
    )


def _rest(seconds: str, size: int) -> str:
    return f"((({seconds} % {size}) + {size}) % {size})"


def _floor(seconds: str, size: int) -> str:
    return f"{seconds} - {_rest(seconds, size)}"


def _copies(relation: str, filtered: str, numbers: range, *, start: str, end: str, on: str) -> str:
    """Every row once for each of `numbers` (`{i}` in the expressions) for which `on` holds.

    A few as UNION ALL, which keeps no state; many as a join with the numbers, which does.
    """

    def part(number: str, join: str) -> str:
        where = f"WHERE {filtered}" + ("" if join else f" AND {on.format(i=number)}")
        return (
            f"SELECT t.*, CAST({start.format(i=number)} AS TIMESTAMP) AS window_start, "
            f"CAST({end.format(i=number)} AS TIMESTAMP) AS window_end FROM {relation} t {join} {where}"
        )

    if len(numbers) <= MOST_COPIES:
        return " UNION ALL ".join(part(str(number), "") for number in numbers)
    values = ", ".join(f"({number})" for number in numbers)
    return part("h.i", f"JOIN (VALUES {values}) AS h(i) ON {on.format(i='h.i')}")


def relation_sql(source: object) -> str:
    """How SQL names a table, topic or view; text stands for itself."""
    if isinstance(source, str):
        return source
    topic = getattr(source, "topic", None)
    if not isinstance(topic, str):
        raise DeclarationError(
            f"{source!r} is no table, topic or view", hint='shop.table("orders"), or its name'
        )
    return ".".join(f"`{part}`" for part in topic.split("."))


def _seconds(length: str | timedelta) -> int:
    duration = length if isinstance(length, timedelta) else parse_duration(length)
    seconds = duration.total_seconds()
    if seconds < 1 or seconds != int(seconds):
        raise DeclarationError(f"a window of {length} is not whole seconds", hint='"1 minute"')
    return int(seconds)


def _divides(size: int, part: int, name: str) -> None:
    if size % part or size // part > MOST_WINDOWS:
        raise DeclarationError(
            f"{name} ({part} s) does not divide the window ({size} s) into at most "
            f"{MOST_WINDOWS} parts",
            hint="take a length that fits",
        )
