"""How far views are: their first fill, and a tick that takes long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def filling(parts: list[dict[str, Any]]) -> dict[str, str]:
    """Views that are being filled by a process that lives, and how far they are, in words."""
    found: dict[str, str] = {}
    for part in parts:
        if part["kind"] == "pipelines" and part["state"] in ("running", "lagging"):
            shares: Mapping[str, float] = part.get("filled") or {}
            begun: Mapping[str, int] = part.get("filling") or {}
            for name, share in shares.items():
                if share >= 1 and name in (part.get("held") or ()):
                    found[name] = "held beside the one shown, for `tailrace view switch`"
                elif share or begun.get(name):
                    found[name] = f"filling, {share:.0%} read"
                else:  # one is filled after the other
                    found[name] = "waits to be filled"
    return found


def working(parts: list[dict[str, Any]], now_ms: int) -> list[str]:
    """Large ticks that processes which live are at, in words."""
    return [
        f"a tick of {work['records']:,} records has run for"
        f" {max(0, now_ms - work['began_ms']) // 1000} s; views move when it ends"
        for part in parts
        if part["kind"] == "pipelines" and part["state"] in ("running", "lagging")
        if (work := part.get("working"))
    ]
