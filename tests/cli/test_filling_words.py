"""What `status` and `view list` say of views that are being filled."""

from __future__ import annotations

from typing import Any

from tailrace.cli.filling import filling


def pipelines(**facts: Any) -> list[dict[str, Any]]:
    return [{"kind": "pipelines", "state": "lagging", **facts}]


def test_a_view_that_waits_is_told_from_one_that_cannot_be_filled() -> None:
    found = filling(
        pipelines(
            filled={"later": 0.0, "half": 0.5, "boom": 0.0},
            filling={"half": 3},
            failed={"boom": {"error": "division\nby zero", "code": "evaluation"}},
        )
    )
    assert found == {
        "later": "waits to be filled",
        "half": "filling, 50% read",
        "boom": "cannot be filled: division by zero",
    }


def test_a_process_that_ended_says_nothing() -> None:
    assert filling([{"kind": "pipelines", "state": "stopped", "filled": {"a": 0.5}}]) == {}
