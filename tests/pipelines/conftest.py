"""Logs and one Spark session for the pipelines' tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def log_address(kafka: str) -> str:
    """Where a log answers."""
    return kafka
