from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.authentication.guarded_broker import Guarded


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One broker with a listener of every kind, for all tests here that do not change it."""
    made = Guarded(tmp_path_factory.mktemp("guarded"))
    yield made
    made.thread.stop()
