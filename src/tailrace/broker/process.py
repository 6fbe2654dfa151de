"""The broker as a process of its own: signals, tuning, reports to a supervisor."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tailrace.broker.server import Broker, raise_descriptor_limit
from tailrace.broker.settings import BrokerSettings
from tailrace.broker.vitals import Vitals
from tailrace.modes import hide
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

REPORT_SECONDS = 1.0


def run(
    directories: Iterable[str | Path],
    *,
    host: str,
    port: int,
    settings: Mapping[str, str] | None = None,
    part: Part,
) -> None:
    """Serve until `part.stopping` is set, reporting once a second; raises on a fatal error."""
    broker = Broker(
        directories,
        host=host,
        port=port,
        settings=BrokerSettings(settings),
        project_listener=True,
    )
    if threading.current_thread() is threading.main_thread():
        tune()

    vitals = Vitals(broker)

    def report() -> None:
        if part.stopping.is_set():
            broker.stop()
            return
        address = f"{broker.address[0]}:{broker.address[1]}"
        part.report(
            "running",
            address=address,
            connections=len(broker.listener.connections),
            topics=len(broker.store.topics),
            **vitals.look(),
            **({"error": failure.as_dict()} if (failure := broker.store.failed_sync()) else {}),
        )
        broker.call_later(REPORT_SECONDS, report)

    def watch() -> None:
        part.stopping.wait()
        broker.stop()

    threading.Thread(target=watch, name="stopping", daemon=True).start()
    broker.call_soon(report)
    broker.run()
    if (failure := broker.store.failed_sync()) is not None:
        raise failure
    part.report("stopped")


def serve(broker: Broker, ready: Callable[[str], None]) -> None:
    """Serve on the main thread until SIGTERM or SIGINT; tells `ready` the address first.

    Raises `SyncFailedError` at the end if the disk refused to keep something.
    """
    tune()
    before = {
        number: signal.signal(number, lambda *_: broker.stop())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    host, port = broker.address
    ready(f"{f'[{host}]' if ':' in host else host}:{port}")
    try:
        broker.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if (failure := broker.store.failed_sync()) is not None:
        raise failure


def tune() -> None:
    """Make the most of a process that does nothing else, and let nobody read what it writes."""
    hide()
    raise_descriptor_limit()
    # Nothing made so far will ever be garbage; without this every collection walks it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
