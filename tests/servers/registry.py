"""A schema registry with as much of Confluent's REST interface as its clients ask for.

Ids are global: one schema text has one id under every subject. A subject in `closed`
takes no second schema (409), and with `password` everything else is refused (401).
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class StandInRegistry:
    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.closed: set[str] = set()
        self.password: str | None = None
        self.requests: list[str] = []
        self.failing = 0
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.requests.append(f"{method} {path}")
            if self.failing:
                self.failing -= 1
                return 503, {"error_code": 50301, "message": "try again"}
            if (match := re.fullmatch(r"/subjects/([^/]+)/versions", path)) is not None:
                return self._register(unquote(match[1]), body)
            if (match := re.fullmatch(r"/subjects/([^/]+)", path)) is not None:
                return self._look_up(unquote(match[1]), body)
            if (match := re.fullmatch(r"/schemas/ids/(\d+)", path)) is not None:
                schema = self.schemas.get(int(match[1]))
                if schema is None:
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, schema
            return 404, {"error_code": 404, "message": f"nothing at {path}"}

    def _register(self, subject: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        number = self._number(body)
        versions = self.subjects.setdefault(subject, [])
        if number is None or number not in versions:
            if versions and subject in self.closed:
                return 409, {"error_code": 409, "message": "Schema is incompatible"}
            if number is None:
                number = len(self.schemas) + 1
                self.schemas[number] = dict(body)
            versions.append(number)
        return 200, {"id": number, "version": versions.index(number) + 1, **body}

    def _look_up(self, subject: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        number = self._number(body)
        versions = self.subjects.get(subject, [])
        if number not in versions:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 200, {
            "subject": subject,
            "id": number,
            "version": versions.index(number) + 1,
            **body,
        }

    def _number(self, body: dict[str, Any]) -> int | None:
        return next(
            (n for n, kept in self.schemas.items() if kept["schema"] == body["schema"]), None
        )


@contextmanager
def running_registry() -> Iterator[StandInRegistry]:
    registry = StandInRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            allowed = registry.password is None or self.headers.get("Authorization") == (
                "Basic " + base64.b64encode(f"shop:{registry.password}".encode()).decode()
            )
            status, found = (
                registry.answer(self.command, urlsplit(self.path).path, body)
                if allowed
                else (401, {"error_code": 40101, "message": "Unauthorized"})
            )
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
