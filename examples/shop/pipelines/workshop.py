"""Seats in the shop's workshop: few, claimed by many at once, and thanked for with points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.points import earn

import tailrace as tr
from tailrace.facts.reservations import Confirmed

# A claim that is not confirmed within a minute runs out; the seat goes to the next in the line.
workshop = tr.reservations("workshop", hold="1 minute", capacity=3, partitions=2)


@tr.reaction("thanks", workshop, partitions=2)
def thanks(state: None, fact: Any) -> Iterator[Any]:
    """Who confirms a seat gets 25 points, once, whatever is killed on the way."""
    match fact.event:
        case Confirmed(holder):
            yield tr.send(earn, holder, gained=25, order=0)
