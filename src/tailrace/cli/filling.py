"""How far views are: their first fill, and a tick that takes long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def filling(parts: list[dict[str, Any]]) -> dict[str, str]:
    """Views that are being filled by a process that lives, and how far they are, in words;
    of one that cannot be filled, why."""
    found: dict[str, str] = {}
    for part in parts:
        if part["kind"] == "pipelines" and part["state"] in ("running", "lagging"):
            shares: Mapping[str, float] = part.get("filled") or {}
            begun: Mapping[str, int] = part.get("filling") or {}
            counts: Mapping[str, tuple[int, int]] = part.get("fills") or {}
            failed: Mapping[str, Mapping[str, Any]] = part.get("failed") or {}
            for name, share in shares.items():
                if name in failed:
                    words = " ".join(str(failed[name].get("error", "")).split())
                    found[name] = f"cannot be filled: {words}"
                    continue
                done, wanted = counts.get(name) or (0, 0)
                if share >= 1 and name in (part.get("held") or ()):
                    found[name] = "held beside the one shown, for `tailrace view switch`"
                elif wanted and (share or begun.get(name)):
                    found[name] = f"filling, {share:.0%} read ({done:,} of {wanted:,} records)"
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
