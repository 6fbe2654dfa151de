"""`tailrace broker` and `tailrace topic`, as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.cli.broker import broker as broker_command
from tailrace.cli.topic import topic as topic_command
from tailrace.errors import TailraceError
from tailrace.testing.wire_client import WireClient, batch_of

Run = Callable[..., Result]


@pytest.fixture
def nothing_left_behind() -> None:
    """librdkafka closes its sockets on threads of its own, when it likes."""


@pytest.fixture
def run(broker: BrokerThread) -> Run:
    def call(*arguments: str, stdin: str | None = None, fails: bool = False) -> Result:
        result = CliRunner().invoke(
            topic_command, [*arguments, "--log", broker.address], input=stdin
        )
        if not fails and result.exception is not None:
            raise result.exception
        return result

    return call


def test_a_broker_starts_answers_and_stops_on_sigterm(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as started:
        with WireClient(started.address) as client:
            client.create("t")
            client.produce("t", batch_of(b"x"))
        assert started.stop() == 0
    assert (tmp_path / "clean-stop").exists()


def test_an_unknown_setting_is_refused_by_name(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "tailrace", "broker", "start", "--data", str(tmp_path),
         "--listen", "127.0.0.1:0", "--set", "log.retenton.ms=5"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert finished.returncode == 1
    assert "log.retenton.ms" in finished.stderr
    assert "did you mean log.retention.ms?" in finished.stderr


def test_what_one_node_cannot_keep_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        broker_command,
        ["start", "--data", str(tmp_path), "--listen", "127.0.0.1:0",
         "--set", "min.insync.replicas=2"],
    )  # fmt: skip
    assert isinstance(result.exception, TailraceError)
    assert "one node" in result.exception.message
    assert "cluster" in result.exception.hint


def test_a_directory_in_use_says_who_has_it(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path):
        result = CliRunner().invoke(
            broker_command, ["start", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]
        )
    assert isinstance(result.exception, TailraceError)
    assert result.exception.code == "data-locked"


def test_topics_are_created_listed_described_altered_and_deleted(run: Run) -> None:
    run("create", "clicks", "--partitions", "3", "--config", "retention.ms=1000")
    run("write", "clicks", "--key", "k", stdin="one\ntwo\n")
    rows = json.loads(run("list", "--json").stdout)
    assert rows == [{"topic": "clicks", "partitions": 3, "records": 2}]
    told = json.loads(run("describe", "clicks", "--json").stdout)
    assert told["config"]["retention.ms"] == "1000"
    assert "expire between" in told["expires"]
    run("alter", "clicks", "--config", "retention.ms=5 seconds")
    assert (
        json.loads(run("describe", "clicks", "--json").stdout)["config"]["retention.ms"] == "5000"
    )
    run("delete", "clicks", "--yes")
    assert json.loads(run("list", "--json").stdout) == []


def test_records_are_read_from_where_one_says(run: Run) -> None:
    run("create", "t", "--partitions", "1")
    run("write", "t", "--key-separator", ":", stdin='a:{"n":1}\nb:two\n\n')
    documents = [json.loads(line) for line in run("read", "t").stdout.splitlines()]
    assert [(one["key"], one["value"]) for one in documents] == [
        ("a", {"n": 1}),
        ("b", "two"),
        (None, ""),
    ]
    assert run("read", "t", "--from", "1", "--format", "raw").stdout == "two\n\n"
    assert run("read", "t", "--from", "latest").stdout == ""
    assert len(run("read", "t", "--max", "2").stdout.splitlines()) == 2
    assert run("read", "t", "--from", "2000-01-01T00:00:00", "--max", "1").stdout != ""


def test_following_a_topic_prints_what_comes_later_until_it_is_stopped(
    broker: BrokerThread, talk: WireClient
) -> None:
    talk.create("t", 4)
    talk.produce("t", batch_of(b"before"))
    reader = subprocess.Popen(
        [sys.executable, "-m", "tailrace", "topic", "read", "t", "--follow", "--format", "raw",
         "--log", broker.address],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        assert reader.stdout.readline() == "before\n"
        for number in range(8):
            talk.produce("t", batch_of(b"%d" % number), partition=number % 4)
            assert reader.stdout.readline() == f"{number}\n", "each is printed as it comes"
        assert reader.poll() is None
        reader.send_signal(signal.SIGINT)
        assert reader.stdout.read() == ""
        assert "Traceback" not in reader.stderr.read()
    assert reader.returncode in (0, 130)


def test_following_from_the_end_ends_after_as_many_as_one_wants(
    broker: BrokerThread, talk: WireClient
) -> None:
    talk.create("t", 2)
    talk.produce("t", batch_of(b"old"))
    reader = subprocess.Popen(
        [sys.executable, "-m", "tailrace", "topic", "read", "t", "--follow", "--from", "latest",
         "--max", "2", "--log", broker.address],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with reader:
        assert reader.stdout is not None
        lines: list[str] = []
        number = 0
        while reader.poll() is None:  # where it began to read, only it knows
            talk.produce("t", batch_of(b"%d" % number), partition=number % 2)
            number += 1
            time.sleep(0.02)
        lines = reader.stdout.read().splitlines()
    assert reader.returncode == 0
    assert len(lines) == 2
    assert "old" not in {json.loads(line)["value"] for line in lines}


def test_growing_a_keyed_topic_needs_force(run: Run) -> None:
    run("create", "t", "--partitions", "2")
    run("write", "t", "--key", "k", stdin="x\n")
    refused = run("alter", "t", "--partitions", "4", fails=True)
    assert isinstance(refused.exception, TailraceError)
    assert "repartition" in refused.exception.hint
    run("alter", "t", "--partitions", "4", "--force")
    assert len(json.loads(run("describe", "t", "--json").stdout)["partitions"]) == 4


def test_a_topic_without_keys_grows(run: Run) -> None:
    run("create", "t", "--partitions", "1")
    run("write", "t", stdin="x\n")
    run("alter", "t", "--partitions", "2")
    assert len(json.loads(run("describe", "t", "--json").stdout)["partitions"]) == 2


def test_repartition_keeps_the_order_of_every_key_and_moves_groups(
    run: Run, broker: BrokerThread
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    run("create", "t", "--partitions", "2", "--config", "retention.ms=123456789")
    lines = "".join(f"key{number % 10}:{number}\n" for number in range(200))
    run("write", "t", "--key-separator", ":", stdin=lines)
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g"})
    ends = [consumer.get_watermark_offsets(TopicPartition("t", n), 20)[1] for n in range(2)]
    consumer.commit(
        offsets=[TopicPartition("t", n, end // 2) for n, end in enumerate(ends)],
        asynchronous=False,
    )
    consumer.close()
    read_before = {
        json.loads(line)["value"]
        for n, end in enumerate(ends)
        for line in run("read", "t", "--partition", str(n)).stdout.splitlines()[: end // 2]
    }
    told = json.loads(run("repartition", "t", "--partitions", "5", "--group", "g", "--json").stdout)
    assert told["records"] == 200
    documents = [json.loads(line) for line in run("read", "t-5").stdout.splitlines()]
    by_key: dict[str, list[int]] = {}
    homes: dict[str, set[int]] = {}
    for one in documents:
        by_key.setdefault(one["key"], []).append(int(one["value"]))
        homes.setdefault(one["key"], set()).add(one["partition"])
    assert all(values == sorted(values) and len(values) == 20 for values in by_key.values())
    assert all(len(home) == 1 for home in homes.values())
    described = json.loads(run("describe", "t-5", "--json").stdout)
    assert described["config"]["retention.ms"] == "123456789"
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g"})
    asked = [TopicPartition("t-5", n) for n in range(5)]
    starts = {one.partition: one.offset for one in consumer.committed(asked, 20)}
    consumer.close()
    skipped = {one["value"] for one in documents if one["offset"] < starts[one["partition"]]}
    assert skipped <= read_before
    assert skipped


def test_inspect_tells_what_lies_in_a_directory(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as started:
        with WireClient(started.address) as client:
            client.create("t", 2)
            for _ in range(3):
                client.produce("t", batch_of(b"a", b"b"))
        os.kill(started.pid, signal.SIGKILL)
        started.process.wait()
        with (tmp_path / "t-0" / f"{0:020d}.log").open("ab") as file:
            file.write(b"torn")
    result = CliRunner().invoke(broker_command, ["inspect", str(tmp_path), "--json"])
    assert result.exception is None, result.exception
    told = json.loads(result.stdout)
    assert told["stopped_cleanly"] is False
    rows = {(row["topic"], row["partition"]): row for row in told["partitions"]}
    assert rows["t", 0]["end"] == 6
    assert rows["t", 0]["torn_bytes"] == 4
    assert rows["t", 1]["end"] == 0
    assert "t" in CliRunner().invoke(broker_command, ["inspect", str(tmp_path)]).stdout


@pytest.mark.parametrize(
    ("listen", "code"),
    [("10.255.255.1:0", "broker-listen"), ("no.such.host.invalid:0", "broker-listen"),
     ("nonsense", "usage"), ("127.0.0.1:99999", "usage")],
)  # fmt: skip
def test_an_address_that_cannot_be_listened_on_is_told(
    tmp_path: Path, listen: str, code: str
) -> None:
    result = CliRunner().invoke(
        broker_command,
        ["start", "--data", str(tmp_path / "log"), "--insecure", "--listen", listen],
    )
    assert isinstance(result.exception, TailraceError)
    assert result.exception.code == code


def test_an_address_in_use_is_told(tmp_path: Path, broker: BrokerThread) -> None:
    with pytest.raises(TailraceError, match="another process listens"):
        BrokerThread(tmp_path / "other", port=broker.broker.address[1])


def test_inspect_of_something_else_says_so(tmp_path: Path) -> None:
    result = CliRunner().invoke(broker_command, ["inspect", str(tmp_path)])
    assert isinstance(result.exception, TailraceError)
