"""What deserves attention, from the reports and figures everybody can see.

An alarm says what, how bad, and what to do. The levels are defaults an operator would
choose; each is stated here and nowhere else.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

LAG_WARNING = 100_000
DISK_WARNING = 0.10
DISK_CRITICAL = 0.03


def alarms(
    parts: Iterable[dict[str, Any]], groups: Iterable[dict[str, Any]], directory: Path
) -> Iterator[dict[str, str]]:
    """Every alarm that holds now."""
    for part in parts:
        what = f"{part['kind']} {part['name']}"
        if part["state"] in ("failed", "stopped"):
            error = (part.get("error") or {}).get("error", "it ended")
            hint = (part.get("error") or {}).get("hint") or "it is started again by itself"
            yield _alarm("critical", what, str(error), str(hint))
        for retained, level in (("wal_critical", "critical"), ("wal_warning", "warning")):
            if part.get(retained) is True:
                yield _alarm(level, what, "the database keeps much WAL for its slot", "see `tailrace source doctor`")  # fmt: skip
                break
        if part.get("dead_letters"):
            yield _alarm("warning", what, f"{part['dead_letters']} records set aside", "look at them: `tailrace sink dead-letters`")  # fmt: skip
    for group in groups:
        if group["lag"] > LAG_WARNING:
            yield _alarm("warning", f"group {group['name']}", f"is {group['lag']:,} records behind", "add consumers, or check that they run")  # fmt: skip
    try:
        usage = shutil.disk_usage(directory)
    except OSError:
        return
    share = usage.free / usage.total
    if share < DISK_WARNING:
        level = "critical" if share < DISK_CRITICAL else "warning"
        yield _alarm(level, "disk", f"{share:.0%} free", "shorten retention, or add space: a full disk stops producers")  # fmt: skip


def _alarm(level: str, what: str, message: str, hint: str) -> dict[str, str]:
    return {"level": level, "what": what, "message": message, "hint": hint}
