"""Whole runs against embedded brokers: clean ones, hurt ones, and ones that a proxy lies to."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

import tailrace.verify
from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.errors import UsageError
from tailrace.verify.errors import NotTheLogsError
from tailrace.verify.faults import cut_connections, parse_faults
from tailrace.verify.history import Status
from tailrace.verify.nodes import Node, parse_node
from tailrace.verify.run import Finished, Interrupted, Plan, Stopping, run
from tailrace.verify.sending import PartitionSender
from tailrace.verify.workload import Load
from verify.lying_proxy import LyingProxy

LITTLE = Load(rate=400, stay_seconds=0.5)


def _run(address: str, seconds: float = 0.5, *faults: str, nodes: list[Node] | None = None) -> Finished:  # fmt: skip
    return run(address, Plan(seconds=seconds, faults=faults, load=LITTLE), nodes or [])


def _topics(address: str) -> list[str]:
    with Admin(address) as admin:
        return [each.name for each in admin.list_topics()]


def test_a_clean_run_keeps_every_promise_and_leaves_no_topic(tailrace_broker: str) -> None:
    finished = run(
        tailrace_broker, Plan(seconds=1.0, faults=("cut",), load=LITTLE), stopping=Stopping()
    )
    assert finished.verdict.holds, finished.verdict
    assert finished.left == ()
    assert _topics(tailrace_broker) == []
    history = finished.history
    assert {each.kind for each in history.about.producers} == {"plain", "idempotent", "transactional"}  # fmt: skip
    assert {int(each) for each in history["sends"]["status"]} >= {Status.ACKNOWLEDGED, Status.ABORTED}  # fmt: skip
    assert [each.kind for each in history.about.faults] == ["cut"]
    readers = {each.client for each in history.about.consumers}
    assert readers == {"member-0", "member-1", "member-2", "reader-wire", "reader-rdkafka"}
    assert len(history["replicas"]["end"])


@contextmanager
def _lying(mode: str, folder: Path) -> Iterator[tuple[LyingProxy, str]]:
    proxy = LyingProxy(mode)
    try:
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}",
        }
        with BrokerThread(folder / "log", settings=settings, durable=False) as broker:
            proxy.target = broker.broker.address
            yield proxy, f"127.0.0.1:{proxy.port}"
    finally:
        proxy.close()


@pytest.mark.parametrize(
    ("mode", "promise"),
    [
        ("lose", "nothing-lost"),
        ("double", "nothing-twice"),
        ("swap", "order"),
        ("move", "same-offset"),
        ("reveal", "committed-only"),
    ],
)
def test_a_proxy_that_lies_is_found(mode: str, promise: str, tmp_path: Path) -> None:
    with _lying(mode, tmp_path) as (proxy, address):
        finished = _run(address)
    assert proxy.lies
    assert not finished.verdict[promise].holds
    assert finished.verdict[promise].count >= 1
    if mode != "reveal":
        plain = {each.id for each in finished.history.about.producers if each.kind == "plain"}
        assert {each["producer"] for each in finished.verdict[promise].examples} <= plain


def test_an_existing_topic_is_refused_and_kept(tailrace_broker: str) -> None:
    with Admin(tailrace_broker) as admin:
        admin.create_topic("orders", 1)
    with pytest.raises(UsageError, match='"orders" exists'):
        run(tailrace_broker, Plan(topic="orders"))
    assert _topics(tailrace_broker) == ["orders"]


def test_a_run_that_is_stopped_ends_soon_and_leaves_no_topic(tailrace_broker: str) -> None:
    stopping = Stopping()

    def on_line(line: str) -> None:
        if line.startswith("writing"):
            stopping.set()

    with pytest.raises(Interrupted):
        run(tailrace_broker, Plan(seconds=600, load=LITTLE), stopping=stopping, tell=on_line)
    assert _topics(tailrace_broker) == []


def test_a_batch_that_gets_no_answer_is_unknown_and_one_never_sent_has_failed(tmp_path: Path) -> None:  # fmt: skip
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        with Admin(broker.address) as admin:
            admin.create_topic("t", 1)
        sender = PartitionSender(broker.address, "t", 0, idempotent=True)
        sender.begin()
        assert sender.send([b"a", b"b"]).offset == 0
        assert sender.send([b"c"]).offset == 2
        host, port = broker.broker.address
        stop = threading.Event()

        def cut() -> None:
            while not stop.is_set():
                cut_connections([(host, port)])

        cutting = threading.Thread(target=cut)
        cutting.start()
        try:
            statuses = set()
            until = time.monotonic() + 30
            while Status.UNKNOWN not in statuses and time.monotonic() < until:
                statuses.add(sender.send([b"d"]).status)
            assert Status.UNKNOWN in statuses
        finally:
            stop.set()
            cutting.join()
    outcome = sender.send([b"e"])
    assert outcome.status is Status.FAILED
    sender.close()


# Nodes ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "1", "1=", "1=4711", "x=pid:1", "1=pid:x", "1=start:a,pid:1"])
def test_a_node_that_is_not_written_as_one_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a node is ID=pid:NUMBER"):
        parse_node(text)


def test_the_command_of_a_node_may_hold_commas() -> None:
    node = parse_node("2=pid:17,start:sh -c 'a, b'")
    assert (node.id, node.pid, node.start) == (2, 17, "sh -c 'a, b'")


def _await_state(pid: int, *, stopped: bool) -> None:
    """A signal takes effect a moment after it was sent."""
    until = time.monotonic() + 60
    while (psutil.Process(pid).status() == psutil.STATUS_STOPPED) is not stopped:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_only_processes_that_serve_the_log_may_be_hurt(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path / "one") as broker,
        BrokerProcess(tmp_path / "two") as other,
        subprocess.Popen(["sleep", "100"]) as bystander,
    ):
        try:
            host, port = broker.address.rsplit(":", 1)
            for pid in (bystander.pid, other.pid, os.getpid(), 1, 2**22 + 1):
                with pytest.raises(NotTheLogsError):
                    Node(1, pid, (host, int(port)))
            node = Node(1, broker.pid, (host, int(port)))
            try:
                node.pause()
                _await_state(broker.pid, stopped=True)
            finally:
                assert node.restore() is None
                node.close()
            _await_state(broker.pid, stopped=False)
        finally:
            bystander.kill()


def test_faults_that_the_nodes_do_not_allow_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no fault 'burn'"):
        parse_faults("kill,burn")
    with BrokerProcess(tmp_path / "log") as broker:
        with pytest.raises(UsageError, match="needs processes to hurt"):
            _run(broker.address, 0.1, "kill")
        host, port = broker.address.rsplit(":", 1)
        node = Node(1, broker.pid, (host, int(port)))
        with pytest.raises(UsageError, match="could not be started again"):
            _run(broker.address, 0.1, "kill", nodes=[node])
        node.start_command = "false"
        with pytest.raises(UsageError, match="no elected controller"):
            _run(broker.address, 0.1, "kill-controller", nodes=[node])
        node.close()
        assert _topics(broker.address) == []
        assert broker.process.poll() is None


# The command ---------------------------------------------------------------------


def _tailrace(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["verify", *arguments])
    if isinstance(result.exception, UsageError):
        return 2, result.exception.message
    return result.exit_code, result.output


def test_the_command_verifies_reports_and_judges_again(tmp_path: Path) -> None:
    """A throw-away broker is killed once; report, page and history are kept."""
    folder = tmp_path / "runs" / "one"
    command = [sys.executable, "-P", "-m", "tailrace", "verify", "--embedded", "--for", "500ms"]
    ran = subprocess.run(
        [*command, "--faults", "kill", "--rate", "300", "--report", str(folder), "--json"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert document["holds"] is True
    assert document["promises"][0]["name"] == "order"
    (fault,) = document["faults"]
    assert (fault["kind"], fault["node"]) == ("kill", "1")
    assert fault["producer_seconds"] > 0
    assert json.loads((folder / "report.json").read_text()) == document
    page = (folder / "index.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing beside it is loaded
    assert "kill 1" in page
    assert tailrace.verify.check(folder).holds
    assert _tailrace("check", str(folder), "--json")[0] == 0
    status, listed = _tailrace("list", str(tmp_path / "runs"), "--json")
    assert status == 0
    assert [each["run"] for each in json.loads(listed)] == [str(folder)]
    assert "is not empty" in _tailrace("--embedded", "--report", str(folder))[1]


def test_a_broken_history_is_told_with_its_records(tmp_path: Path) -> None:
    from tailrace.testing.histories import good_draft
    from tailrace.verify.history import write_history
    from tailrace.verify.report import as_page

    draft = good_draft()
    del draft.log[0]
    history = draft.history()
    write_history(tmp_path / "history", history)
    status, words = _tailrace("check", str(tmp_path))
    assert status == 1
    assert "✗ nothing-lost" in words
    assert "broken by 1 record:" in words
    status, text = _tailrace("check", str(tmp_path), "--json")
    found = {each["name"]: each for each in json.loads(text)["promises"]}
    assert status == 1
    assert found["nothing-lost"]["examples"][0]["sequence"] == 0
    page = as_page(history, tailrace.verify.check(tmp_path))
    assert 'href="#broken-nothing-lost-0"' in page
    assert 'id="broken-nothing-lost-0"' in page


def test_arguments_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    assert "both a throw-away log" in _tailrace("--embedded", "--kafka", str(tmp_path))[1]
    assert "only one in its run" in _tailrace("--embedded", "--node", "1=pid:1")[1]
    assert "only one in its run" in _tailrace("--embedded", "--bootstrap", "127.0.0.1:1")[1]
    assert _tailrace("--embedded", "--for", "soon")[0] == 2
    assert _tailrace("--embedded", "--faults", "burn")[0] == 2
    assert CliRunner().invoke(cli, ["verify", "check", str(tmp_path)]).exit_code == 1


def _interrupted(address: str, pid: int, folder: Path, when: str | float) -> None:
    """A run with a pause is interrupted while the broker is paused, or after some seconds: then
    the broker runs, and there is no topic."""
    verifying = subprocess.Popen(
        [sys.executable, "-P", "-m", "tailrace", "verify", "--bootstrap", address, "--for", "4s",
         "--faults", "pause", "--node", f"1=pid:{pid}", "--rate", "200", "--report", str(folder)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    broker = psutil.Process(pid)
    if isinstance(when, float):
        time.sleep(when)
    else:
        while broker.status() != when:
            assert verifying.poll() is None, verifying.communicate()
            time.sleep(0.01)
    verifying.send_signal(signal.SIGINT)
    _, words = verifying.communicate()
    assert verifying.returncode in (130, -signal.SIGINT), words
    _await_state(pid, stopped=False)
    assert _topics(address) == [], words


def test_ctrl_c_while_a_broker_is_paused_lets_it_go_on_and_removes_the_topic(tmp_path: Path) -> None:  # fmt: skip
    with BrokerProcess(tmp_path / "log") as broker:
        _interrupted(broker.address, broker.pid, tmp_path / "report", psutil.STATUS_STOPPED)


@pytest.mark.crash
def test_ctrl_c_in_any_second(tmp_path: Path) -> None:
    chance = random.Random(28)
    with BrokerProcess(tmp_path / "log") as broker:
        for number in range(25):
            folder = tmp_path / f"report-{number}"
            _interrupted(broker.address, broker.pid, folder, chance.uniform(0.0, 9.0))


@pytest.mark.crash
def test_ten_runs_under_every_fault_of_one_broker_raise_no_false_alarm(tmp_path: Path) -> None:
    from tailrace.verify.throwaway import start_embedded

    for _ in range(10):
        log = start_embedded()
        try:
            faults = ("kill", "pause", "restart", "cut", "kill-leader", "rolling")
            finished = _run(log.address, 10.0, *faults, nodes=log.nodes)
            assert finished.verdict.holds, finished.verdict
            assert finished.left == ()
        finally:
            log.stop()
