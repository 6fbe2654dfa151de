"""Asking the embedded full-text copies of a project."""

from __future__ import annotations

from typing import Any

from tailrace.project.load import Project
from tailrace.sinks.declare import Search
from tailrace.sinks.errors import UnknownSinkError
from tailrace.sinks.registry import Surroundings


def search(project: Project, name: str, words: str, limit: int = 10) -> list[dict[str, Any]]:
    """Rows of the index `name` (a sink, its index, or the view it copies) that match, best first."""
    from tailrace.sinks.search import search as find

    indexes = {
        copy.name: copy for copy in project.sinks.values() if isinstance(copy.declaration, Search)
    }
    chosen = indexes.get(name) or next(
        (
            c
            for c in indexes.values()
            if name in (c.subject, str(getattr(c.declaration, "index", "")))
        ),
        None,
    )
    if chosen is None:
        raise UnknownSinkError(
            f"no search index {name!r}",
            detail=f"There are: {', '.join(indexes) or 'none'}.",
            hint='declare one: to=sinks.Search(index="…")',
        )
    assert isinstance(chosen.declaration, Search)
    directory = Surroundings(project.settings.state_directory).path(chosen.declaration.index)
    return find(directory, words, limit)
