"""A registry over a log in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import tailrace as tr
from tailrace.client.log import Log
from tailrace.registry.serve import RegistryServer, Settings


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as opened:
        yield opened


@pytest.fixture
def url(log: Log) -> Iterator[str]:
    with RegistryServer(log, Settings("127.0.0.1:0")) as server:
        server.start()
        yield f"http://{server.address}"


class Asking:
    """Requests, with the status and the answer as a pair."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.client = httpx.Client(base_url=url, timeout=60, **settings)

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        if body is not None:
            more["json"] = body
        answer = self.client.request(method, path, **more)
        return answer.status_code, answer.json() if answer.content else None

    def code(self, method: str, path: str, body: Any = None) -> int:
        """The error code of a refusal, which its status begins."""
        status, found = self(method, path, body)
        assert str(found["error_code"]).startswith(str(status)), found
        assert found["message"]
        return int(found["error_code"])

    def register(self, subject: str, schema: str, **more: Any) -> int:
        status, found = self("POST", f"/subjects/{subject}/versions", {"schema": schema, **more})
        assert status == 200, found
        return int(found["id"])


@pytest.fixture
def ask(url: str) -> Iterator[Asking]:
    asking = Asking(url)
    yield asking
    asking.client.close()
