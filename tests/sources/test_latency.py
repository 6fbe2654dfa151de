"""How long a transaction took from its commit to the log, as a source tells it."""

from __future__ import annotations

from tailrace.sources import SQLite
from tailrace.sources.journal import Journal
from tailrace.testing.fake_clock import FakeClock
from tailrace.testing.source_log import MemorySourceLog, SharedLog


def test_latency_is_that_of_the_oldest_transaction_and_told_once() -> None:
    clock = FakeClock(wall_ms=10_000)
    journal = Journal(SQLite("shop", "shop.db"), MemorySourceLog(SharedLog()), clock=clock)
    journal.open()
    journal.latency_ms()
    for committed_ms in (9_000, 8_500, 9_900):
        journal.note({"status": "BEGIN", "id": "1", "ts_ms": committed_ms})
        journal.note({"status": "END", "id": "1", "ts_ms": committed_ms})
    clock.advance(0.25)
    assert journal.latency_ms() is None  # nothing is in the log yet
    journal.cut(1)
    assert journal.latency_ms() == 1_750
    assert journal.latency_ms() is None
    journal.cut(2)
    assert journal.latency_ms() is None
