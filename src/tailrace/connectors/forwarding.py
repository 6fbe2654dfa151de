"""Requests from one worker to another."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

SECONDS = 90.0


def send(
    url: str,
    method: str,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    trust: ssl.SSLContext | None = None,
    seconds: float = SECONDS,
) -> tuple[int, bytes, Mapping[str, str]]:
    """Status, body and headers of the answer. Raises OSError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=trust)
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=seconds)
    )
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), {n.lower(): v for n, v in answer.getheaders()}
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url} did not answer: {error}") from error
    finally:
        connection.close()
