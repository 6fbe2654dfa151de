"""A guarded broker, and connections that speak for whom a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.authorization.users import GUARDED, Guarded


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """A broker with an authorizer, where `User:admin` is a super user."""
    with Guarded(tmp_path / "log") as broker:
        yield broker


@pytest.fixture
def start_guarded(tmp_path: Path) -> Iterator[Callable[..., Guarded]]:
    """Guarded brokers with other settings; all are stopped after the test."""
    started: list[Guarded] = []

    def begin(**settings: str) -> Guarded:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        started.append(Guarded(tmp_path / "log", {**GUARDED, **given}))
        return started[-1]

    yield begin
    for one in started:
        one.stop()
