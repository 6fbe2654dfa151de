"""The naive twin of `mirroring.conflicts`: everything that was written, and a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Write(NamedTuple):
    """A record as a site wrote it; in the order of each site."""

    site: str
    key: str
    time: int
    value: str | None


def winners_of(writes: Sequence[Write], conflicts: str | None, pins: Sequence[str]) -> dict[str, str]:  # fmt: skip
    """What every site ends with, by key."""
    found: dict[str, str] = {}
    for key in {write.key for write in writes}:
        winner = _winner([write for write in writes if write.key == key], conflicts, pins)
        if winner is not None and winner.value is not None:
            found[key] = winner.value
    return found


def losers_of(writes: Sequence[Write], conflicts: str | None, pins: Sequence[str]) -> list[str]:
    """The values that may be kept as losers: all that do not win."""
    found = []
    for write in writes:
        rivals = [each for each in writes if each.key == write.key]
        if _winner(rivals, conflicts, pins) is not write:
            found.append(write.value or "-")
    return found


def _winner(writes: Sequence[Write], conflicts: str | None, pins: Sequence[str]) -> Write | None:
    home = next((site for site in pins if writes[0].key.startswith(f"{site}:")), None)
    if home is not None:
        writes = [write for write in writes if write.site == home]
    preferred = (conflicts or "").removeprefix("site:")
    best: Write | None = None
    for write in writes:
        if best is None or _order(write, preferred) >= _order(best, preferred):
            best = write
    return best


def _order(write: Write, preferred: str) -> tuple[bool, int, str]:
    return write.site == preferred, write.time, write.site
