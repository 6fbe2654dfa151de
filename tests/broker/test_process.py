"""The broker as a part of a project, and as a child process."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from tailrace.broker.embedded import BrokerProcess, BrokerThread
from tailrace.broker.errors import StartError
from tailrace.broker.process import run
from tailrace.broker.vitals import SAMPLES, Vitals
from tailrace.clock import SYSTEM
from tailrace.log.errors import SyncFailedError
from tailrace.log.files import Files
from tailrace.telemetry.part import Part, read_reports
from tailrace.testing.wire_client import WireClient, batch_of


def test_a_part_reports_its_address_and_stops_when_told(tmp_path: Path) -> None:
    part = Part("log", "broker", "shop", "", tmp_path)
    running = threading.Thread(
        target=run,
        args=([tmp_path / "log"],),
        kwargs={"host": "127.0.0.1", "port": 0, "part": part},
    )
    running.start()
    deadline = SYSTEM.monotonic() + 30
    while not (reports := read_reports(tmp_path)) and SYSTEM.monotonic() < deadline:
        SYSTEM.sleep(0.02)
    assert reports[0]["state"] == "running"
    vitals = {
        name: reports[0][name]
        for name in ("produce_error_share", "damaged_ranges", "failed_partitions")
    }
    assert vitals == dict.fromkeys(vitals, 0)
    assert 0 <= reports[0]["loop_idle_share"] <= 1
    assert 0 < reports[0]["disk_free_share"] < 1
    with WireClient(reports[0]["address"]) as client:
        client.create("t")
        assert client.produce("t", batch_of(b"x")).base_offset == 0
    part.stopping.set()
    running.join()
    assert read_reports(tmp_path)[0]["state"] == "stopped"
    assert (tmp_path / "log" / "clean-stop").exists()


def test_vitals_tell_the_share_of_refused_requests_and_damage(tmp_path: Path) -> None:
    with BrokerThread(tmp_path) as thread, WireClient(thread.address) as client:
        vitals = Vitals(thread.broker)
        client.create("t")
        assert vitals.look()["produce_requests"] == 0
        for number in range(10):
            refused = bytearray(batch_of(b"x"))
            refused[-1] ^= 1 if number < 4 else 0
            client.produce("t", refused)
        found = vitals.look()
        assert (found["produce_requests"], found["produce_error_share"]) == (10, 0.4)
        for _ in range(SAMPLES):
            found = vitals.look()
        assert (found["produce_requests"], found["produce_error_share"]) == (0, 0.0)


def test_a_child_that_does_not_come_up_leaves_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError) as refused:
        BrokerProcess(tmp_path / "file")
    assert "no data directory can be opened" in refused.value.detail


def test_a_stop_during_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    acknowledged = 0
    with BrokerProcess(tmp_path) as broker:
        with WireClient(broker.address) as client:
            client.create("t")

        def write() -> None:
            nonlocal acknowledged
            with WireClient(broker.address) as client:
                try:
                    while True:
                        client.produce("t", batch_of(bytes(1000)))
                        acknowledged += 1
                except OSError:
                    return

        writer = threading.Thread(target=write)
        writer.start()
        while acknowledged < 50:
            SYSTEM.sleep(0.01)
        assert broker.stop() == 0
        writer.join()
    with BrokerProcess(tmp_path) as broker, WireClient(broker.address) as client:
        assert acknowledged <= client.fetch("t", 0).high_watermark <= acknowledged + 1


def test_a_failed_sync_is_reported_counted_and_ends_the_process_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part("log", "broker", "shop", "", tmp_path)
    ended: list[BaseException] = []

    def serve() -> None:
        try:
            run([tmp_path / "log"], host="127.0.0.1", port=0, part=part)
        except SyncFailedError as error:
            ended.append(error)

    running = threading.Thread(target=serve)
    running.start()
    deadline = SYSTEM.monotonic() + 30
    while not (reports := read_reports(tmp_path)) and SYSTEM.monotonic() < deadline:
        SYSTEM.sleep(0.02)

    def refused(number: int) -> None:
        if os.readlink(f"/proc/self/fd/{number}").endswith(".log"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with WireClient(reports[0]["address"]) as client:
        client.create("t", flush_messages="1")
        monkeypatch.setattr(Files, "sync_data", staticmethod(refused))
        assert client.produce("t", batch_of(b"x")).error_code == 56
    while not read_reports(tmp_path)[0]["sync_failures"] and SYSTEM.monotonic() < deadline:
        SYSTEM.sleep(0.05)
    (report,) = read_reports(tmp_path)
    assert report["error"]["code"] == "sync-failed"
    assert (report["sync_failures"], report["failed_partitions"]) == (1, 1)
    part.stopping.set()
    running.join(30)
    assert [type(error) for error in ended] == [SyncFailedError]
