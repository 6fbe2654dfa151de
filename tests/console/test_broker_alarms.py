"""What the broker's own figures make of an operator's attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.console.alarms import alarms

WELL = {
    "kind": "log", "name": "broker", "state": "running", "produce_requests": 1000,
    "produce_error_share": 0.0, "loop_idle_share": 0.7, "disk_free_share": 0.5,
    "damaged_ranges": 0, "failed_partitions": 0,
}  # fmt: skip


def raised(tmp_path: Path, **figures: Any) -> list[tuple[str, str]]:
    found = alarms([{**WELL, **figures}], [], tmp_path)
    return [(each["level"], each["message"]) for each in found if each["what"] == "log broker"]


def test_a_broker_that_is_well_raises_no_alarm(tmp_path: Path) -> None:
    assert raised(tmp_path) == []


@pytest.mark.parametrize(
    ("figures", "level", "words"),
    [
        ({"produce_error_share": 0.02}, "warning", "refused 2%"),
        ({"produce_error_share": 0.5}, "critical", "refused 50%"),
        ({"loop_idle_share": 0.05}, "warning", "idle 5%"),
        ({"loop_idle_share": 0.0}, "critical", "idle 0%"),
        ({"disk_free_share": 0.08}, "warning", "8% free"),
        ({"disk_free_share": 0.01}, "critical", "1% free"),
        ({"damaged_ranges": 1}, "critical", "damaged"),
        ({"failed_partitions": 3}, "critical", "cannot be written"),
    ],
)
def test_a_broker_in_trouble_says_so(
    tmp_path: Path, figures: dict[str, Any], level: str, words: str
) -> None:
    ((found, message),) = raised(tmp_path, **figures)
    assert found == level
    assert words in message


def test_a_single_failure_of_few_requests_is_no_alarm(tmp_path: Path) -> None:
    assert raised(tmp_path, produce_requests=5, produce_error_share=0.2) == []
