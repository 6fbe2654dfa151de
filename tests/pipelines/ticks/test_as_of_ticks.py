"""As-of joins from the records of a log: changes, deletes, rows of copies, early and late."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from pipelines.ticks.test_ticks import in_process
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.ticks.driver import TickDriver, TickSettings, last_row
from tailrace.pipelines.ticks.job import Outcome, Work
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.testing.feed import ChangeFeed, FeedTable
from tailrace.testing.ticks import table

RATES = FeedTable("rates", (("currency", "STRING"), ("rate", "BIGINT")), ("currency",))
ORDERS = FeedTable(
    "orders", (("id", "BIGINT"), ("currency", "STRING"), ("at", "TIMESTAMP")), ("id",)
)
SINCE_EVER = -(1 << 50)


class Judge:
    """Every version there ever was, in the order of the log, and the rule for copies."""

    def __init__(self) -> None:
        self.versions: dict[str, list[tuple[int, int | None]]] = {}

    def take(self, currency: str, since: int, rate: int | None, copied: bool) -> None:
        known = self.versions.setdefault(currency, [])
        if copied and not known:
            since = SINCE_EVER
        elif copied and self.at(currency, since) == rate:
            return
        known.append((since, rate))

    def at(self, currency: str, when: int) -> int | None:
        found: tuple[int, int | None] = (SINCE_EVER - 1, None)
        for version in self.versions.get(currency, []):  # of equal times the last one counts
            if found[0] <= version[0] <= when:
                found = version
        return found[1]


def shown(bootstrap: str, project: str, view: str) -> dict[int, int | None]:
    rows: dict[bytes | None, dict[str, int | None]] = {}
    with LogReader(bootstrap) as reader:
        tick = last_row(reader, project)
        assert tick is not None
        for records in read_all(reader, tick.views[view].topic):
            for key, value in zip(records.keys, records.values, strict=True):
                rows.pop(key, None)
                if value is not None:
                    rows[key] = orjson.loads(value)["row"]
    return {row["id"] or 0: row["rate"] for row in rows.values()}


@pytest.mark.parametrize("run", [in_process, run_levels_here], ids=["one task", "levels"])
@pytest.mark.parametrize("seed", range(4))
def test_every_row_shows_the_version_of_its_time(
    tailrace_broker: str, tmp_path: Path, seed: int, run: Callable[[Work], Outcome]
) -> None:
    rng = random.Random(seed)
    source = f"shop{uuid.uuid4().hex[:6]}"
    sql = f"""SELECT o.id, r.rate FROM {source}.orders o
        LEFT JOIN {source}.rates FOR SYSTEM_TIME AS OF o.at r ON r.currency = o.currency"""
    tables = [
        table(f"{source}.public.rates", "currency STRING, rate BIGINT", ["currency"], "history"),
        table(f"{source}.public.orders", "id BIGINT, currency STRING, at TIMESTAMP", ["id"]),
    ]
    graph = compile_views([ViewDefinition(f"{source}_v", sql, ("id",))], tables)
    settings = TickSettings(
        source, tailrace_broker, str(tmp_path / "state"), str(tmp_path / "cache"), shards=2
    )
    judge = Judge()
    orders: dict[int, tuple[str, int]] = {}
    driver = TickDriver(graph, settings, run)
    with ChangeFeed(tailrace_broker, source, [RATES, ORDERS]) as feed:
        try:
            driver.start()
            for number in range(30):
                at_ms = rng.choice([number * 10, rng.randrange(400)])
                currency = rng.choice(["EUR", "USD", "SEK"])
                key = {"currency": currency}
                held = feed.rows["rates"].get(orjson.dumps(key))
                copied = rng.random() < 0.3
                rate = None if held and not copied and rng.random() < 0.3 else number
                if copied and held and rng.random() < 0.7:
                    rate = held["rate"]  # what is known; else a change that was missed
                row = None if rate is None else {"rate": rate}
                feed.transaction(("rates", key, row), at_ms=at_ms, copied=copied)
                judge.take(currency, at_ms, rate, copied)
                identity, when = rng.randrange(12), rng.randrange(400)
                orders[identity] = (currency, when)
                moment = datetime.fromtimestamp(when / 1000, UTC).isoformat()
                placed = {"currency": currency, "at": moment}
                position = feed.transaction(("orders", {"id": identity}, placed))
                if rng.random() < 0.6:
                    continue
                while driver.last.positions.get(source) != position:
                    driver.step(0.5)
                assert shown(tailrace_broker, source, f"{source}_v") == {
                    number: judge.at(*placed) for number, placed in orders.items()
                }
        finally:
            driver.close()
