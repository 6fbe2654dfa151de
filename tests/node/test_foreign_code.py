"""No code is taken from the directory that somebody happens to be in, nor a project's file
for a module of the library that has its name."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from tailrace.broker.embedded import BrokerProcess
from tailrace.log.child import Child
from tailrace.project import load

NAMES = ("orjson", "queue", "types", "secrets", "random", "lmdb", "uvicorn", "tomllib", "sitecustomize")  # fmt: skip
PROJECT = """
[project]
name = "small"
[log]
listen = "127.0.0.1:0"
[console]
listen = "127.0.0.1:0"
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory full of files that tell when they are run."""
    place = tmp_path / "shared"
    place.mkdir()
    for name in NAMES:
        ran = place / f"{name}.ran"
        (place / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')\nraise SystemExit('mine')\n")
    monkeypatch.chdir(place)
    return place


def ran(place: Path) -> list[str]:
    return sorted(path.stem for path in place.glob("*.ran"))


def test_children_of_the_log_take_none(hostile: Path) -> None:
    child = Child("tailrace.log.cleaner", b"{}")  # no job: it fails, after it was loaded
    until = time.monotonic() + 60
    while not child.ended:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert child.result() is None
    assert ran(hostile) == []


def test_an_embedded_broker_takes_none(hostile: Path, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data"):
        assert ran(hostile) == []


def test_parts_of_a_project_take_none_and_find_its_own_files(hostile: Path) -> None:
    (hostile / "tailrace.toml").write_text(PROJECT)
    (hostile / "pipelines").mkdir()
    (hostile / "words.py").write_text("TERM = 'term STRING'\n")
    (hostile / "pipelines" / "shop.py").write_text(
        "import tailrace as tr\nfrom words import TERM\nclicks = tr.topic('clicks', schema=TERM)\n"
    )
    program = str(Path(sys.executable).with_name("tailrace"))
    with subprocess.Popen([program, "up", "--quiet"], stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout is not None
            said = [up.stdout.readline() for _ in range(2)]
        finally:
            up.terminate()
    assert said[1] == "ready\n"
    assert ran(hostile) == []


def test_the_directory_of_a_project_comes_last(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text(PROJECT)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.py").write_text("import tailrace\n")
    before = list(sys.path)
    try:
        load.load(tmp_path)
        assert sys.path[: len(before)] == before
        assert sys.path[-1] == str(tmp_path)
    finally:
        sys.path[:] = before
    assert orjson.dumps(1) == b"1"
