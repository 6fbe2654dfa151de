"""KafkaJS, a client in JavaScript that speaks the older versions of the protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).parent / "js"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program beside its package, installed once."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("needs Node.js and npm")
    made = tmp_path_factory.mktemp("js")
    for name in ("package.json", "client.js"):
        shutil.copy(PROGRAM / name, made / name)
    done = subprocess.run(
        [npm, "install", "--no-package-lock", "--no-audit", "--no-fund"],
        cwd=made,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"npm could not install KafkaJS: {done.stderr[-300:]}")
    return made


def test_kafkajs_produces_consumes_transacts_and_administers(directory: Path, address: str) -> None:
    done = subprocess.run(
        ["node", "client.js", address, "js"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    saw = json.loads(done.stdout)
    records = saw.pop("records")
    assert records == 1000 + 2 + 2  # one aborted, one committed, and a marker behind each
    assert saw == {
        "created": [True, False],
        "values": {**{f"v{number}": 100 for number in range(10)}, "committed": 1},
        "headers": ["one", "two"],
        "state": "Stable",
        "sent": "5",
        "retention": "200000",
        "partitions": 5,
        "low": "10",
        "deleted": 0,
    }
