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
from tailrace.pipelines.declare import View, caller, check_kinds, view_at
from tailrace.pipelines.errors import DeclarationError

MOST_WINDOWS = 1_000


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
    check_kinds(place, "tr.windowed", windowed, locals())
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
                f"{_end(time, f'{_floor(seconds, size)} + {size}')} AS window_end "
                f"FROM {relation} t WHERE {filtered}"
            )
        case Hopping(size, hop):
            call = f"window({time}, '{size} seconds', '{hop} seconds')"
            return _grouped(relation, "window", call, chosen, leading, filtered)
        case Cumulative(size, step):
            # A row is in the windows of its period that end after it.
            end = f"{_floor(seconds, size)} + t.window_step * {step}"
            steps = f"SELECT *, explode(sequence(1, {size // step})) AS window_step FROM {relation} t WHERE {filtered}"
            inner = (
                f"SELECT t.*, CAST({_floor(seconds, size)} AS TIMESTAMP) AS window_start, "
                f"{_end(time, end)} AS window_end "
                f"FROM ({steps}) t WHERE {_rest(seconds, size)} < t.window_step * {step}"
            )
        case Session(gap):
            call = f"session_window({time}, '{gap} seconds')"
            return _grouped(relation, "session_window", call, chosen, leading, filtered)
        case Sliding(size, row):
            return _sliding_sql(relation, time, size, row, keys, select, where)
    return (
        f"SELECT {leading}window_start, window_end{chosen} FROM ({inner}) w "
        f"GROUP BY {leading}window_start, window_end"
    )


def _grouped(relation: str, name: str, call: str, chosen: str, leading: str, filtered: str) -> str:
    """A grouping by one of Spark's own windows."""
    return (
        f"SELECT {leading}{name}.start AS window_start, {name}.end AS window_end{chosen} "
        f"FROM (SELECT * FROM {relation} t WHERE {filtered}) w GROUP BY {leading}{call}"
    )


def _sliding_sql(
    relation: str, time: str, size: int, row: Sequence[str], keys: Sequence[str],
    select: Mapping[str, str], where: str | None,
) -> str:  # fmt: skip
    source = f"(SELECT * FROM {relation} t WHERE t.{time} IS NOT NULL{f' AND ({where})' if where else ''})"
    equal = "".join(f"a.{name} <=> b.{name} AND " for name in keys)
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


def _end(time: str, seconds: str) -> str:
    """The end of a row's window, in a form that shows that it is after the row's time: when
    nothing older is taken any more, the window is over."""
    end = f"CAST({seconds} AS TIMESTAMP)"
    return f"CASE WHEN t.{time} < {end} THEN {end} END"


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
