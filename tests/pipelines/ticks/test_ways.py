"""Large ticks run the way that is sooner done."""

from __future__ import annotations

from tailrace.pipelines.ticks.ways import LOOK_AGAIN, Ways


def test_two_cores_never_make_up_for_what_levels_cost() -> None:
    ways = Ways(cores=2)
    for _ in range(5):
        assert not ways.over_levels({"v"}, shards=4)
        ways.learn({"v"}, False, 200_000, 1.0)


def test_many_cores_are_tried_and_kept_where_they_are_sooner_done() -> None:
    ways = Ways(cores=8)
    assert not ways.over_levels({"v"}, shards=8)
    ways.learn({"v"}, False, 200_000, 1.0)
    for _ in range(5):
        assert ways.over_levels({"v"}, shards=8)
        ways.learn({"v"}, True, 200_000, 0.3)
    assert not ways.over_levels({"v"}, shards=1)  # unless all rows are in one shard


def test_levels_that_are_hardly_sooner_done_are_left_until_it_is_time_to_look_again() -> None:
    ways = Ways(cores=8)
    ways.learn({"v"}, False, 200_000, 1.0)
    ways.learn({"v"}, True, 100_000, 0.4)  # 0.8 of it
    taken = []
    for _ in range(2 * LOOK_AGAIN):
        taken.append(ways.over_levels({"v"}, shards=8))
        ways.learn({"v"}, taken[-1], 100_000, 0.4 if taken[-1] else 0.5)
    assert taken.count(True) == 1
    assert not ways.over_levels({"v"}, shards=8)


def test_what_other_views_take_says_nothing() -> None:
    ways = Ways(cores=8)
    ways.learn({"v"}, False, 200_000, 1.0)
    assert ways.over_levels({"v"}, shards=8)
    assert not ways.over_levels({"v", "w"}, shards=8)
