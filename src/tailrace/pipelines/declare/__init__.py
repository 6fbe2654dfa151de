"""What users write: views, streams, topics, patterns and percolations, and what makes views of them.

Nothing here touches Spark, a file or a socket: importing a project has no effect.
"""

from __future__ import annotations

from tailrace.pipelines.declare.checks import caller, check_kinds
from tailrace.pipelines.declare.declarations import (
    ERROR_POLICIES,
    EVENTS,
    FORMATS,
    LATE_POLICIES,
    OUTPUT_MODES,
    POLICIES,
    STREAM_FORMATS,
    EventTime,
    Input,
    Pattern,
    Percolation,
    Place,
    Stream,
    TableLike,
    Topic,
    View,
    mark_of,
)
from tailrace.pipelines.declare.patterns import pattern
from tailrace.pipelines.declare.percolations import OWN_COLUMNS, percolate
from tailrace.pipelines.declare.streams import stream
from tailrace.pipelines.declare.topics import topic
from tailrace.pipelines.declare.views import view, view_at

__all__ = [
    "ERROR_POLICIES",
    "EVENTS",
    "FORMATS",
    "LATE_POLICIES",
    "OUTPUT_MODES",
    "OWN_COLUMNS",
    "POLICIES",
    "STREAM_FORMATS",
    "EventTime",
    "Input",
    "Pattern",
    "Percolation",
    "Place",
    "Stream",
    "TableLike",
    "Topic",
    "View",
    "caller",
    "check_kinds",
    "mark_of",
    "pattern",
    "percolate",
    "stream",
    "topic",
    "view",
    "view_at",
]
