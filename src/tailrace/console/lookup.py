"""Look-ups by key without the framework: they are the calls that come by the thousand.

`GET /api/views/NAME/KEY` and `GET /api/views/NAME?key=…` are answered here from the
follower's environment, as bytes that are passed on unparsed, if they need not wait;
everything else goes to the app. The answers are the app's own, which the tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl

import orjson

from tailrace.console.errors import UnknownNameError
from tailrace.console.security import App, Receive, Scope, Send
from tailrace.errors import TailraceError
from tailrace.serving.keys import read_part
from tailrace.serving.reader import Views

PREFIX = "/api/views/"
_OTHER_CALLS = ("changes", "explain")


class FastLookups:
    """ASGI middleware around the app."""

    def __init__(self, app: App, views: Views) -> None:
        self._app = app
        self._views = views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET":
            asked = _asked(scope["path"], scope["query_string"])
            if asked is not None:
                try:
                    name, key = asked
                    row, position = self._views.find(name, key[0] if len(key) == 1 else key)
                except TailraceError:
                    pass  # the app tells what is wrong
                else:
                    await _answer(send, name, key, row, position)
                    return
        await self._app(scope, receive, send)


def _asked(path: str, query: bytes) -> tuple[str, list[str | None]] | None:
    """View and key of a look-up; None for any other call."""
    if not path.startswith(PREFIX):
        return None
    name, slash, key = path[len(PREFIX) :].partition("/")
    if slash:
        wanted = key and key not in _OTHER_CALLS and not query
        return (name, [read_part(key)]) if wanted else None
    if not query.startswith(b"key="):
        return None
    parts = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return (name, [read_part(v) for _, v in parts]) if all(k == "key" for k, _ in parts) else None


def no_row(name: str, key: Sequence[str | None]) -> UnknownNameError:
    shown = ", ".join("NULL" if part is None else part for part in key)
    return UnknownNameError(f"view {name!r} has no row{f' {shown!r}' if key else ''}")


async def _answer(
    send: Send, name: str, key: list[str | None], row: bytes | None, position: bytes
) -> None:
    status = 200
    if row is None:
        status = 404
        body = orjson.dumps(no_row(name, key).as_dict())
    else:
        body = b'{"row":' + row + b"}"
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"tailrace-position", position),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
