"""The token of a running console, kept where only the project's owner can read it.

`.tailrace/console.token`, mode 0600, holds the token that this run of the project asks
for: the one of `console.token`, else one made at random by each `tailrace up`. Commands
and `tr.views` on this machine read it there; whoever cannot read the project's files has
to be told it. The file is absent when the console asks for no token.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tailrace.config import ConsoleSettings
from tailrace.masking import remember

FILE = "console.token"


def establish(directory: Path, settings: ConsoleSettings) -> str | None:
    """The token for a new run of the project, written down; None if it asks for none."""
    if settings.open:
        (directory / FILE).unlink(missing_ok=True)
        return None
    token = settings.token or secrets.token_urlsafe(32)
    draft = directory / f"{FILE}.{os.getpid()}.tmp"
    draft.unlink(missing_ok=True)  # a mode is given only to a file that is made
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    draft.replace(directory / FILE)
    return token


def current(directory: Path, settings: ConsoleSettings) -> str | None:
    """The token of this run of the project; None if it asks for none."""
    if settings.open:
        return None
    token = settings.token or read(directory) or establish(directory, settings)
    remember(token or "")
    return token


def read(directory: Path) -> str | None:
    """The token in a project's state directory; None without one that may be read."""
    try:
        return (directory / FILE).read_text().strip() or None
    except OSError:
        return None


def link(address: str, token: str | None) -> str:
    """The address for a browser: the token is in the fragment, which is never sent."""
    return f"{address}/#token={token}" if token else address
