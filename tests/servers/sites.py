"""The console on a real port, for a real browser."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from servers.consoles import Console
from tailrace.console.app import create_app
from tailrace.console.security import Access, Guard

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]  # fmt: skip


@dataclass
class Site:
    """The console; it can be taken down and put up again."""

    console: Console
    port: int
    server: uvicorn.Server | None = None
    thread: threading.Thread | None = None
    errors: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self, *, host: str = "127.0.0.1", token: str | None = None, **given: Any) -> None:
        access = Access(host, token, cookie=f"tailrace-{self.port}", **given)
        app = Guard(create_app(self.console.served), access)
        configuration = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(configuration)
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(("127.0.0.1", self.port))
        self.thread = threading.Thread(target=self.server.run, args=([listening],), daemon=True)
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)

    def down(self) -> None:
        if self.server and self.thread:
            served, feed = self.console.served, self.console.served.feed
            if feed is not None and served.closing is not None:
                feed.loop.call_soon_threadsafe(served.closing.set)
            self.server.should_exit = True
            self.thread.join(10)
            self.server = self.thread = None

    def report(self, kind: str, name: str, **facts: Any) -> None:
        """What a part that runs says of itself."""
        run = self.console.served.project.settings.state_directory / "run"
        run.mkdir(parents=True, exist_ok=True)
        document = {"name": name, "kind": kind, "project": "shop", "pid": os.getpid(), "state": "running", "at": int(time.time() * 1000) + 600_000, **facts}  # fmt: skip
        draft = run / f"{kind}-{name}.tmp"
        draft.write_text(json.dumps(document))
        draft.replace(run / f"{kind}-{name}.json")
