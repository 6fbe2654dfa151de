"""What Spark's Python API shows is read in UTC.

`collect()` and `createDataFrame` translate a TIMESTAMP into a naive datetime of the process's
zone: Spark's own convention, on any host. These tests compare such values with those of views,
which no zone ever touches (tests/test_zones.py), so they ask Spark in UTC.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def asked_in_utc(request: pytest.FixtureRequest) -> Iterator[None]:
    if "spark" not in request.fixturenames:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()
