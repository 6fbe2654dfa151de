"""`history="N days"`: every change for that long, and the last row of every key for ever."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.sources import SQLite, run
from tailrace.sources.errors import PositionTooOldError
from tailrace.sources.journal import kept_config
from tailrace.telemetry.part import Part

TOPIC = "shop.main.orders"
DAY_MS = 86_400_000


def test_a_table_keeps_its_rows_however_short_its_history_is() -> None:
    assert kept_config("90 days", keyed=True) == {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(90 * DAY_MS),
        "delete.retention.ms": str(90 * DAY_MS),
    }
    assert kept_config("1 hour", keyed=True)["delete.retention.ms"] == str(7 * DAY_MS)
    assert kept_config(None, keyed=True)["min.compaction.lag.ms"] == str(7 * DAY_MS)
    assert kept_config("forever", keyed=True)["retention.ms"] == "-1"
    # Equal rows without a key cannot be told apart: all are kept.
    for history in (None, "1 hour", "forever"):
        kept = kept_config(history, keyed=False)
        assert (kept["cleanup.policy"], kept["retention.ms"]) == ("delete", "-1")


@pytest.fixture(params=["tailrace", pytest.param("kafka", marks=pytest.mark.cluster)])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A log whose cleaner comes soon: ours, and with the marker `cluster` Apache Kafka."""
    settings = {"log.cleaner.backoff.ms": "50", "log.retention.check.interval.ms": "50"}
    if request.param == "kafka":
        from servers.kafka import Kafka, KafkaUnavailable

        try:
            cluster = Kafka(tmp_path, settings=settings)
        except KafkaUnavailable as reason:
            pytest.skip(f"needs a real Kafka: {reason}")
        yield cluster.bootstrap
        cluster.stop()
        return
    with BrokerThread(tmp_path / "log", settings=settings, durable=False) as running:
        yield running.address


def records(address: str) -> list[tuple[int, dict[str, object] | None]]:
    with Fetcher(address) as fetcher:
        return [
            (orjson.loads(r.key or b"{}")["id"], r.value and orjson.loads(r.value)["after"])
            for r in fetcher.read_all(TOPIC)
        ]


def test_rows_older_than_their_history_stay_and_their_old_versions_go(
    broker: str, tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    file = sqlite3.connect(path, isolation_level=None, timeout=30)
    file.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, n INTEGER)")
    file.executemany("INSERT INTO orders VALUES (?, 0)", [(1,), (2,), (3,)])
    # A topic as it was made before: by time alone, rows unchanged for longer would go.
    quick = {"segment.ms": "200", "min.cleanable.dirty.ratio": "0"}
    with Admin(broker) as admin:
        admin.ensure_topic(
            TOPIC, 1, {"cleanup.policy": "delete", "retention.ms": "3600000", **quick}
        )
    source = SQLite("shop", str(path), tables=["orders"], history={"orders": "2 seconds"})
    part = Part("shop", "source", "test", broker, tmp_path)
    capture = threading.Thread(target=run, args=(source, part), daemon=True)
    capture.start()
    try:
        _until(lambda: len(records(broker)) >= 3)
        with Admin(broker) as admin:
            held = {name: entry.value for name, entry in admin.topic_config(TOPIC).items()}
        assert held["cleanup.policy"] == "compact"
        assert held["min.compaction.lag.ms"] == str(
            int(timedelta(seconds=2).total_seconds() * 1000)
        )
        first = next(iter(source.table("orders").changes("snapshot", bootstrap=broker))).position
        for number in range(1, 4):
            file.execute("UPDATE orders SET n = ? WHERE id = 1", (number,))
            time.sleep(0.3)
        file.execute("DELETE FROM orders WHERE id = 3")
        _until(lambda: (3, None) in records(broker))
        # Only a segment that is closed is compacted: later changes close it.
        changed_at: dict[int, float] = {}
        for number in range(4, 200):
            changed_at[number] = time.time()
            file.execute("UPDATE orders SET n = ? WHERE id = 1", (number,))
            time.sleep(0.1)
            _until(lambda: (1, {"id": 1, "n": number}) in records(broker))  # noqa: B023
            kept = [after for key, after in records(broker) if key == 1]
            young = {n for n, at in changed_at.items() if at > time.time() - 2}
            assert young <= {after["n"] for after in kept if after}, "gone before its time"
            if {"id": 1, "n": 1} not in kept:
                break
        assert {"id": 1, "n": 1} not in kept, "the cleaner never came"
        assert (2, {"id": 2, "n": 0}) in records(broker)
        rows: dict[int, dict[str, object] | None] = dict(records(broker))
        assert [row for _, row in sorted(rows.items()) if row is not None] == [
            {"id": 1, "n": number},
            {"id": 2, "n": 0},
        ]
        with pytest.raises(PositionTooOldError):
            next(iter(source.table("orders").changes(first, bootstrap=broker)))
    finally:
        part.stopping.set()
        capture.join(30)
        file.close()


def _until(reached: Callable[[], bool]) -> None:
    for _ in range(600):
        if reached():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")
