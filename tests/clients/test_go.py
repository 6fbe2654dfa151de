"""franz-go, a client in Go that follows the newest protocol."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

Client = Callable[..., str]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client in tests/clients/go, built once."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go")
    built = tmp_path_factory.mktemp("go") / "client"
    made = subprocess.run(
        [go, "build", "-o", str(built), "."],
        cwd=Path(__file__).parent / "go",
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"Go could not build the client: {made.stderr[-300:]}")
    return built


@pytest.fixture
def client(program: Path, address: str, topic: str) -> Client:
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(program), address, topic, *arguments], capture_output=True, text=True, timeout=90
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_records_come_back(client: Client) -> None:
    assert client("produce", "5000") == "produced 5000"
    assert client("consume", "5000", "one") == f"consumed 5000 sum {sum(range(5000))}"
    client("produce", "10")
    assert client("consume", "10", "one") == f"consumed 10 sum {sum(range(10))}"


def test_aborted_transactions_are_not_read(client: Client) -> None:
    assert client("transact", "10") == "transactions 10"
    assert client("consume", "5", "g") == "consumed 5 sum 20"


def test_topics_are_administered(client: Client) -> None:
    assert client("admin") == "partitions 3 retention 86400000"
