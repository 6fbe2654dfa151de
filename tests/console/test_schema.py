"""The API called with whatever its own description allows: no answer is a server error that
does not explain itself, and every error has its four parts."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from servers.consoles import Console

# Streams have no end, and comparing every copy takes long: both are tried elsewhere.
LEFT_OUT = ("/api/live", "/changes", "/records", "/verify")
FOUR_PARTS = {"error", "detail", "hint", "code"}
EXPLAINED = (503, 504)  # the log or a position is waited for in vain


def judge(status: int, content_type: str, body: bytes, parsed: Any) -> None:
    if status < 400:
        assert content_type.startswith(("application/json", "text/plain", "text/html")), body
        return
    assert status < 500 or status in EXPLAINED, body
    assert isinstance(parsed, dict), body
    assert set(parsed) == FOUR_PARTS, parsed


@pytest.mark.timeout(300)
def test_no_call_that_the_description_allows_breaks_the_console(console: Console) -> None:
    document = console.client.get("/api/openapi.json").json()
    operations = [found.ok() for found in schemathesis.openapi.from_dict(document).get_all_operations()]  # fmt: skip
    tried = [one for one in operations if not one.path.endswith(LEFT_OUT)]
    assert len(tried) > 20

    for operation in tried:

        @settings(
            max_examples=3,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def call(case: schemathesis.Case) -> None:
            asked = case.as_transport_kwargs(base_url="http://127.0.0.1:8080")
            asked.pop("cookies", None)
            answer = console.client.request(**asked)
            kind = answer.headers.get("content-type", "")
            parsed = answer.json() if kind.startswith("application/json") else None
            judge(answer.status_code, kind, answer.content, parsed)

        call()
