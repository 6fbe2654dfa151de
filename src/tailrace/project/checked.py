"""One line of `tailrace check`."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.errors import TailraceError


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing looked at: wrong with an `error`, to be looked at by a person with `warning`,
    else good."""

    what: str
    found: str = ""
    error: TailraceError | None = None
    warning: bool = False
