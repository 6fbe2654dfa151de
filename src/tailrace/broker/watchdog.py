"""Says what the loop is at when it has not come back for a second.

One thread serves everybody, so whatever keeps it keeps all. The watchdog is a thread beside it
that looks twice a second; it logs the request, its sender and the stack, once for each time
the loop is held. Code that never lets go of the interpreter is reported when it does.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from pathlib import Path

from tailrace.broker.loop import Loop
from tailrace.broker.router import Router
from tailrace.wire.apis import APIS

log = logging.getLogger(__name__)

HELD_SECONDS = 1.0
LOOK_SECONDS = 0.5
DEEPEST = 12


class Watchdog:
    """Watches one loop between `start` and `stop`."""

    def __init__(self, loop: Loop, router: Router, *, held_seconds: float = HELD_SECONDS) -> None:
        self._loop = loop
        self._router = router
        self._held_seconds = held_seconds
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self.held_total = 0

    def start(self) -> None:
        """Begin to watch the loop that this thread is about to run."""
        self._thread = threading.Thread(
            target=self._run, args=(threading.get_ident(),), name="watchdog", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, watched: int) -> None:
        told = 0.0
        look = min(LOOK_SECONDS, self._held_seconds / 2)
        while not self._done.wait(look):
            since = self._loop.busy_since
            if since == 0.0 or since == told:
                continue
            held = self._loop.monotonic() - since
            if held >= self._held_seconds:
                told = since
                self._tell(held, watched)

    def _tell(self, held: float, watched: int) -> None:
        self.held_total += 1
        frame = sys._current_frames().get(watched)
        stack = [] if frame is None else list(traceback.extract_stack(frame))[-DEEPEST:]
        where = " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in stack)
        found: dict[str, object] = {}
        serving = self._router.serving
        if serving is not None:
            connection, key, version, size = serving
            api = APIS.get(key)
            found = {
                "request": api.module if api is not None else key,
                "version": version,
                "size": size,
                "peer": connection.peer,
            }
        log.warning(
            "the loop is held up",
            extra={"seconds": round(held, 1), **found, "stack": where},
        )
