"""Runs and mirrors over TLS with a log-in, and no secret in what they leave."""

from __future__ import annotations

from pathlib import Path

from broker.authentication.guarded_broker import PASSWORD, Guarded
from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.client.log import connect
from tailrace.mirroring.relay import Mirror
from tailrace.verify.report import as_page
from tailrace.verify.run import Plan, run
from tailrace.verify.workload import Load


def test_a_log_with_tls_and_scram_is_verified_and_mirrored(
    tmp_path: Path, tailrace_broker: str
) -> None:
    guarded = Guarded(tmp_path)
    try:
        address = guarded.alice("SASL_SSL", "SCRAM-SHA-512")
        plan = Plan(seconds=0.5, faults=("cut",), load=Load(rate=300))
        finished = run(address, plan, folder=tmp_path / "run")
        assert finished.verdict.holds, finished.verdict
        assert finished.left == ()
        files = [each for each in (tmp_path / "run").rglob("*") if each.is_file()]
        assert len(files) == 6
        written = b"".join(each.read_bytes() for each in files)
        written += as_page(finished.history, finished.verdict).encode()
        assert PASSWORD.encode() not in written
        with Admin(address) as admin:
            admin.create_topic("orders", 1)
        with connect(address) as log, log.producer() as producer:
            producer.send("orders", value=b"x")
        with Mirror("m", address, tailrace_broker, topics="orders") as mirror:
            mirror.run_until_caught_up()
        with Fetcher(tailrace_broker) as fetcher:
            assert [each.value for each in fetcher.read_all("orders")] == [b"x"]
    finally:
        guarded.thread.stop()
