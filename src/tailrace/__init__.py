"""Tailrace keeps every copy of a company's data in step with its source.

The public names. They are loaded when first used, so that `import tailrace` brings in
neither Spark nor a database driver nor a web framework.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tailrace import sinks as sinks
    from tailrace import sources as sources
    from tailrace import testing as testing
    from tailrace.client.log import connect as connect
    from tailrace.client.log import open as open
    from tailrace.config import env as env
    from tailrace.errors import TailraceError as TailraceError
    from tailrace.facts.declare import events as events
    from tailrace.facts.errors import Rejected as Rejected
    from tailrace.facts.errors import Reserved as Reserved
    from tailrace.facts.personal import personal as personal
    from tailrace.facts.query import matching as matching
    from tailrace.facts.reactions import Refused as Refused
    from tailrace.facts.reactions import Timeout as Timeout
    from tailrace.facts.reactions import cancel as cancel
    from tailrace.facts.reactions import later as later
    from tailrace.facts.reactions import reaction as reaction
    from tailrace.facts.reactions import send as send
    from tailrace.facts.reservations import claim_all as claim_all
    from tailrace.facts.reservations import reservations as reservations
    from tailrace.mirroring.plan import mirror as mirror
    from tailrace.pipelines.declare import analytics as analytics
    from tailrace.pipelines.declare import frames as frames
    from tailrace.pipelines.declare import pattern as pattern
    from tailrace.pipelines.declare import percolate as percolate
    from tailrace.pipelines.declare import sketches as sketches
    from tailrace.pipelines.declare import stream as stream
    from tailrace.pipelines.declare import time as time
    from tailrace.pipelines.declare import topic as topic
    from tailrace.pipelines.declare import view as view
    from tailrace.pipelines.declare import windows as windows
    from tailrace.pipelines.declare.as_of import as_of as as_of
    from tailrace.pipelines.declare.functions import function as function
    from tailrace.pipelines.declare.functions import java_function as java_function
    from tailrace.pipelines.declare.windows import windowed as windowed
    from tailrace.serving.connect import views as views
    from tailrace.sources.position import position as position

# public name → where it lives
_NAMES: dict[str, str] = {
    "Refused": "tailrace.facts.reactions",
    "Rejected": "tailrace.facts.errors",
    "Reserved": "tailrace.facts.errors",
    "TailraceError": "tailrace.errors",
    "Timeout": "tailrace.facts.reactions",
    "cancel": "tailrace.facts.reactions",
    "claim_all": "tailrace.facts.reservations",
    "connect": "tailrace.client.log",
    "env": "tailrace.config",
    "events": "tailrace.facts.declare",
    "later": "tailrace.facts.reactions",
    "matching": "tailrace.facts.query",
    "mirror": "tailrace.mirroring.plan",
    "open": "tailrace.client.log",
    "personal": "tailrace.facts.personal",
    "reaction": "tailrace.facts.reactions",
    "reservations": "tailrace.facts.reservations",
    "send": "tailrace.facts.reactions",
    "pattern": "tailrace.pipelines.declare",
    "percolate": "tailrace.pipelines.declare",
    "stream": "tailrace.pipelines.declare",
    "topic": "tailrace.pipelines.declare",
    "view": "tailrace.pipelines.declare",
    "as_of": "tailrace.pipelines.declare.as_of",
    "function": "tailrace.pipelines.declare.functions",
    "java_function": "tailrace.pipelines.declare.functions",
    "windowed": "tailrace.pipelines.declare.windows",
    "position": "tailrace.sources.position",
    "views": "tailrace.serving.connect",
}
# public name → a module that is named after what it is about
_MODULES = {
    "analytics": "tailrace.pipelines.declare.analytics",
    "frames": "tailrace.pipelines.declare.frames",
    "sketches": "tailrace.pipelines.declare.sketches",
    "time": "tailrace.pipelines.declare.time",
    "windows": "tailrace.pipelines.declare.windows",
}
_ROOMS = ("sources", "sinks", "testing")

__all__ = [
    "Refused",
    "Rejected",
    "Reserved",
    "TailraceError",
    "Timeout",
    "__version__",
    "as_of",
    "cancel",
    "claim_all",
    "connect",
    "env",
    "events",
    "function",
    "java_function",
    "later",
    "matching",
    "mirror",
    "open",
    "pattern",
    "percolate",
    "personal",
    "position",
    "reaction",
    "reservations",
    "send",
    "stream",
    "topic",
    "view",
    "views",
    "windowed",
]


if not TYPE_CHECKING:  # a checker knows every name from above, and no others

    def __getattr__(name: str) -> object:
        if name in _NAMES:
            value = getattr(importlib.import_module(_NAMES[name]), name)
            globals()[name] = value
            return value
        if name in _MODULES:
            return importlib.import_module(_MODULES[name])
        if name in _ROOMS:
            return importlib.import_module(f"tailrace.{name}")
        raise AttributeError(f"module 'tailrace' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_NAMES) | set(_MODULES) | set(_ROOMS))
