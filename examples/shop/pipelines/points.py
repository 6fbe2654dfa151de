"""Loyalty points: what customers decide is kept as events, and told from them.

A payment earns points, a basket may be paid with them. Nobody spends what they do not have, however
many ask at once: one owner decides about each customer, in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import tailrace as tr


@dataclass(frozen=True, slots=True)
class Earned:
    points: int
    order: int


@dataclass(frozen=True, slots=True)
class Spent:
    points: int


@dataclass(frozen=True, slots=True)
class Points:
    left: int = 0
    earned: int = 0


# With `publish` the balance of each customer is a table too, written with the events.
points = tr.events("points", Earned | Spent, state=Points, partitions=2, publish=True)


@points.evolve
def balance(state: Points, event: Earned | Spent) -> Points:
    match event:
        case Earned(gained):
            return Points(state.left + gained, state.earned + gained)
        case Spent(used):
            return Points(state.left - used, state.earned)


@points.command
def earn(state: Points, gained: int, order: int) -> Earned:
    return Earned(gained, order)


@points.command
def spend(state: Points, used: int) -> Spent:
    if state.left < used:
        raise tr.Rejected(f"{state.left} points are not enough", code="too-few")
    return Spent(used)


# A view over what was decided, beside those over the database.
points_given = tr.view(
    "points_given",
    """
    SELECT type, count(*) AS events, sum(coalesce(Earned.points, Spent.points)) AS points
    FROM points
    GROUP BY type
    """,
    key="type",
)
