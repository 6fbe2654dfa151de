"""How many shards a project gets, and keeps."""

from __future__ import annotations

import os

import pytest

from tailrace.config import SparkSettings
from tailrace.pipelines.spark.session import cores_of, with_resident_tasks
from tailrace.pipelines.ticks.sharding import number_of_shards
from tailrace.pipelines.ticks.tick_row import Tick


@pytest.mark.parametrize(
    ("master", "cpus", "shards"),
    [
        ("local[*]", 2, 1),
        ("local[*]", 8, 4),
        ("local[2]", 8, 1),
        ("local", 8, 1),
        ("local[8]", 2, 1),  # the machine has no more
        ("local[4, 3]", 8, 4),
        ("spark://host:7077", 1, 4),
    ],
)
def test_few_cores_begin_with_one_shard(
    master: str, cpus: int, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    settings = SparkSettings(master, None, {}, None, None, None)
    assert number_of_shards(settings, None) == shards


@pytest.mark.parametrize("held", [1, 2, 4, 16])
def test_what_began_with_some_shards_keeps_them(held: int) -> None:
    settings = SparkSettings("local[*]", None, {}, None, None, None)
    assert number_of_shards(settings, Tick("shop", shards=held)) == held


def test_what_is_set_counts() -> None:
    settings = SparkSettings("local[2]", 7, {}, None, None, None)
    assert number_of_shards(settings, None) == 7
    assert number_of_shards(settings, Tick("shop", shards=4)) == 7  # refused by the driver


@pytest.mark.parametrize(
    ("master", "slots", "cores"),
    [
        ("local", "local[2]", 1),
        ("local[3]", "local[6]", 3),
        ("local[3,2]", "local[6,2]", 3),
        ("spark://host:7077", "spark://host:7077", None),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]", None),
    ],
)
def test_sessions_on_this_machine_have_slots_for_tasks_that_stay(
    master: str, slots: str, cores: int | None
) -> None:
    assert with_resident_tasks(master) == (slots, cores or 0)
    assert cores_of(master) == cores
