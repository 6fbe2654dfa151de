from __future__ import annotations

import errno
import os
import random
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lmdb
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.serving.errors import FollowerRunningError, ViewsDamagedError
from tailrace.serving.follower import Follower, FollowerSettings
from tailrace.serving.reader import Views
from tailrace.testing.changelogs import (
    ORDERS,
    MemoryLog,
    TickWriter,
    random_project,
    write_random_tick,
)
from tailrace.unsynced import WriteBack, boot_id


def contents(directory: Path, view: str) -> dict[bytes, dict]:
    with Views(directory) as views, views.snapshot() as snapshot:
        return {key: orjson.loads(row) for key, row in snapshot.scan(view)}


def follow(directory: Path, writer: TickWriter, **options) -> int | None:
    with Follower(
        directory, writer.log, writer.project, settings=FollowerSettings(**options)
    ) as follower:
        follower.step(0)
        return follower.tick


def test_views_equal_what_the_ticks_wrote(tmp_path):
    writer = random_project(1, 20)
    assert follow(tmp_path, writer) == 20
    for view in ("totals", "orders"):
        assert contents(tmp_path, view) == writer.contents[view]


def test_every_tick_is_served_as_it_was_when_it_was_committed(tmp_path):
    writer = random_project(2, 1)
    chance = random.Random(5)
    with Follower(tmp_path, writer.log, "shop") as follower:
        for number in range(1, 15):
            follower.step(0)
            assert follower.tick == number
            for view in ("totals", "orders"):
                assert contents(tmp_path, view) == writer.history[number][view]
            write_random_tick(writer, chance)


def test_records_past_the_tick_are_not_applied(tmp_path):
    writer = random_project(3, 4)
    expected = dict(writer.contents["totals"])
    partition = writer.log.topics["totals"][0]
    partition.append(b'{"country":"not yet"}', b'{"row":{"country":"not yet"}}')
    follow(tmp_path, writer)
    assert contents(tmp_path, "totals") == expected


def test_many_missed_ticks_are_applied_as_one(tmp_path):
    writer = random_project(4, 3)
    follow(tmp_path, writer)
    chance = random.Random(1)
    for _ in range(100):
        write_random_tick(writer, chance)
    with Follower(tmp_path, writer.log, "shop") as follower:
        assert follower.step(0) == 1
        assert follower.tick == 103
    assert contents(tmp_path, "orders") == writer.contents["orders"]


def test_a_second_follower_is_refused(tmp_path):
    writer = random_project(1, 1)
    with Follower(tmp_path, writer.log, "shop"), pytest.raises(FollowerRunningError) as caught:
        Follower(tmp_path, writer.log, "shop")
    assert "holds" in caught.value.detail


def test_new_and_removed_views_appear_and_vanish_with_their_tick(tmp_path):
    writer = random_project(1, 3)
    follow(tmp_path, writer)
    writer.declare("extra", ["id"], [("id", "BIGINT")])
    writer.tick({"extra": [({"id": 1}, {"id": 1})]})
    follow(tmp_path, writer)
    assert contents(tmp_path, "extra") == {b'{"id":1}': {"id": 1}}
    del writer.views["extra"]
    writer.tick({})
    follow(tmp_path, writer)
    with Views(tmp_path) as views:
        assert views.names == ["orders", "totals"]


def test_another_generation_replaces_the_rows(tmp_path):
    writer = random_project(1, 3)
    follow(tmp_path, writer)
    writer.declare("orders", ["id"], ORDERS[2], generation=2)
    writer.tick({"orders": [({"id": 7}, {"id": 7, "country": "NL", "placed_at": None})]})
    follow(tmp_path, writer, build_records=1)
    assert list(contents(tmp_path, "orders")) == [b'{"id":7}']


def test_a_log_that_began_anew_makes_the_views_begin_anew(tmp_path):
    follow(tmp_path, random_project(1, 30))
    younger = random_project(2, 3)
    assert follow(tmp_path, younger) == 3
    assert contents(tmp_path, "totals") == younger.contents["totals"]


def test_tombstones_compacted_away_meanwhile_are_found_by_reading_again(tmp_path):
    writer = random_project(1, 6)
    writer.now_ms -= 10 * 24 * 3600 * 1000
    write_random_tick(writer, random.Random(9))
    follow(tmp_path, writer)
    gone = next(iter(writer.contents["orders"]))
    writer.tick({"orders": [(orjson.loads(gone), None)]})
    for partition in writer.log.topics["orders"]:
        partition.compact()
    follow(tmp_path, writer, delete_retention=timedelta(days=7))
    assert contents(tmp_path, "orders") == writer.contents["orders"]
    assert gone not in contents(tmp_path, "orders")


def test_rebuild_reads_everything_again(tmp_path):
    writer = random_project(1, 6)
    follow(tmp_path, writer)
    with Follower(tmp_path, writer.log, "shop") as follower:
        before = follower.state.views["orders"].store
        follower.rebuild(["orders"])
        assert follower.state.views["orders"].store != before
    assert contents(tmp_path, "orders") == writer.contents["orders"]


def test_keys_are_the_same_however_they_were_spelled(tmp_path):
    writer = TickWriter(MemoryLog(), partitions=1)
    writer.declare("v", ["name"], [("name", "STRING")])
    partition = writer.log.topics["v"][0]
    partition.append(b'{ "name": "caf\\u00e9" }', '{"row":{"name":"café"}}'.encode())
    writer.tick({})
    follow(tmp_path, writer)
    with Views(tmp_path) as views:
        assert views["v"].get("café") == {"name": "café"}


def test_keys_longer_than_lmdb_allows_are_kept_apart(tmp_path):
    writer = TickWriter(MemoryLog())
    writer.declare("v", ["name"], [("name", "STRING")])
    names = ["x" * 600 + str(i) for i in range(5)]
    writer.tick({"v": [({"name": name}, {"name": name}) for name in names]})
    writer.tick({"v": [({"name": names[2]}, None)]})
    follow(tmp_path, writer)
    with Views(tmp_path) as views:
        assert [views["v"].get(name) is not None for name in names] == [
            True,
            True,
            False,
            True,
            True,
        ]


def test_foreign_records_in_a_changelog_do_not_stop_the_follower(tmp_path):
    writer = random_project(1, 2)
    writer.log.topics["totals"][0].append(b"not json", b"neither")
    write_random_tick(writer, random.Random(3))
    follow(tmp_path, writer)
    assert contents(tmp_path, "totals") == writer.contents["totals"]


def test_files_of_another_boot_are_thrown_away(tmp_path):
    writer = random_project(1, 4)
    follow(tmp_path, writer)
    (tmp_path / "boot").write_text("another")
    (tmp_path / "data.mdb").write_bytes(b"torn" * 5000)
    assert follow(tmp_path, writer) == 4
    assert contents(tmp_path, "orders") == writer.contents["orders"]


def begins_again(directory: Path, writer: TickWriter) -> bool:
    """Whether a follower finds nothing to go on from; it follows then."""
    with Follower(directory, writer.log, writer.project) as follower:
        before = follower.tick
        follower.step(0)
        return before is None


def test_a_copy_of_the_files_is_thrown_away(tmp_path):
    writer = random_project(1, 4)
    follow(tmp_path / "one", writer)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert begins_again(tmp_path / "two", writer)
    assert contents(tmp_path / "two", "orders") == writer.contents["orders"]
    assert not begins_again(tmp_path / "one", writer)


def test_files_that_lack_what_was_committed_are_thrown_away(tmp_path):
    writer = random_project(1, 4)
    follow(tmp_path, writer)
    with (
        lmdb.open(str(tmp_path), max_dbs=20, map_size=1 << 30) as environment,
        environment.begin(write=True) as change,
    ):
        names = [name for name, _ in change.cursor() if name.startswith(b"rows/orders")]
        change.drop(environment.open_db(names[0], txn=change), delete=False)
    assert follow(tmp_path, writer) == 4
    assert contents(tmp_path, "orders") == writer.contents["orders"]


def test_files_whose_pages_cannot_be_written_are_read_again_from_the_log(tmp_path, monkeypatch):
    def refuse(number):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    back = WriteBack(0, refuse)
    monkeypatch.setattr("tailrace.serving.follower.WRITE_BACK", back)
    writer = random_project(1, 4)
    with Follower(tmp_path, writer.log, "shop") as follower:
        follower.step(0)
        assert back.wait()
        with pytest.raises(ViewsDamagedError, match="cannot be trusted"):
            follower.step(0)
    monkeypatch.setattr("tailrace.serving.follower.WRITE_BACK", WriteBack())
    assert follow(tmp_path, writer) == 4
    assert contents(tmp_path, "orders") == writer.contents["orders"]


def test_files_of_the_version_before_are_kept_within_their_boot(tmp_path):
    writer = random_project(1, 4)
    follow(tmp_path, writer)
    (tmp_path / "boot").write_text(boot_id())
    assert not begins_again(tmp_path, writer)
    assert (tmp_path / "boot").read_text() != boot_id()
    (tmp_path / "boot").write_text("")  # left by a crash
    assert begins_again(tmp_path, writer)


def test_a_view_being_built_beside_is_served_under_its_generation(tmp_path):
    writer = random_project(1, 2)
    writer.log.create("orders.2", 2)
    partition = writer.log.topics["orders.2"][1]
    partition.append(b'{"id":1}', b'{"row":{"id":1}}')
    row = writer.tick({})
    side = replace(
        row,
        key="shop/orders",
        tick=1,
        views={"orders": replace(row.views["orders"], topic="orders.2", generation=2)},
        ends={"orders.2": {0: 0, 1: 1}},
    )
    writer.log.topics["__tailrace_ticks"][0].append(b"shop/orders", side.encode())
    with Follower(tmp_path, writer.log, "shop") as follower:
        follower.step(0)
        writer.tick({})
        follower._tail = 0
        follower.step(0)
    assert contents(tmp_path, "orders@2") == {b'{"id":1}': {"id": 1}}
    assert contents(tmp_path, "orders") == writer.contents["orders"]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), steps=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_any_rhythm_of_restarts_gives_the_same_views(tmp_path_factory, seed, steps):
    directory = tmp_path_factory.mktemp("views")
    chance = random.Random(seed)
    writer = random_project(seed, 1, keys=8, changes=6)
    for count in steps:
        for _ in range(count):
            write_random_tick(writer, chance, keys=8, changes=6)
        follow(directory, writer, build_records=chance.randint(1, 50), catch_up_ticks=3)
        for view in ("totals", "orders"):
            assert contents(directory, view) == writer.contents[view]
