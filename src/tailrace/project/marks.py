"""What a project declares, as short marks: a mark changes when its declaration does.

A running project compares the marks of what it runs with those of the files, and takes over
what differs. Marks may be made from secrets: they are compared in memory and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RESTARTING = ("project", "log", "spark", "console", "registry", "connect")
"""Sections of `tailrace.toml` that count when `tailrace up` starts, and not before."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a project's declarations, by name."""

    views: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)  # of tailrace.toml
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Of "kind name", what counts when `tailrace up` starts, and not before."""
    indexes: str = ""  # of all views: what the part that serves them is given
