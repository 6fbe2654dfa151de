"""How a project's views are kept, told from its declarations and the log's table schemas."""

from __future__ import annotations

from tailrace.pipelines.declare import Topic
from tailrace.pipelines.incremental.compile import compile_views
from tailrace.pipelines.incremental.explain import explain
from tailrace.pipelines.incremental.graph import TableInput
from tailrace.pipelines.reader import LogReader
from tailrace.pipelines.ticks.catalog import read_catalog, topic_table
from tailrace.project.errors import MissingInputError
from tailrace.project.load import Project


def explain_view(project: Project, bootstrap: str, name: str) -> str:
    """The operators of view `name`, in words. The log must be reachable: it knows the types."""
    if name not in project.views:
        raise MissingInputError(
            f"no view {name!r} is declared",
            hint=f"there are: {', '.join(project.views) or 'none'}",
        )
    with LogReader(bootstrap) as reader:
        tables: list[TableInput] = list(read_catalog(reader).tables.values())
    declared: list[Topic] = [topic for topic in project.topics.values() if topic.schema]
    tables += [topic_table(topic) for topic in declared]
    return explain(compile_views(project.views.values(), tables), name)
