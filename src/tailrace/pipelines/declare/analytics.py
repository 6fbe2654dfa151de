"""Rates, rolling figures, comparison with an earlier period, and alerts, as views.

Each function declares a view by writing its SQL, so the result is kept like any other: late,
changed and deleted rows correct it, and it can be joined, served and delivered. An alert is
a view too: its rows are the alerts that hold now. A row that comes is an alert raised, one
that leaves is an alert over; a sink such as a webhook tells of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from tailrace.config import parse_duration
from tailrace.pipelines.declare import Place, View, caller, check_kinds, view_at
from tailrace.pipelines.declare.windows import Window, relation_sql, window_sql
from tailrace.pipelines.declare.windows import sliding as sliding_window
from tailrace.pipelines.errors import DeclarationError


def rate(
    name: str,
    source: object,
    *,
    time: str,
    window: Window,
    key: str | Sequence[str] = (),
    of: str = "count(*)",
    per: str | timedelta = "1 second",
    where: str | None = None,
    to: object = (),
) -> View:
    """How much happens in each window: `of` (an aggregate) divided by the window's length in
    `per`, as the DOUBLE column `rate`, beside `total`."""
    place = caller()
    check_kinds(place, "analytics.rate", rate, locals())
    keys = _names(key)
    length = getattr(window, "size", None)
    if length is None:
        raise DeclarationError(
            f'rate "{name}" needs windows of one length',
            detail=f"declared at {place}",
            hint='window=windows.tumbling("1 minute")',
        )
    parts = length / _duration(per).total_seconds()
    chosen = {"total": of, "rate": f"CAST({of} AS DOUBLE) / {parts!r}D"}
    sql = window_sql(relation_sql(source), time, window, keys, chosen, where)
    return view_at(place, name, sql, key=_window_key(window, keys), to=to)


def rolling(
    name: str,
    source: object,
    *,
    time: str,
    size: str | timedelta,
    of: str,
    row: str | Sequence[str],
    key: str | Sequence[str] = (),
    percentiles: Sequence[float] = (),
    where: str | None = None,
    to: object = (),
) -> View:
    """For every row the mean of `of` over the `size` of time up to it (`mean`), how many rows
    that were (`rows`), and exact percentiles: `p95` for 0.95, `p99_9` for 0.999."""
    place = caller()
    check_kinds(place, "analytics.rolling", rolling, locals())
    keys = _names(key)
    window = sliding_window(size, row)
    chosen = {"rows": "count(*)", "mean": f"avg({of})"}
    for share in percentiles:
        if not 0 <= share <= 1:
            raise DeclarationError(
                f"a percentile's share lies between 0 and 1, not {share}",
                detail=f"declared at {place}",
                hint="percentiles=[0.5, 0.95]",
            )
        chosen[percentile_name(share)] = f"percentile({of}, {share!r})"
    sql = window_sql(relation_sql(source), time, window, keys, chosen, where)
    return view_at(place, name, sql, key=window.row, to=to)


def percentile_name(share: float) -> str:
    """`p95` for 0.95, `p99_9` for 0.999."""
    return "p" + f"{share * 100:.6f}".rstrip("0").rstrip(".").replace(".", "_")


def compared(
    name: str,
    view: View | str,
    *,
    columns: str | Sequence[str],
    against: str | timedelta,
    key: str | Sequence[str] = (),
    to: object = (),
) -> View:
    """Each window of a windowed view beside the window `against` earlier.

    For a column `orders`: `orders`, `orders_before` (NULL without such a window),
    `orders_change` (the difference) and `orders_growth` (0.5 for half as much again; NULL
    where there was nothing). A window that is corrected later corrects both comparisons
    it stands in.
    """
    place = caller()
    check_kinds(place, "analytics.compared", compared, locals())
    keys = _names(key)
    sql = _compared_sql(_name(view), _names(columns), against, keys, place)
    return view_at(place, name, sql, key=(*keys, "window_start", "window_end"), to=to)


def alert(
    name: str,
    view: object,
    *,
    key: str | Sequence[str] = (),
    when: str | None = None,
    absent: str | timedelta | None = None,
    time: str | None = None,
    change: str | None = None,
    against: str | timedelta | None = None,
    by: float | None = None,
    select: Mapping[str, str] | None = None,
    to: object = (),
) -> View:
    """A view whose rows are the alerts that hold now. One of three rules:

    - *a figure*: `when="orders < 10"`, a condition on rows of `view`;
    - *absence*: `absent="10 minutes", time="at"`: nothing with that key for so long
      (without a key: nothing at all, never included);
    - *change*: `change="orders", against="7 days", by=0.5`: a column of a windowed view
      differs by more than half from the window that much earlier.

    `key` names the columns that tell alerts apart; `select` chooses the columns shown.
    """
    place = caller()
    check_kinds(place, "analytics.alert", alert, locals())
    keys = _names(key)
    rules = [rule for rule in (when, absent, change) if rule is not None]
    if len(rules) != 1:
        raise DeclarationError(
            f'alert "{name}" needs one rule and has {len(rules)}',
            detail=f"declared at {place}",
            hint='when="orders < 10", absent="10 minutes" or change="orders"',
        )
    if when is not None:
        shown = ", ".join(f"{e} AS {n}" for n, e in select.items()) if select else "*"
        sql = f"SELECT {shown} FROM {relation_sql(view)} WHERE {when}"
        return view_at(place, name, sql, key=keys or None, to=to)
    if absent is not None:
        return view_at(place, name, _absence_sql(view, absent, time, keys, place), key=keys, to=to)
    if against is None or by is None or change is None:
        raise DeclarationError(
            f'alert "{name}" does not say how much change is too much',
            detail=f"declared at {place}",
            hint='change="orders", against="7 days", by=0.5',
        )
    inner = _compared_sql(_name(view), (change,), against, keys, place)
    sql = f"SELECT * FROM ({inner}) c WHERE abs({change}_growth) > {float(by)!r}D"
    return view_at(place, name, sql, key=(*keys, "window_start", "window_end"), to=to)


def _absence_sql(
    source: object, absent: str | timedelta, time: str | None, keys: Sequence[str], place: Place
) -> str:
    if time is None:
        raise DeclarationError(
            "absence is told by a time column", detail=f"declared at {place}", hint='time="at"'
        )
    seconds = int(_duration(absent).total_seconds())
    shown = "".join(f"{name}, " for name in keys)
    last = f"SELECT {shown}max({time}) AS last_seen FROM {relation_sql(source)}"
    if keys:
        last += f" GROUP BY {', '.join(keys)}"
    else:  # nothing ever is absence too: as if last seen long ago
        last = f"SELECT coalesce(q.last_seen, TIMESTAMP '1970-01-01 00:00:00Z') AS last_seen FROM ({last}) q"
    return f"SELECT * FROM ({last}) l WHERE last_seen < now() - INTERVAL '{seconds}' SECOND"


def _compared_sql(
    view: str, columns: Sequence[str], against: str | timedelta, keys: Sequence[str], place: Place
) -> str:
    seconds = int(_duration(against).total_seconds())
    if not columns or seconds < 1:
        raise DeclarationError(
            f'nothing to compare in "{view}"',
            detail=f"declared at {place}",
            hint='columns=["orders"], against="1 day"',
        )
    figures = "".join(
        f", a.{c} AS {c}, b.{c} AS {c}_before, a.{c} - b.{c} AS {c}_change"
        f", CASE WHEN b.{c} <> 0 THEN CAST(a.{c} AS DOUBLE) / CAST(b.{c} AS DOUBLE) - 1.0D END AS {c}_growth"
        for c in columns
    )
    equal = "".join(f" AND a.{name} <=> b.{name}" for name in keys)
    shown = "".join(f"a.{name} AS {name}, " for name in keys)
    return (
        f"SELECT {shown}a.window_start AS window_start, a.window_end AS window_end{figures} "
        f"FROM {view} a LEFT JOIN {view} b "
        f"ON b.window_start = a.window_start - INTERVAL '{seconds}' SECOND "
        f"AND b.window_end = a.window_end - INTERVAL '{seconds}' SECOND{equal}"
    )


def _window_key(window: Window, keys: Sequence[str]) -> tuple[str, ...]:
    row = getattr(window, "row", None)
    return tuple(row) if row else (*keys, "window_start", "window_end")


def _duration(length: str | timedelta) -> timedelta:
    return length if isinstance(length, timedelta) else parse_duration(length)


def _names(key: str | Sequence[str]) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)


def _name(view: object) -> str:
    return view if isinstance(view, str) else relation_sql(view)
