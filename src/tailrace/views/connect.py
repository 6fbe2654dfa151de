"""`tr.views(…)`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.views.reader import Views
    from tailrace.views.remote import RemoteViews


def views(address: str | Path, *, token: str | None = None) -> Views | RemoteViews:
    """The views of a running project.

    `HOST:PORT` (or `http://…`) of its console, or the project's directory on this machine:
    the second reads the follower's memory-mapped files and is far faster.
    """
    text = str(address)
    if not isinstance(address, Path) and re.fullmatch(r"(http://)?[^/]+:\d+/?", text):
        from tailrace.views.remote import RemoteViews

        return RemoteViews(text, token=token)
    from tailrace.views.reader import open_views

    path = Path(address)
    return open_views(path / ".tailrace" if (path / ".tailrace").is_dir() else path)
