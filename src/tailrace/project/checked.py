"""One line of `tailrace check`."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.errors import TailraceError


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing looked at: good when `error` is None."""

    what: str
    found: str = ""
    error: TailraceError | None = None
