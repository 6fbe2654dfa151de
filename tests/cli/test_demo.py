"""The demo's own household: ports, directories and servers that go with it."""

from __future__ import annotations

import fcntl
import importlib.util
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tailrace.cli import demo
from tailrace.errors import ComponentMissingError
from tailrace.node.processes import running


def test_a_taken_port_is_no_reason_to_give_up() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        assert demo._free(taken) == "127.0.0.1:0"
    assert demo._free(taken) == taken


def test_a_demo_for_a_time_waits_until_it_is_ready() -> None:
    assert demo.is_over(60.1, 60, ready=True)
    assert not demo.is_over(59.9, 60, ready=True)
    assert not demo.is_over(60.1, 60, ready=False)
    assert demo.is_over(60.1 + demo.START_PATIENCE_SECONDS, 60, ready=False)


def test_a_package_that_a_part_needs_is_missed_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "tantivy" else known(name)
    )
    with pytest.raises(ComponentMissingError, match="the demo needs tantivy"):
        demo._refuse_missing_packages()


def scratch(where: Path, name: str, *, marked: bool = True) -> Path:
    path = where / f"{demo.SCRATCH}{name}"
    (path / ".tailrace").mkdir(parents=True)
    (path / ".tailrace" / "up.lock").touch()
    if marked:
        (path / demo.MARK).touch()
    return path


def test_only_directories_of_demos_that_were_killed_are_swept(tmp_path: Path) -> None:
    killed = scratch(tmp_path, "killed")
    kept = scratch(tmp_path, "of-a-person", marked=False)
    starting = tmp_path / f"{demo.SCRATCH}starting"
    starting.mkdir()
    (starting / demo.MARK).touch()
    runs = scratch(tmp_path, "runs")
    with (runs / ".tailrace" / "up.lock").open("r") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        demo._sweep(tmp_path)
    assert not killed.exists()
    assert kept.exists()
    assert starting.exists()
    assert runs.exists()


def test_the_database_goes_with_a_killed_demo() -> None:
    code = (
        "import signal, sys, time\nfrom pathlib import Path\n"
        "from tailrace.node.processes import end_with_parent\n"
        "from tailrace.testing.postgres import PostgresServer\n"
        "server = PostgresServer(Path(sys.argv[1]), start_with=end_with_parent(signal.SIGINT))\n"
        "print(server.pid, server._sockets, flush=True)\ntime.sleep(600)\n"
    )
    with tempfile.TemporaryDirectory(prefix="tailrace-test-") as scratch:
        Path(scratch).chmod(0o755)  # the server is another user's, and must reach its files
        command = [sys.executable, "-c", code, f"{scratch}/postgres"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            server, sockets = parent.stdout.readline().split()
            parent.kill()
        deadline = time.monotonic() + 30
        while running(int(server)):
            assert time.monotonic() < deadline, "the server outlived its parent"
            time.sleep(0.05)
        shutil.rmtree(sockets)


def test_a_database_left_on_the_same_files_is_ended_first(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    stand_in = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", str(data)], stderr=subprocess.DEVNULL
    )
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        (data / "postmaster.pid").write_text(f"{stranger.pid}\n{data}\n")
        demo._end_database(data)
        assert stranger.poll() is None
        (data / "postmaster.pid").write_text(f"{stand_in.pid}\n{data}\n")
        watcher = subprocess.Popen(
            [sys.executable, "-c", f"from pathlib import Path; from tailrace.cli import demo; demo._end_database(Path({str(data)!r}))"]
        )  # fmt: skip
        assert stand_in.wait(30) == -signal.SIGINT
        assert watcher.wait(30) == 0
    finally:
        for process in (stand_in, stranger):
            process.kill()
            process.wait()


def test_the_browser_is_not_given_the_token_on_its_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(demo.webbrowser, "open", opened.append)
    for _ in range(2):
        demo._browse(tmp_path, "http://127.0.0.1:8080/#token=a&b")
    assert opened == [(tmp_path / "console.html").as_uri()] * 2
    assert (tmp_path / "console.html").stat().st_mode & 0o077 == 0
    assert "http://127.0.0.1:8080/#token=a&amp;b" in (tmp_path / "console.html").read_text()
