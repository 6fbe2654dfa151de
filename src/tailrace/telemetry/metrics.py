"""One Prometheus registry for the process; the console reads the same one.

Metrics are declared where they are used, by name; declaring one twice gives the same
object, so two modules may share a metric without sharing an import. Names follow
Prometheus' habits (`tailrace_broker_bytes_in_total`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_making = threading.Lock()  # parts of a process begin side by side
LATENCY_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)  # fmt: skip


@cache
def registry() -> CollectorRegistry:
    """The process's registry, with the usual process figures in it."""
    # prometheus_client costs 20 ms to import; a command that measures nothing skips it.
    from prometheus_client import CollectorRegistry, ProcessCollector

    made = CollectorRegistry()
    ProcessCollector(registry=made)
    return made


@cache
def _counter(name: str, text: str, labels: tuple[str, ...]) -> Counter:
    from prometheus_client import Counter

    return Counter(name, text, labels, registry=registry())


@cache
def _gauge(name: str, text: str, labels: tuple[str, ...]) -> Gauge:
    from prometheus_client import Gauge

    return Gauge(name, text, labels, registry=registry())


@cache
def _histogram(
    name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
) -> Histogram:
    from prometheus_client import Histogram

    return Histogram(name, text, labels, buckets=buckets, registry=registry())


def counter(name: str, text: str, labels: Sequence[str] = ()) -> Counter:
    """A number that only grows."""
    with _making:
        return _counter(name, text, tuple(labels))


def gauge(name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
    """A number that goes up and down."""
    with _making:
        return _gauge(name, text, tuple(labels))


def histogram(
    name: str,
    text: str,
    labels: Sequence[str] = (),
    buckets: Sequence[float] = LATENCY_BUCKETS,
) -> Histogram:
    """A distribution, by default of seconds from 0.1 ms to 10 s."""
    with _making:
        return _histogram(name, text, tuple(labels), tuple(buckets))


def exposition() -> bytes:
    """Every metric of the process in Prometheus' text format."""
    from prometheus_client import generate_latest

    return generate_latest(registry())
