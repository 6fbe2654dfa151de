# ruff: noqa: F811
"""A database and a log for each test, and a capture that runs in a thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from servers.capture import SMALL, Database, Running
from servers.databases import (  # noqa: F401  (fixtures)
    binlog_case,
    binlog_server,
    database,
    postgres_server,
    shared,
)
from tailrace.sources import Postgres
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.testing.source_log import SharedLog


@pytest.fixture
def capture(database: Database, shared: SharedLog, tmp_path: Path) -> Callable[..., Running]:
    """Start capturing the test's database: `with capture(tables=[…]) as running`."""

    def start(settings: CaptureSettings = SMALL, **parameters: Any) -> Running:
        directory = parameters.pop("directory", tmp_path)
        fail_after = parameters.pop("fail_after", None)
        if directory == tmp_path:
            database.wait_for_slot()
        return Running(
            Postgres("shop", parameters.pop("dsn", database.dsn), **parameters),
            shared,
            directory,
            settings,
            fail_after,
        )

    return start
