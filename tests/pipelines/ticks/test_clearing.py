"""Erased records leave the views: their state, changelogs, caches and pages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

import tailrace as tr
from log_helpers import HandClock
from pipelines.reading.test_event_views import Project
from servers.accounts import declare, deposit, open_account
from tailrace.broker.embedded import BrokerThread
from tailrace.client.log import Log
from tailrace.client.ranges import KafkaRanges
from tailrace.facts.erased_records import ErasedRecords, views_place
from tailrace.facts.erasures import Erased, Erasures
from tailrace.facts.excising import erase_records
from tailrace.facts.opened import OpenedEvents
from tailrace.pipelines.ticks.clearing import Clearing
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.serving import store
from tailrace.serving.follower import COMPACT_AGAIN_SECONDS, Follower
from tailrace.serving.reader import Views

NEEDLE = "Wilhelmina Zonderling"
VIEWS = {
    "owners": "SELECT stream, max(Opened.owner) AS owner, count(*) AS n FROM {t} GROUP BY stream",
    "totals": "SELECT stream, sum(amount) AS total FROM {t}.deposited GROUP BY stream",
}


def held(place: Path) -> set[str]:
    """The directories, by their first names, with a file that holds the needle."""
    return {
        path.relative_to(place).parts[0]
        for path in place.rglob("*")
        if path.is_file() and NEEDLE.encode() in path.read_bytes()
    }


def follow_on(follower: Follower) -> None:
    while follower.step(0.5):
        pass


class Shop:
    """A project with two views of an event topic, its log, and who follows them."""

    def __init__(self, address: str, log: Log, root: Path, bank: OpenedEvents) -> None:  # type: ignore[type-arg]
        self.log, self.root, self.bank = log, root, bank
        self.views = Project(address, root, bank.declared)
        self.name = self.views.name
        self.book = Erasures(log)
        self.erased = ErasedRecords(address, views_place(self.name))
        self.clock = HandClock()

    def write(self) -> str:
        """Twelve accounts; where the event stands that is to be erased."""
        for number in range(12):
            owner = NEEDLE if number == 7 else f"owner {number}"
            self.bank.execute(open_account, f"a{number}", owner=owner)
            done = self.bank.execute(deposit, f"a{number}", amount=number)
        position = self.bank.history("a7")[0].position
        assert done.position is not None
        return position

    def reach(self, ticks: ProjectTicks) -> None:
        for stream in ("a1", "a2", "a3", "a4", "a11"):
            done = self.bank.execute(deposit, stream, amount=1)
            assert done.position is not None
            self.views.reach(ticks, done.position)

    def clear(self, ticks: ProjectTicks, most: int = 100) -> bool:
        """Clear the views as the runner does, with at most so many ticks; whether it ended."""
        clearing = Clearing(ticks, self.erased, self.clock)
        for _ in range(most):
            clearing.step()
            if not self.erased.waiting():
                return True
            ticks.step(0.0)
        return False

    def follow(self) -> dict[str, str | None]:
        """The owners as a follower shows them."""
        with (
            contextlib.closing(KafkaRanges(self.views.address)) as log,
            Follower(self.root / "views", log, self.name) as follower,
        ):
            follow_on(follower)
            with Views(self.root / "views") as views:
                rows = views.sql(f'SELECT * FROM "{self.name}_owners"').rows
        return {row["stream"]: row["owner"] for row in rows}

    def erase(self, position: str) -> Erased:
        done = erase_records(self.log, self.book, [position], "request 4711")
        assert done.state == "done"
        return done


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    settings = {"log.cleaner.backoff.ms": "50"}
    with (
        BrokerThread(tmp_path / "log", durable=False, settings=settings) as broker,
        tr.connect(broker.address) as log,
        declare("accounts").open(log, index=tmp_path / "index") as bank,
    ):
        made = Shop(broker.address, log, tmp_path, bank)
        try:
            yield made
        finally:
            made.book.close()
            made.erased.close()


def test_nothing_of_an_erased_event_is_left_in_views_and_in_who_follows_them(shop: Shop) -> None:
    position = shop.write()
    with shop.views.running(**VIEWS) as ticks:
        shop.reach(ticks)
        assert shop.follow()["a7"] == NEEDLE
        assert {"log", "state", "cache", "views"} <= held(shop.root)
        erased = shop.erase(position)
        assert {"state", "cache", "views", "log"} <= held(shop.root)
        assert list(shop.erased.waiting()) == [erased.id]
        assert not shop.book.is_cleared(erased, views_place(shop.name))
        assert shop.clear(ticks)
        assert shop.follow()["a7"] is None
        assert held(shop.root) == set()
        shop.book.refresh()
        assert shop.book.is_cleared(erased, views_place(shop.name))
        assert shop.book.get(erased.id).state == "done"
        # And all goes on, also for who begins with the files that are left.
        shop.reach(ticks)
    with shop.views.running(**VIEWS) as ticks:
        assert ticks.waiting == []
        shop.reach(ticks)
        rows = {row["stream"]: row for row in shop.views.rows("owners")}
        assert rows["a7"] == {"stream": "a7", "owner": None, "n": 2}
        assert rows["a8"]["owner"] == "owner 8"
        assert len(rows) == 12
        totals = {row["stream"]: row["total"] for row in shop.views.rows("totals")}
        assert totals == {f"a{n}": shop.bank.state(f"a{n}").value.balance for n in range(12)}


@pytest.mark.parametrize("ticks_before", [0, 2])
def test_a_clearing_that_was_cut_short_begins_again(shop: Shop, ticks_before: int) -> None:
    position = shop.write()
    with shop.views.running(**VIEWS) as ticks:
        shop.reach(ticks)
        # A rebuild that has read the event already: what it has filled is given up.
        ticks.rebuild(f"{shop.name}_owners", hold=ticks_before == 0)
        ticks.step(0.0)
        shop.erase(position)
        assert not shop.clear(ticks, ticks_before)
    with shop.views.running(**VIEWS) as ticks:
        assert shop.clear(ticks)
        shop.follow()
        assert held(shop.root) == set()
        shop.reach(ticks)
        assert len(shop.views.rows("owners")) == 12


def test_views_that_read_something_else_are_left_alone(shop: Shop) -> None:
    position = shop.write()
    with shop.views.running(totals=VIEWS["totals"]) as ticks:
        shop.reach(ticks)
        before = ticks.main.last
        assert ticks.views_of({"somewhere"}) == []
        assert ticks.views_of({"accounts"}) == [f"{shop.name}_totals"]
        ticks.refill([])
        shop.erase(position)
        assert shop.clear(ticks)
        assert ticks.main.last.number > before.number
        shown = ticks.main.last.views[f"{shop.name}_totals"]
        assert shown.generation == 2
        assert ticks.main.last.others.get(shown.name, ()) == ()


def test_records_that_were_found_while_views_were_cleared_are_waited_for_again(shop: Shop) -> None:
    erased = shop.erase(shop.write())
    assert list(shop.erased.waiting()) == [erased.id]
    erased.counts = {"accounts": erased.records + 3}  # the refill may have read these
    shop.book.keep(erased)
    shop.erased.cleared([erased.id])
    assert list(shop.erased.waiting()) == [erased.id]
    shop.erased.cleared([erased.id])
    assert not shop.erased.waiting()


def test_a_disk_that_has_no_room_to_write_files_again_is_tried_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = shop.write()
    with shop.views.running(**VIEWS) as ticks:
        shop.reach(ticks)
        shop.follow()
        shop.erase(position)
        assert shop.clear(ticks)

    def fill_up(directory: Path, fresh: Path) -> None:
        fresh.mkdir()
        (fresh / "data.mdb").write_bytes(b"half")
        raise lmdb.DiskError("mdb_env_copy: No space left on device")

    views, clock = shop.root / "views", HandClock()
    with (
        contextlib.closing(KafkaRanges(shop.views.address)) as log,
        Follower(views, log, shop.name, clock=clock) as follower,
    ):
        with monkeypatch.context() as patched:
            patched.setattr(store, "_copy", fill_up)
            follow_on(follower)
        follow_on(follower)  # not at once
        assert follower.state.compacted != follower.state.purged
        assert not (views / store.COMPACTED).exists()
        clock.sleep(COMPACT_AGAIN_SECONDS)
        follow_on(follower)
        assert follower.state.compacted == follower.state.purged
    assert shop.follow()["a7"] is None
    assert held(shop.root) == set()


def test_files_half_written_again_are_read_from_the_log(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = shop.write()
    with shop.views.running(**VIEWS) as ticks:
        shop.reach(ticks)
        shop.follow()
        shop.erase(position)
        assert shop.clear(ticks)

    def dies(directory: Path) -> None:
        raise InterruptedError

    with (
        contextlib.closing(KafkaRanges(shop.views.address)) as log,
        Follower(shop.root / "views", log, shop.name) as follower,
        monkeypatch.context() as patched,
    ):
        patched.setattr(store, "file_mark", dies)  # the new file is there, and no mark beside it
        with pytest.raises(InterruptedError):
            follow_on(follower)
    assert shop.follow() == {f"a{n}": None if n == 7 else f"owner {n}" for n in range(12)}
    assert held(shop.root) == set()
