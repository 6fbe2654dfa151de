"""The time-dependent join in Python: each row with the version of a table valid at its time.

    priced = tr.as_of(
        "priced", "shop.orders", "shop.rates", on={"currency": "currency"}, at="placed_at",
        select={"id": "l.id", "value": "l.amount * r.rate", "rate_since": "r.__versioned_at"},
        key="id",
    )

It declares the view whose SQL says `JOIN … FOR SYSTEM_TIME AS OF`: `l` are the rows, `r` the
versions. The table needs `history=` on its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tailrace.pipelines.declare import View, caller, check_kinds, view_at
from tailrace.pipelines.declare.windows import relation_sql


class _Table(Protocol):
    """A table of a source (`shop.table("rates")`)."""

    @property
    def topic(self) -> str: ...


def as_of(
    name: str,
    rows: str | _Table,
    versions: str | _Table,
    *,
    on: Mapping[str, str],
    at: str,
    select: Mapping[str, str] | Sequence[str],
    key: str | Sequence[str] | None = None,
    outer: bool = False,
    policy: str = "auto",
    to: object | Iterable[object] = (),
) -> View:
    """A view of `rows`, each with the version of `versions` that was valid at its time `at`.

    `on` maps columns of the rows to the key columns of the versions. `at` is a column of the
    rows, or SQL over `l` ("l.placed_at - INTERVAL '1' DAY"). `select` names the columns of the
    view: SQL over `l` and `r` by name, or just the expressions. `outer` keeps rows that have no
    version yet. Late rows and late versions correct what was shown.
    """
    place = caller()
    check_kinds(place, "tr.as_of", as_of, locals())
    shown = (
        ", ".join(f"{sql} AS `{column}`" for column, sql in select.items())
        if isinstance(select, Mapping)
        else ", ".join(select)
    )
    same = " AND ".join(f"r.`{theirs}` = l.`{ours}`" for ours, theirs in on.items())
    join = "LEFT JOIN" if outer else "JOIN"
    left, right = relation_sql(rows), relation_sql(versions)
    moment = f"l.`{at}`" if at.isidentifier() else f"({at})"
    sql = (
        f"SELECT {shown}\nFROM {left} l\n{join} {right} FOR SYSTEM_TIME AS OF {moment} r ON {same}"
    )
    return view_at(place, name, sql, key=key, policy=policy, to=to)
