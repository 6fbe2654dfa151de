from __future__ import annotations

import random
import shutil

import orjson
import pytest

from tailrace.serving.follower import Follower, FollowerSettings
from tailrace.serving.reader import Views
from tailrace.serving.store import STAMP
from tailrace.testing.changelogs import random_project, write_random_tick
from tailrace.testing.crash import kill_at_line
from tailrace.unsynced import file_mark

SETTINGS = FollowerSettings(build_records=7, history_bytes=2000, indexes={"orders": ("country",)})


def follow(directory, writer):
    with Follower(directory, writer.log, "shop", settings=SETTINGS) as follower:
        while follower.step(0):
            pass


def check(directory, writer):
    """The views are at some whole tick, with their index and history right."""
    with Views(directory) as views, views.snapshot() as snapshot:
        expected = writer.history[snapshot.tick]
        for view in ("totals", "orders"):
            held = {key: orjson.loads(row) for key, row in snapshot.scan(view)}
            assert held == expected[view]
        for country in {row["country"] for row in expected["orders"].values()}:
            found = dict(snapshot.lookup("orders", "country", country))
            assert set(found) == {
                key for key, row in expected["orders"].items() if row["country"] == country
            }


def kill_everywhere(tmp_path, lines):
    writer = random_project(11, 3, keys=20, changes=12)
    base = tmp_path / "base"
    follow(base, writer)
    chance = random.Random(4)
    for _ in range(2):
        write_random_tick(writer, chance, keys=20, changes=12)
    kills = 0
    for start in ("empty", "behind"):
        for line in lines:
            directory = tmp_path / f"{start}-{line}"
            if start == "behind":
                shutil.copytree(base, directory)
                # A copy is not believed, and this one stands for the file itself.
                (directory / STAMP).write_text(file_mark(directory / "data.mdb"))
            killed = kill_at_line(lambda: follow(directory, writer), ["tailrace/serving"], line)  # noqa: B023
            kills += killed
            if (directory / "data.mdb").exists() and start == "behind":
                check(directory, writer)
            follow(directory, writer)
            check(directory, writer)
            with Views(directory) as views, views.snapshot() as snapshot:
                assert snapshot.tick == 5
            shutil.rmtree(directory)
    return kills


def test_a_kill_at_any_line_leaves_a_whole_tick(tmp_path):
    offset = random.randrange(37)
    kills = kill_everywhere(tmp_path, range(1 + offset, 2200, 61))
    assert kills > 25


@pytest.mark.crash
def test_a_kill_at_every_line_leaves_a_whole_tick(tmp_path):
    assert kill_everywhere(tmp_path, range(1, 2200, 3)) > 500
