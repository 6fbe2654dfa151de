"""`tr.view`: SQL that stays true while its tables change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.pipelines.declare.checks import (
    are_names,
    as_names,
    as_targets,
    caller,
    checked_name,
    refused,
    repeated_name,
)
from tailrace.pipelines.declare.declarations import POLICIES, Place, View


def view(
    name: str,
    sql: str,
    *,
    key: str | Sequence[str] | None = None,
    policy: str = "auto",
    to: object | Iterable[object] = (),
    indexes: str | Sequence[str] = (),
) -> View:
    """A view kept up to date from its SQL (Spark's dialect); see `View`.

    `key` names the columns that tell its rows apart; without one it is inferred from
    GROUP BY or a table's key, and else the view is a bag whose rows carry a count.
    Columns in `indexes` are looked up quickly where the view is served.
    """
    return view_at(caller(), name, sql, key=key, policy=policy, to=to, indexes=indexes)


def view_at(
    place: Place,
    name: str,
    sql: str,
    *,
    key: str | Sequence[str] | None = None,
    policy: str = "auto",
    to: object | Iterable[object] = (),
    indexes: str | Sequence[str] = (),
) -> View:
    """`view`, for whoever declares one on a user's behalf."""
    if not isinstance(name, str):
        raise refused(place, f"the name of a view is a text, not {name!r}", 'tr.view("totals", …)')
    if policy not in POLICIES:
        raise refused(place, f"unknown policy {policy!r}", f"one of {', '.join(POLICIES)}")
    if not isinstance(sql, str):
        raise refused(
            place, f'the SQL of view "{name}" is a text, not {sql!r}', "give a SELECT statement"
        )
    if key is not None and key != () and not are_names(key):  # () of a view of one row
        raise refused(
            place, f'the key of view "{name}" is {key!r}', 'key="id", or key=["country", "day"]'
        )
    if not are_names(indexes) and indexes != ():
        raise refused(place, f'the indexes of view "{name}" are {indexes!r}', 'indexes=["status"]')
    if not sql.strip():
        raise refused(place, f'view "{name}" has no SQL', "give a SELECT statement")
    for what, named in (("key", key), ("indexes", indexes)):
        if repeated := repeated_name(as_names(named or ())):
            raise refused(
                place, f'{what} of view "{name}" names {repeated!r} twice', "name it once"
            )
    columns = None if key is None else as_names(key)
    return View(
        checked_name(name, place), sql, columns, policy, as_targets(to), place, as_names(indexes)
    )
