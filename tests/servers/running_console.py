"""A console that answers on a port, for clients that speak HTTP."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from servers.consoles import Console
from tailrace.clock import SYSTEM, Clock
from tailrace.console.app import create_app
from tailrace.console.heads import BoundedHeads
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Access, Guard


@contextmanager
def running(
    console: Console,
    access: Access | None = None,
    *,
    certificate: Path | None = None,
    clock: Clock = SYSTEM,
) -> Iterator[int]:
    """The console's app on a port of its own, in a thread."""
    made = create_app(console.served)
    asked = access or Access("127.0.0.1", None)
    app = Guard(FastLookups(made, console.served.views), asked, clock)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=BoundedHeads,
            log_level="error",
            access_log=False,
            timeout_graceful_shutdown=10,
            ssl_certfile=certificate and certificate.with_suffix(".pem"),
            ssl_keyfile=certificate and certificate.with_suffix(".key"),
        )
    )
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    until = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        yield listening.getsockname()[1]
    finally:
        feed = console.served.feed
        assert feed is not None
        asyncio.run_coroutine_threadsafe(feed.stop(), feed.loop).result(30)
        server.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive()
