"""What views of a project read and no source describes.

Topics with columns of their own or of a registry, events and their states, what patterns tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.pipelines.compiler.declared_patterns import tables_told
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.registered import for_views
from tailrace.project.event_tables import event_tables

if TYPE_CHECKING:
    from tailrace.pipelines.engine.graph import TableInput
    from tailrace.project.load import Project


def undescribed(project: Project, captured: Iterable[TableInput]) -> list[TableInput]:
    """These inputs; `captured` are those that sources describe, which patterns may read. Raises
    RegistryError where a registry knows columns and does not answer."""
    topics = for_views(project.topics.values(), project.settings.registry)
    tables = [topic_table(topic) for topic in topics if topic.tabular]
    tables += event_tables(project.events.values())
    by_topic = {table.topic: table for table in captured}
    return [*tables, *tables_told(project.matchers, by_topic).values()]
