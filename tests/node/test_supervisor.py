"""The supervisor: order, restarts, draining, and nothing left after kill -9."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.errors import PortInUseError, TailraceError
from tailrace.node.errors import AlreadyRunningError
from tailrace.node.health import status_of
from tailrace.node.history import read_history
from tailrace.node.journal import Journal
from tailrace.node.plan import of_project, plan
from tailrace.node.processes import born, end_leftovers, members, record
from tailrace.node.processes import running as running_process
from tailrace.node.supervisor import Child, Supervisor
from tailrace.pipelines.streams.beginnings import DIRECTORY, Beginning, InputStart
from tailrace.pipelines.streams.checkpoint import StreamFiles
from tailrace.project import load
from tailrace.telemetry.part import Part

TAILRACE = str(Path(sys.executable).with_name("tailrace"))


@pytest.fixture
def project(tmp_path: Path) -> load.Project:
    """A project of a log and a console alone: quick to start."""
    (tmp_path / "tailrace.toml").write_text(
        '[project]\nname = "small"\n[log]\nlisten = "127.0.0.1:0"\n'
        '[console]\nlisten = "127.0.0.1:0"\n[topics."clicks"]\npartitions = 3\n'
    )
    return load.load(tmp_path)


@pytest.fixture
def running(project: load.Project) -> Iterator[Supervisor]:
    with Supervisor(project, echo=lambda line: None) as supervisor:
        supervisor.start()
        until(supervisor, supervisor.ready)
        yield supervisor


def until(supervisor: Supervisor, true: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        supervisor.run_once(0.05)


def pid_of(project: load.Project, part: str) -> int:
    path = project.settings.state_directory / "run" / f"{part}.json"
    return int(json.loads(path.read_text())["pid"])


def test_a_killed_part_is_started_again_at_the_same_address(
    running: Supervisor, project: load.Project
) -> None:
    address, before = running.address, pid_of(project, "broker-log")
    os.kill(before, signal.SIGKILL)
    until(running, lambda: not running.ready())
    until(running, lambda: running.ready() and pid_of(project, "broker-log") != before)
    assert running.address == address
    report = json.loads((project.settings.state_directory / "run" / "broker-log.json").read_text())
    assert report["address"] == address


def test_a_part_that_fails_again_and_again_keeps_its_last_error(tmp_path: Path) -> None:
    first = Part("shop", "pipelines", "p", "127.0.0.1:9", tmp_path)
    first.report("failed", error={"error": "key is not unique", "code": "key-not-unique"})

    def told() -> dict[str, object]:
        return dict(json.loads(first.report_path.read_text()))

    first.report_path.write_text(json.dumps({**told(), "restarts": 4, "ended_at": 5}))
    again = Part("shop", "pipelines", "p", "127.0.0.1:9", tmp_path)
    again.remember()
    again.report("starting")
    assert told()["error"] == {"error": "key is not unique", "code": "key-not-unique"}
    again.report("running", tick=1)
    assert told()["error"] is None
    assert told()["restarts"] == 4
    again.report("running", error={"error": "another"})
    assert told()["error"] == {"error": "another"}


def test_topics_of_the_project_file_exist(running: Supervisor) -> None:
    from tailrace.client.admin import Admin

    with Admin(running.address) as admin:
        assert len(admin.end_offsets([("clicks", 0), ("clicks", 1), ("clicks", 2)])) == 3


def test_where_streams_begin_is_written_before_anything_else_starts(
    project: load.Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins = Beginning("placed", (InputStart(("clicks",), "latest"),))
    planned = replace(of_project(project), beginnings=(begins,))
    files = StreamFiles(project.settings.state_directory / DIRECTORY, "placed")
    launch, seen = Supervisor._launch, []

    def watched(self: Supervisor, child: Child) -> None:
        seen.append((child.spec.kind, files.written() is not None))
        launch(self, child)

    monkeypatch.setattr(Supervisor, "_launch", watched)
    with Supervisor(planned, echo=lambda line: None) as supervisor:
        supervisor.start()
    assert seen == [("broker", False), ("console", True)]
    (start,) = files.starts()
    assert start is not None
    assert start.offsets == {"clicks": {"0": 0, "1": 0, "2": 0}}


def test_a_second_up_is_refused_and_names_the_first(
    running: Supervisor, project: load.Project
) -> None:
    with pytest.raises(AlreadyRunningError) as caught, Supervisor(project):
        pass
    assert str(os.getpid()) in caught.value.detail


def test_status_from_outside_says_ready_and_later_stopped(
    running: Supervisor, project: load.Project
) -> None:
    def status() -> dict[str, object]:
        done = subprocess.run(
            [TAILRACE, "status", str(project.directory), "--json"], capture_output=True, text=True
        )
        found: dict[str, object] = json.loads(done.stdout)
        return found

    assert status()["ready"] is True
    running.drain()
    after = status()
    assert after["ready"] is False
    assert {part["state"] for part in after["parts"]} == {"stopped"}  # type: ignore[attr-defined]


def test_nothing_is_left_after_kill_9_of_the_supervisor(project: load.Project) -> None:
    process = subprocess.Popen(
        [TAILRACE, "up", str(project.directory), "--quiet"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "ready":
            assert process.poll() is None
        children = {part: pid_of(project, part) for part in ("broker-log", "console-console")}
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    deadline = time.monotonic() + 20
    while any(born(pid) is not None for pid in children.values()):
        assert time.monotonic() < deadline, "children outlived their supervisor"
        time.sleep(0.05)
    with Supervisor(project, echo=lambda line: None) as supervisor:  # and the next takes over
        supervisor.start()
        until(supervisor, supervisor.ready)


def test_state_that_is_deleted_under_a_running_project_is_told_at_once(
    project: load.Project,
) -> None:
    home = project.settings.directory
    with subprocess.Popen(
        [TAILRACE, "up", str(home)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        assert up.stdout is not None
        assert any(line.strip() == "ready" for line in up.stdout)
        shutil.rmtree(project.settings.state_directory, ignore_errors=True)
        _, said = up.communicate(timeout=60)
        assert up.returncode == 1
    assert "[state-gone]" in said
    status = subprocess.run([TAILRACE, "status", str(home)], capture_output=True, text=True)
    assert status.returncode == 1
    assert status.stdout.count("was deleted or replaced while the project ran") == 2
    assert "running" not in status.stdout


def test_leftovers_are_ended_but_never_a_stranger_with_the_same_id(tmp_path: Path) -> None:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        listed = [
            {"id": "a", "pid": left.pid, "born": born(left.pid)},
            {"id": "b", "pid": stranger.pid, "born": 1},
        ]
        (tmp_path / "children.json").write_text(json.dumps(listed))
        assert end_leftovers(tmp_path / "children.json") == [left.pid]
        assert left.wait(60) == -signal.SIGTERM
        assert stranger.poll() is None
    finally:
        left.kill()
        stranger.kill()
        left.wait()
        stranger.wait()


def test_helpers_of_a_part_that_is_gone_are_ended_too(tmp_path: Path) -> None:
    part = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60 & echo $!; wait"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert part.stdout is not None
    helper = int(part.stdout.readline())
    record(tmp_path / "children.json", [("pipelines-shop", part.pid)])
    part.kill()
    part.wait()
    part.stdout.close()
    assert list(members(part.pid)) == [helper]
    assert end_leftovers(tmp_path / "children.json") == []
    assert not running_process(helper)


def test_a_part_that_was_stopped_drains_when_the_project_does(project: load.Project) -> None:
    said: list[str] = []
    with Supervisor(project, echo=said.append) as supervisor:
        supervisor.start()
        until(supervisor, supervisor.ready)
        os.kill(pid_of(project, "console-console"), signal.SIGSTOP)
    assert not [line for line in said if "killed" in line]


def test_status_knows_parts_that_are_still_to_come(project: load.Project) -> None:
    with Supervisor(project, echo=lambda line: None) as supervisor:
        supervisor.start()  # the log answers, the console is on its way
        found = status_of(project.settings)
        assert {part["kind"] for part in found["parts"]} == {"broker", "console"}
        assert found["ready"] is supervisor.ready()


def test_a_full_disk_loses_lines_of_the_journal_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "up.log").symlink_to("/dev/full")
    journal = Journal(tmp_path / "up.log")
    journal.write("one")
    journal.write("two")
    assert journal.lost == 2
    (tmp_path / "up.log").unlink()
    journal.close()
    journal.write("three")
    journal.close()
    assert (tmp_path / "up.log").read_text().splitlines() == [
        "2 lines were lost: the disk was full",
        "three",
    ]


def test_the_journal_is_bounded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "up.log", largest=100)
    for number in range(50):
        journal.write(f"line {number}")
    journal.close()
    kept = [path.read_text().splitlines() for path in sorted(tmp_path.iterdir())]
    assert kept[0][-1] == "line 49"
    assert all(len("\n".join(lines)) <= 100 for lines in kept)
    assert len(kept) == 2


def test_a_broker_that_cannot_start_says_why(project: load.Project, tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[log]\nlisten = "127.0.0.1:0"\nbroker."no.such" = 1\n[console]\nlisten = "127.0.0.1:0"\n')  # fmt: skip
    from tailrace.node.errors import BrokerDidNotStartError

    broken = load.load(tmp_path)
    with (
        pytest.raises(BrokerDidNotStartError) as caught,
        Supervisor(broken, echo=lambda line: None) as supervisor,
    ):
        supervisor.start()
    assert "no.such" in caught.value.detail


def test_a_used_port_is_told_before_anything_starts(project: load.Project) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = load.load(project.directory, flags={"console.listen": f"127.0.0.1:{port}"})
        with (
            pytest.raises(PortInUseError) as caught,
            Supervisor(taken, echo=lambda line: None) as supervisor,
        ):
            supervisor.start()
    assert str(port) in caught.value.message
    assert not list((project.settings.state_directory / "run").glob("*.json"))


def test_mistakes_in_a_project_are_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "wrong"\n')
    (tmp_path / "pipelines").mkdir()
    for code, expected in (
        ('import tailrace as tr\nv = tr.view("v", "SELEC 1")\n', "main.py:2"),
        ("import sys\nsys.exit(3)\n", "main.py:2"),
        ("import os\nos._exit(3)\n", "status 3"),
    ):
        (tmp_path / "pipelines" / "main.py").write_text(code)
        with pytest.raises(TailraceError) as caught:
            plan(tmp_path)
        assert expected in caught.value.detail, caught.value.render()


def test_the_supervisor_keeps_nothing_of_what_a_project_imports(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "heavy"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "main.py").write_text("import pyarrow, wave\n")
    code = (
        "import sys, pathlib; from tailrace.node.plan import plan;"
        f"from tailrace.node.supervisor import Supervisor; plan(pathlib.Path({str(tmp_path)!r}));"
        "print([m for m in ('pyarrow', 'wave', 'pyspark', 'duckdb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_what_happens_to_parts_is_remembered(running: Supervisor, project: load.Project) -> None:
    before = pid_of(project, "console-console")
    os.kill(before, signal.SIGKILL)
    until(running, lambda: running.ready() and pid_of(project, "console-console") != before)
    running.drain()
    told = [(one["what"], one["part"]) for one in read_history(project.settings.state_directory)]
    assert told == [
        ("down", ""), ("started", "console console"), ("ended", "console console"), ("up", ""),
    ]  # fmt: skip
    (ended,) = [o for o in read_history(project.settings.state_directory) if o["what"] == "ended"]
    assert (ended["pid"], ended["text"]) == (before, "ended (signal SIGKILL)")
    assert len(read_history(project.settings.state_directory, limit=2)) == 2
