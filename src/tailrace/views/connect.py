"""`tr.views(…)` and `tr.position(…)`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.errors import UsageError

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


def position(connection: Any, source: str | None = None) -> str:
    """Where a Postgres database is now, as a position that covers all commits so far.

    Call it after the commit, on any psycopg connection to the captured database. `source`
    is the name of the source; without one it is told from the only Tailrace slot there.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
        lsn = int(cursor.fetchone()[0])
        if source is None:
            cursor.execute(
                "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() "
                "AND slot_name LIKE 'tailrace\\_%'"
            )
            slots = [name for (name,) in cursor.fetchall()]
            if len(slots) != 1:
                raise UsageError(
                    "cannot tell which source reads this database",
                    detail=f"Tailrace slots in it: {', '.join(slots) or 'none'}.",
                    hint='name it: tr.position(connection, source="shop")',
                )
            source = slots[0].removeprefix("tailrace_")
    return f"pg:{source}:{lsn:016X}"
