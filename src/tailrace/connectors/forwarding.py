"""Requests from one worker to another."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from urllib.parse import urlsplit

SECONDS = 90.0


def send(
    url: str, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> tuple[int, bytes, Mapping[str, str]]:
    """Status, body and headers of the answer. Raises OSError."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), {n.lower(): v for n, v in answer.getheaders()}
    except http.client.HTTPException as error:
        raise ConnectionError(f"{url} did not answer: {error}") from error
    finally:
        connection.close()
