"""`tailrace source drop`: takes out of a database what capture put into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tailrace.config import resolve
from tailrace.sources.declare import MySQL, Postgres, Source
from tailrace.sources.edges.declare import Webhook


def remove_hook(edge: Webhook, directory: Path) -> Iterator[str]:
    """Take away at its provider the hook that calls an edge."""
    from tailrace.sources.edges.registration import Provider

    if edge.register is not None:
        yield from Provider(edge, directory).remove()


def remove(
    source: Source, project: str, directory: Path, recorded: dict[str, Any] | None
) -> Iterator[str]:
    """Remove it, naming each thing that is gone. The source must not run.

    `recorded` are the names it last used, if that is known. The log keeps its topics; a
    source that is started again compares every table with them.
    """
    if isinstance(source, MySQL):
        from tailrace.sources.mysql.requests import remove_requests

        yield from remove_requests(source)
        return
    if not isinstance(source, Postgres):
        from tailrace.sources.sqlite.removal import remove_from_file

        yield from remove_from_file(resolve(source.path))
        return
    from tailrace.sources.postgres.removal import remove_from_server

    yield from remove_from_server(source, project, directory, recorded)
