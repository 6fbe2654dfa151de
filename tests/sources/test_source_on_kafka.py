"""Capture into a real Apache Kafka: nothing changes but the address."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.sources import Postgres
from tailrace.sources.base import LogRecord
from tailrace.sources.log import BrokerSourceLog
from tailrace.sources.postgres.capture import PostgresCapture
from tailrace.sources.postgres.settings import CaptureSettings
from tailrace.telemetry.part import Part
from tailrace.testing.source_contract import check_events, check_tombstones, rebuild

SETTINGS = CaptureSettings(chunk_rows=200, spill_rows=300, part_rows=900)


@pytest.mark.clients
def test_capture_into_apache_kafka_and_restart(kafka: str, database: Any, tmp_path: Path) -> None:
    name = f"k{time.time_ns()}"
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, customer text)",
        "INSERT INTO orders SELECT i, 'old' FROM generate_series(1, 1000) i",
    )
    for _ in range(3):
        part = Part(name, "source", "test", kafka, tmp_path)
        source = Postgres(name, database.dsn, tables=["orders"])
        database.wait_for_slot()
        log = BrokerSourceLog(kafka, name)
        capture = PostgresCapture(source, log, part, SETTINGS)
        thread = threading.Thread(target=capture.work, daemon=True)
        thread.start()
        database.run(
            "UPDATE orders SET customer = customer || '.' WHERE id % 10 = 0",
            "INSERT INTO orders SELECT max(id) + i, 'new' FROM orders, generate_series(1, 2000) i GROUP BY i",
            "DELETE FROM orders WHERE id % 97 = 0",
        )
        wanted = database.position(name)
        with Fetcher(kafka) as fetcher, Admin(kafka) as admin:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and thread.is_alive():
                last = None
                if admin.describe_topic(f"{name}.transactions") is not None:
                    last = fetcher.read_last(f"{name}.transactions")
                cut = orjson.loads(last.value or b"{}") if last is not None else {}
                if cut.get("position", "") >= wanted and cut.get("copying") == []:
                    break
                time.sleep(0.05)
        part.stopping.set()
        thread.join(30)
    with Fetcher(kafka) as fetcher:
        records = [
            LogRecord(r.offset, r.key, r.value) for r in fetcher.read_all(f"{name}.public.orders")
        ]
    check_events(records)
    check_tombstones(records)
    rows = {row["id"]: row["customer"] for row in rebuild(records).values()}
    assert rows == dict(database.rows("SELECT id, customer FROM orders"))
