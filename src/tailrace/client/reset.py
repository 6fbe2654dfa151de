"""Where a group's offsets would go: earliest, latest, an offset, or a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from tailrace.client.admin import Admin, Place
from tailrace.errors import UsageError


def target_offsets(admin: Admin, places: Iterable[Place], target: str) -> dict[Place, int]:
    """The offset that `target` means in each partition, inside what the log holds."""
    places = list(places)
    starts, ends = admin.start_offsets(places), admin.end_offsets(places)
    if target == "earliest":
        return starts
    if target == "latest":
        return ends
    if target.lstrip("-").isdigit():
        wanted = int(target)
        return {place: min(max(wanted, starts[place]), ends[place]) for place in places}
    found = admin.offsets_for_times(dict.fromkeys(places, parse_time(target)))
    return {
        place: found[place].offset if found[place].offset >= 0 else ends[place] for place in places
    }


def parse_time(text: str) -> int:
    """Milliseconds since 1970 of an ISO time (local unless it says) or of `123ms`."""
    if text.endswith("ms") and text[:-2].isdigit():
        return int(text[:-2])
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UsageError(
            f"{text!r} is no place to start reading",
            hint="earliest, latest, an offset, or a time such as 2026-11-15T10:20:30",
        ) from None
