"""Who may listen where, which settings a client may change, what a lost disk stops."""

from __future__ import annotations

import io
import logging
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace import config
from tailrace.broker import listener as listening
from tailrace.broker.connection import STEP_BYTES
from tailrace.broker.embedded import BrokerThread
from tailrace.broker.settings import DEFINITIONS
from tailrace.broker.start import Start, parse, run
from tailrace.errors import OpenListenerError
from tailrace.telemetry import logs
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import incremental_alter_configs as altering
from tailrace.wire.messages import init_producer_id as init
from tailrace.wire.messages import metadata as meta


@pytest.mark.parametrize("listen", ["0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:9092", "example.org:1"])
def test_a_log_that_others_can_reach_must_be_asked_for(tmp_path: Path, listen: str) -> None:
    with pytest.raises(OpenListenerError) as caught:
        run(Start([str(tmp_path)], listen))
    assert caught.value.code == "listen-open"
    assert "--insecure" in caught.value.hint
    assert not list(tmp_path.iterdir())


def test_the_plain_command_line_knows_the_flag() -> None:
    start = parse(["--data", "d", "--insecure", "--listen", "0.0.0.0:1"])
    assert start is not None
    assert (start.insecure, start.listen) == (True, "0.0.0.0:1")


def test_a_project_that_opens_its_log_must_say_so(tmp_path: Path) -> None:
    file = tmp_path / config.FILE_NAME
    file.write_text('[log]\nlisten = "0.0.0.0:9092"\n')
    with pytest.raises(OpenListenerError, match="open to all") as caught:
        config.load(tmp_path, environment={})
    assert "tailrace.toml" in caught.value.detail
    assert "log.insecure" in caught.value.hint
    file.write_text('[log]\nlisten = "0.0.0.0:9092"\ninsecure = true\n')
    assert config.load(tmp_path, environment={}).log.insecure
    file.write_text('[log]\nlisten = "0.0.0.0:9092"\nbootstrap = "kafka:9092"\n')
    assert not config.load(tmp_path, environment={}).log.insecure


def alter(talk: WireClient, name: str, value: str) -> int:
    change = altering.AlterableConfig(name, 0, value)
    answer = talk.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        altering.IncrementalAlterConfigsRequest(
            resources=[altering.AlterConfigsResource(4, "1", [change])]
        ),
    )
    code: int = answer.responses[0].error_code
    return code


def test_a_client_cannot_say_where_the_archive_is(talk: WireClient, tmp_path: Path) -> None:
    assert alter(talk, "tailrace.archive.url", str(tmp_path / "elsewhere")) == 40


@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext.", "listener.name.other."])
def test_a_client_cannot_say_which_files_prove_who_is_who(talk: WireClient, prefix: str) -> None:
    for name, value in [
        ("ssl.keystore.location", "/tmp/another.pem"),
        ("ssl.keystore.type", "PKCS12"),
        ("ssl.truststore.location", "/tmp/another.pem"),
        ("ssl.truststore.type", "PKCS12"),
        ("ssl.allow.dn.changes", "true"),
        ("ssl.allow.san.changes", "true"),
    ]:
        assert alter(talk, prefix + name, value) == 40, prefix + name


def test_settings_that_a_client_may_change_name_no_file_and_no_address() -> None:
    # Somebody who may change settings must not get files read or written, or others called.
    changeable = [one for one in DEFINITIONS.values() if not one.read_only]
    assert changeable
    for one in changeable:
        assert one.kind not in ("string", "password") or one.choices, one.name


def test_a_place_kept_by_an_earlier_version_is_not_taken_and_stops_no_start(
    start: Callable[..., BrokerThread], tmp_path: Path
) -> None:
    start().stop()
    kept = tmp_path / "log" / "dynamic-settings.json"
    kept.write_text('{"tailrace.archive.url": "/elsewhere", "num.partitions": "3"}')
    settings = start().broker.settings
    assert settings.text("tailrace.archive.url") == ""
    assert settings.text("num.partitions") == "3"


def test_a_lost_disk_of_two_stops_no_producer(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    ask = init.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    with BrokerThread(first, second, durable=False) as broker, WireClient(broker.address) as talk:
        before = talk.ask(ApiKey.INIT_PRODUCER_ID, 4, ask)
        assert before.error_code == 0
        second.rename(tmp_path / "away")  # as far as anybody can tell, the disk is gone
        broker.broker._producer_ids._end = broker.broker._producer_ids._next
        answer = talk.ask(ApiKey.INIT_PRODUCER_ID, 4, ask)
        assert answer.error_code == 0
        assert answer.producer_id > before.producer_id
        assert int((first / "producer-ids").read_text()) > answer.producer_id
        assert alter(talk, "num.partitions", "3") == 0
        (tmp_path / "away").rename(second)


def test_no_disk_at_all_is_an_answer_and_not_a_closed_connection(tmp_path: Path) -> None:
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        inside = broker.broker

        def refuse(*arguments: object) -> None:
            raise OSError("gone")

        inside._producer_ids._files = type("Gone", (), {"write_whole": refuse})()  # type: ignore[assignment]
        with WireClient(broker.address) as talk:
            ask = init.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            assert talk.ask(ApiKey.INIT_PRODUCER_ID, 4, ask).error_code == 15
            assert talk.ask(ApiKey.METADATA, 9, meta.MetadataRequest()).brokers


def test_a_few_bytes_of_a_promised_frame_are_worth_a_page(
    broker: BrokerThread, connect: Callable[[str], WireClient]
) -> None:
    clients = [connect(broker.address) for _ in range(50)]
    for client in clients:
        client.send_bytes((90 << 20).to_bytes(4, "big") + b"\0")
    for _ in range(200):
        if broker.broker.listener.reserved_bytes:
            break
        connect(broker.address).ask(ApiKey.METADATA, 9, meta.MetadataRequest())
    assert 0 < broker.broker.listener.reserved_bytes <= 50 * STEP_BYTES


def test_a_frame_that_does_not_go_on_is_given_up(
    broker: BrokerThread, connect: Callable[[str], WireClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "CUT_FRAME_SECONDS", 0.0)
    cut, idle = connect(broker.address), connect(broker.address)
    idle.ask(ApiKey.METADATA, 9, meta.MetadataRequest())
    cut.send_bytes((100).to_bytes(4, "big") + b"\0")
    for _ in range(100):
        broker.broker.call_from_thread(broker.broker.listener._sweep)
        idle.ask(ApiKey.METADATA, 9, meta.MetadataRequest())
        if len(broker.broker.listener.connections) == 1:
            break
    assert cut.closed_by_peer()
    assert idle.ask(ApiKey.METADATA, 9, meta.MetadataRequest()).brokers


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:{}", 200), ("localhost:{}", 200), ("[::1]:{}", 200), ("evil.example:{}", 403), ("evil.example", 403)],
)  # fmt: skip
def test_the_metrics_page_is_not_for_web_pages_of_others(
    start: Callable[..., BrokerThread], host: str, status: int
) -> None:
    broker = start(metrics_listen="127.0.0.1:0").broker
    request = f"GET /metrics HTTP/1.1\r\nHost: {host.format(broker.metrics_port)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", broker.metrics_port), 30) as sock:
        sock.sendall(request.encode())
        assert sock.makefile("rb").readline().split()[1] == b"%d" % status


def test_text_of_clients_stays_on_its_line_of_the_log() -> None:
    out = io.StringIO()
    record = logging.makeLogRecord(
        {
            "name": "tailrace.broker",
            "msg": "request unreadable",
            "peer": "a\nERROR forged\x1b[2Jb\u2028\x9b",
        }
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(logs.HumanFormatter())
    handler.emit(record)
    (line,) = out.getvalue().splitlines()
    assert "peer=a\\nERROR forged\\x1b[2Jb" in line
