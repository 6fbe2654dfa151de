"""A console that answers on a port, for clients that speak HTTP."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from servers.consoles import Console
from tailrace.console.app import create_app
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Guard


@contextmanager
def running(console: Console) -> Iterator[int]:
    """The console's app on a port of its own, in a thread."""
    made = create_app(console.served)
    app = Guard(FastLookups(made, console.served.views), host="127.0.0.1", token=None)
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=10)
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
