"""Ticks on a real log, without Spark: the same driver, planner and job."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from pipelines.shop import CUSTOMERS, ORDERS, graph, recompute, shown, traffic
from tailrace.client.writer import TransactionalWriter
from tailrace.errors import TailraceError
from tailrace.pipelines.errors import ShardsChangedError, TickFencedError
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.state.cache import ShardCache
from tailrace.pipelines.state.store import Version
from tailrace.pipelines.ticks.cache_warming import catch_up
from tailrace.pipelines.ticks.driver import TickDriver, TickSettings, last_row
from tailrace.pipelines.ticks.job import Work, gather, guarded
from tailrace.testing.feed import ChangeFeed


def in_process(work: Work):  # type: ignore[no-untyped-def]
    return gather(guarded(work))


class Shop:
    """One project on a log."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self.bootstrap = bootstrap
        self.directory = directory
        self.name = f"shop{uuid.uuid4().hex[:8]}"
        self.view = f"{self.name}_open_orders"
        self.graph = graph(self.name, self.view)

    def settings(self, **changed: object) -> TickSettings:
        fields = {"shards": 3, **changed}
        return TickSettings(
            self.name, self.bootstrap, str(self.directory / "state"), str(self.directory / "cache"),
            **fields,  # type: ignore[arg-type]
        )  # fmt: skip

    def feed(self) -> ChangeFeed:
        return ChangeFeed(self.bootstrap, self.name, [ORDERS, CUSTOMERS])

    @contextlib.contextmanager
    def driver(self, **changed: object) -> Iterator[TickDriver]:
        driver = TickDriver(self.graph, self.settings(**changed), in_process)
        try:
            driver.start()
            yield driver
        finally:
            driver.close()

    def catch_up(self, driver: TickDriver, position: str) -> None:
        for _ in range(200):
            if driver.last.positions.get(self.name) == position:
                return
            driver.step(0.5)
        raise AssertionError(f"never reached {position}: {driver.last}")


@pytest.fixture
def shop(log_address: str, tmp_path: Path) -> Shop:
    return Shop(log_address, tmp_path)


def test_a_view_equals_a_recompute_after_every_tick(shop: Shop) -> None:
    with shop.feed() as feed, shop.driver() as driver:
        for number, changes in enumerate(traffic(1, 25), 1):
            position = feed.transaction(*changes)
            shop.catch_up(driver, position)
            assert driver.last.number == number
            assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_caches_are_brought_up_to_date_in_the_pause_after_a_tick(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind: list[str] = []
    bring_to = ShardCache.bring_to

    def watched(cache: ShardCache, version: Version) -> None:
        behind.extend(version)  # a shard that has no state yet is behind nothing
        bring_to(cache, version)

    with shop.feed() as feed, shop.driver() as driver:
        for changes in traffic(11, 12):
            with monkeypatch.context() as patch:
                patch.setattr(ShardCache, "bring_to", watched)
                shop.catch_up(driver, feed.transaction(*changes))
            assert not behind
            catch_up(driver.settings, driver.last)
            assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_a_cache_that_cannot_be_written_is_told_by_the_tick_that_needs_it(shop: Shop) -> None:
    with shop.feed() as feed, shop.driver() as driver:
        shop.catch_up(driver, feed.transaction(*next(iter(traffic(12, 1)))))
        cache = Path(driver.settings.cache)
        shutil.rmtree(cache)
        cache.write_text("in the way")
        catch_up(driver.settings, driver.last)  # says nothing
        position = feed.transaction(("customers", {"id": 9}, {"country": "NL"}))
        with pytest.raises((TailraceError, OSError)):
            shop.catch_up(driver, position)
        cache.unlink()
        shop.catch_up(driver, position)
        assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_many_transactions_make_one_tick_and_a_limit_stops_at_a_cut(shop: Shop) -> None:
    with shop.feed() as feed:
        for changes in traffic(2, 30):
            position = feed.transaction(*changes)
        with shop.driver(limit=10) as driver:
            shop.catch_up(driver, position)
            assert driver.last.number > 3
            assert shown(shop.bootstrap, shop.view) == recompute(feed)
        for changes in traffic(3, 30):
            position = feed.transaction(*changes)
        with shop.driver() as driver:
            before = driver.last.number
            shop.catch_up(driver, position)
            assert driver.last.number <= before + 2
            assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_an_aborted_transaction_of_a_source_is_never_seen(shop: Shop) -> None:
    with shop.feed() as feed, shop.driver() as driver:
        for number, changes in enumerate(traffic(4, 20)):
            position = feed.transaction(*changes, abort=number % 3 == 0)
        shop.catch_up(driver, position)
        assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_views_wait_while_the_first_copy_of_their_table_runs(shop: Shop) -> None:
    with shop.feed() as feed, shop.driver() as driver:
        feed.transaction(("orders", {"id": 1}, {"customer_id": 1, "amount": "1.00", "status": "open"}),
                         copying=["orders"])  # fmt: skip
        feed.transaction(("customers", {"id": 1}, {"country": "NL"}), copying=["orders"])
        assert driver.step(1.0) is None
        position = feed.transaction(("customers", {"id": 2}, {"country": "DE"}))
        shop.catch_up(driver, position)
        assert driver.last.number == 1
        assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_a_new_driver_fences_the_old_one_and_goes_on(shop: Shop) -> None:
    changes = list(traffic(5, 12))
    with shop.feed() as feed, shop.driver() as old:
        shop.catch_up(old, [feed.transaction(*c) for c in changes[:4]][-1])
        with shop.driver() as new:
            position = [feed.transaction(*c) for c in changes[4:]][-1]
            with pytest.raises(TickFencedError, match="taken over"):
                shop.catch_up(old, position)
            shop.catch_up(new, position)
            assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_state_is_restored_when_caches_and_unnamed_files_come_and_go(shop: Shop) -> None:
    import shutil

    with shop.feed() as feed:
        for number, changes in enumerate(traffic(6, 12)):
            position = feed.transaction(*changes)
            if number % 3 == 0:
                shutil.rmtree(shop.directory / "cache", ignore_errors=True)
            with shop.driver() as driver:
                shop.catch_up(driver, position)
        assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_another_number_of_shards_is_refused(shop: Shop) -> None:
    with shop.feed() as feed:
        with shop.driver() as driver:
            shop.catch_up(driver, feed.transaction(("customers", {"id": 1}, {"country": "NL"})))
        with pytest.raises(ShardsChangedError), shop.driver(shards=5):
            pass


def test_a_position_without_changes_is_covered_by_a_row_alone(shop: Shop) -> None:
    with shop.feed() as feed, shop.driver() as driver:
        shop.catch_up(driver, feed.transaction(("customers", {"id": 1}, {"country": "NL"})))
        files = list((shop.directory / "state").rglob("*.delta"))
        shop.catch_up(driver, feed.transaction())
        assert list((shop.directory / "state").rglob("*.delta")) == files
        with LogReader(shop.bootstrap) as reader:
            row = last_row(reader, shop.name)
        assert row is not None
        assert row.positions[shop.name] == feed.text_position


def test_records_that_cannot_be_read_become_dead_letters(shop: Shop) -> None:
    with shop.feed() as feed, shop.driver() as driver:
        writer = TransactionalWriter(shop.bootstrap, f"tailrace.{shop.name}.bad")
        writer.init()
        writer.send(feed.topic("orders"), 0, b'{"id":99}', b"{not json")
        writer.commit()
        writer.close()
        position = [feed.transaction(*c) for c in traffic(7, 20)][-1]
        shop.catch_up(driver, position)
        assert driver.dead == 1
        with LogReader(shop.bootstrap) as reader:
            (records,) = list(read_all(reader, f"{shop.name}.dead"))
        letter = orjson.loads(records.values[0] or b"")
        assert letter["position"].startswith(f"log:{feed.topic('orders')}/0:")
        assert shown(shop.bootstrap, shop.view) == recompute(feed)


def test_every_tick_names_the_end_of_every_changelog_partition(shop: Shop) -> None:
    with shop.feed() as feed, shop.driver() as driver:
        for changes in traffic(8, 6):
            shop.catch_up(driver, feed.transaction(*changes))
            with LogReader(shop.bootstrap) as reader:
                stable = {p: end for p, (_, end) in reader.bounds(shop.view).items()}
            ends = driver.last.ends[shop.view]
            assert ends.keys() == stable.keys()
            # The marker that ended the transaction takes one offset more.
            assert all(stable[p] - ends[p] in (0, 1) for p in stable)


def test_a_topic_of_plain_rows_with_a_key_is_a_table_for_views(tailrace_broker: str, tmp_path: Path) -> None:  # fmt: skip
    import tailrace as tr
    from tailrace.client.writer import TransactionalWriter
    from tailrace.pipelines.compiler import compile_views
    from tailrace.pipelines.reading.catalog import topic_table
    from tailrace.pipelines.ticks.project import ProjectTicks

    prices = tr.topic("prices", schema="sku STRING, price INT", key="sku")
    view = tr.view("total", "SELECT count(*) AS n, sum(price) AS price FROM prices")
    ticks = ProjectTicks(
        compile_views([view], [topic_table(prices)]),
        TickSettings("p", tailrace_broker, str(tmp_path / "state"), str(tmp_path / "cache")),
        in_process,
        plain=frozenset(["prices"]),
    )
    with TransactionalWriter(tailrace_broker, "w") as writer:
        writer.init()
        for key, row in ((b"a", b'{"sku":"a","price":1}'), (b"b", b'{"sku":"b","price":2}'), (b"a", b'{"sku":"a","price":5}'), (b"b", None)):  # fmt: skip
            writer.send("prices", 0, key, row)
        writer.commit()
    ticks.start()
    for _ in range(20):
        ticks.step(0.2)
    ticks.close()
    with LogReader(tailrace_broker) as reader:
        values = [value for records in read_all(reader, "total") for value in records.values]
    assert values[-1] == b'{"row":{"n":1,"price":5}}'
