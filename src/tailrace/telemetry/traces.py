"""Spans, if OpenTelemetry is installed; otherwise nothing, at no cost.

`with span("tick", number=7): …` records a span when `opentelemetry-api` is present and
an SDK is configured by the application around us.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


@cache
def _tracer() -> Any | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("tailrace")


def span(name: str, **attributes: str | int | float | bool) -> AbstractContextManager[Any]:
    """A span around the block, or an empty context where tracing is absent."""
    tracer = _tracer()
    if tracer is None:
        return nullcontext()
    found: AbstractContextManager[Any] = tracer.start_as_current_span(name, attributes=attributes)
    return found
