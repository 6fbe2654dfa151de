"""Views of a project that runs elsewhere, asked over HTTP on its console's address."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import orjson

from tailrace.records.tick import ViewInfo
from tailrace.serving.errors import (
    PositionTimeoutError,
    PositionUnknownError,
    QueryError,
    QueryTimeoutError,
    QueryTooLargeError,
    UnknownViewError,
    ViewFailedError,
    ViewFillingError,
    ViewKeyError,
    ViewsNotReadyError,
    ViewsRemoteError,
)
from tailrace.serving.keys import encode_key, write_part
from tailrace.serving.reader import Page, Row
from tailrace.serving.subscribe import Change, Event

KNOWN_ERRORS = {
    kind.code: kind
    for kind in (
        UnknownViewError,
        PositionTimeoutError,
        PositionUnknownError,
        QueryError,
        QueryTimeoutError,
        QueryTooLargeError,
        ViewFailedError,
        ViewFillingError,
        ViewKeyError,
        ViewsNotReadyError,
    )
}


class RemoteViews:
    """The same questions as `Views`, answered by the console. One connection, kept open."""

    def __init__(self, address: str, *, token: str | None = None) -> None:
        url = urlsplit(address if "://" in address else f"http://{address}")
        self.address = url.netloc
        self._encrypted = url.scheme == "https"
        token = token or dict(parse_qsl(url.fragment)).get("token")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> RemoteViews:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getitem__(self, name: str) -> RemoteView:
        return RemoteView(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    def names(self) -> list[str]:
        return [view["name"] for view in self.describe_all()]

    def describe_all(self) -> list[dict[str, Any]]:
        """Name, key, columns and number of rows of every view."""
        found: list[dict[str, Any]] = self._ask("GET", "/api/views")["views"]
        return found

    def get(
        self, name: str, key: object, *, at_least: str | None = None, timeout: float = 5.0
    ) -> Row | None:
        parts = list(key) if isinstance(key, tuple | list) else [key]
        pairs = [("key", write_part(part)) for part in parts] + _waiting(at_least, timeout)
        if not parts:  # the address of no key is that of an empty text, too
            for view in self.describe_all():
                if view["name"] == name:
                    encode_key(ViewInfo(name, name, key=tuple(view["key"])), parts)
        path = f"/api/views/{quote(name, safe='')}{'' if parts else '/'}"
        answer = self._ask("GET", f"{path}?{urlencode(pairs)}", none=404)
        return None if answer is None else answer["row"]

    def rows(
        self,
        name: str,
        *,
        where: str | None = None,
        limit: int = 1000,
        after: str | None = None,
        at_least: str | None = None,
        timeout: float = 5.0,
    ) -> Page:
        pairs = [("limit", str(limit)), *_waiting(at_least, timeout)]
        pairs += [("where", where)] if where else []
        pairs += [("after", after)] if after else []
        answer = self._ask("GET", f"/api/views/{quote(name, safe='')}?{urlencode(pairs)}")
        return Page(answer["rows"], answer["next"], answer["position"])

    def sql(self, query: str, *, at_least: str | None = None, timeout: float = 5.0) -> Page:
        path = f"/api/sql?{urlencode(_waiting(at_least, timeout))}"
        answer = self._ask("POST", path, {"sql": query})
        return Page(answer["rows"], answer["next"], answer["position"])

    def ask(self, path: str, body: object = None) -> Any:
        """Any other question of the console's API: a GET, or a POST of `body`."""
        return self._ask("GET" if body is None else "POST", path, body)

    def subscribe(
        self, name: str, *, after: int | None = None, idle: float = 20.0
    ) -> Iterator[Event]:
        """Snapshot, then changes, over server-sent events."""
        headers = dict(self._headers)
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        connection = self._connect(max(idle, 20.0))
        try:
            connection.request("GET", f"/api/views/{quote(name, safe='')}/changes", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                self._fail(response.status, response.read())
            for kind, tick, data in _events(response):
                if kind == "failed":
                    self._fail(response.status, data)
                yield _event(kind, tick, data)
        except (OSError, http.client.HTTPException) as reason:
            raise self._unreachable(reason) from reason
        finally:
            connection.close()

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        if self._encrypted:  # the server's certificate is verified
            return http.client.HTTPSConnection(self.address, timeout=seconds)
        return http.client.HTTPConnection(self.address, timeout=seconds)

    def _ask(self, method: str, path: str, body: object = None, none: int | None = None) -> Any:
        data = None if body is None else orjson.dumps(body)
        headers = {**self._headers, "Content-Type": "application/json"}
        for attempt in (1, 2):
            if self._connection is None:
                self._connection = self._connect(310)
            try:
                self._connection.request(method, path, data, headers)
                response = self._connection.getresponse()
                answer = response.read()
                break
            except (OSError, http.client.HTTPException) as reason:
                self.close()
                if attempt == 2:  # a kept connection may just have been closed by the server
                    raise self._unreachable(reason) from reason
        if response.status == none and b"view-unknown" not in answer:
            return None
        if response.status != 200:
            self._fail(response.status, answer)
        return orjson.loads(answer)

    def _unreachable(self, reason: Exception) -> ViewsRemoteError:
        return ViewsRemoteError(
            f"no console answers at {self.address}",
            detail=str(reason),
            hint="start the project with `tailrace up`, or check the address",
        )

    def _fail(self, status: int, answer: bytes) -> None:
        try:
            told: Mapping[str, str] = orjson.loads(answer)
        except orjson.JSONDecodeError:
            told = {}
        kind = KNOWN_ERRORS.get(told.get("code", ""), ViewsRemoteError)
        raise kind(
            told.get("error") or f"the console answered with status {status}",
            detail=str(told.get("detail") or ""),
            hint=str(told.get("hint") or ""),
        )


@dataclass(frozen=True, slots=True)
class RemoteView:
    """One view of `RemoteViews`, by name."""

    views: RemoteViews
    name: str

    def get(self, *key: object, at_least: str | None = None, timeout: float = 5.0) -> Row | None:
        return self.views.get(self.name, key, at_least=at_least, timeout=timeout)

    def rows(
        self,
        *,
        where: str | None = None,
        limit: int = 1000,
        after: str | None = None,
        at_least: str | None = None,
        timeout: float = 5.0,
    ) -> Page:
        return self.views.rows(
            self.name, where=where, limit=limit, after=after, at_least=at_least, timeout=timeout
        )

    def sql(self, query: str, *, at_least: str | None = None, timeout: float = 5.0) -> Page:
        """A SELECT at one tick; this view is also called `this`."""
        return self.views.sql(
            f'WITH this AS (SELECT * FROM "{self.name}") {query}',
            at_least=at_least,
            timeout=timeout,
        )

    def changes(self, *, after: int | None = None, idle: float = 20.0) -> Iterator[Event]:
        return self.views.subscribe(self.name, after=after, idle=idle)


def _waiting(at_least: str | None, timeout: float) -> list[tuple[str, str]]:
    return [("at_least", at_least), ("timeout", f"{timeout:g}s")] if at_least else []


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, int, bytes]]:
    """Kind, tick and data of every event; an "idle" one for a line that only keeps alive."""
    kind, tick, data = "", 0, b""
    for line in response:
        line = line.rstrip(b"\r\n")
        if line.startswith(b"id: "):
            tick = int(line[4:])
        elif line.startswith(b"event: "):
            kind = line[7:].decode()
        elif line.startswith(b"data: "):
            data = line[6:]
        elif line.startswith(b":"):
            yield "idle", tick, b""
        elif not line and data:
            yield kind, tick, data
            kind, data = "", b""


def _event(kind: str, tick: int, data: bytes) -> Event:
    if kind == "idle":
        return Event("idle", tick, "")
    document = orjson.loads(data)
    if kind == "snapshot":
        rows = tuple(item["row"] for item in document["snapshot"])
        return Event("snapshot", tick, document["position"], rows=rows)
    changes = tuple(Change(c["key"], c["row"]) for c in document["changes"])
    return Event("changes", tick, document["position"], changes=changes)
