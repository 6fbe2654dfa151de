"""Look-ups by key without the framework: they are the calls that come by the thousand.

`GET /api/views/NAME/KEY` without a query string is answered here from the follower's
environment, as bytes that are passed on unparsed; everything else goes to the app. The
answers are the app's own, which the tests compare.
"""

from __future__ import annotations

from tailrace.console.security import App, Receive, Scope, Send
from tailrace.errors import TailraceError
from tailrace.views.reader import Views

PREFIX = "/api/views/"
_OTHER_CALLS = ("changes", "explain")


class FastLookups:
    """ASGI middleware around the app."""

    def __init__(self, app: App, views: Views) -> None:
        self._app = app
        self._views = views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and not scope["query_string"]:
            path: str = scope["path"]
            if path.startswith(PREFIX):
                name, slash, key = path[len(PREFIX) :].partition("/")
                if slash and key and "/" not in key and key not in _OTHER_CALLS:
                    found = self._find(name, key)
                    if found is not None:
                        await _answer(send, *found)
                        return
        await self._app(scope, receive, send)

    def _find(self, name: str, key: str) -> tuple[bytes, bytes] | None:
        """Row and position, or None: the app tells what is missing or wrong."""
        try:
            with self._views.snapshot() as snapshot:
                row = snapshot.get_bytes(name, [key])
                return None if row is None else (row, snapshot.position.encode())
        except TailraceError:
            return None


async def _answer(send: Send, row: bytes, position: bytes) -> None:
    body = b'{"row":' + row + b"}"
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"tailrace-position", position),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
