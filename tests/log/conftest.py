"""A store in a fresh directory, with a clock the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from log_helpers import HandClock
from tailrace.log.settings import LogSettings
from tailrace.log.store import Store


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def open_store(tmp_path: Path, clock: HandClock) -> Iterator[Callable[..., Store]]:
    """Opens the store of this test, again and again; closes what is left open."""
    opened: list[Store] = []

    def open_it(**settings: str) -> Store:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        store = Store.open([tmp_path / "data"], LogSettings.from_mapping(names), clock)
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        if not store.closed:
            store.abandon()
