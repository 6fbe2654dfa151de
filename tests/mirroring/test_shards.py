"""Several processes that share the partitions of one mirror."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mirroring.test_mirror import Logs, _assert_equal, _Killed, _make, _rows, _write
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.fetcher import Fetcher
from tailrace.client.groups import Groups
from tailrace.client.log import connect
from tailrace.errors import UsageError
from tailrace.mirroring import fetch, relay
from tailrace.mirroring.compare import compare
from tailrace.mirroring.errors import (
    MirrorFailedOverError,
    MirrorFencedError,
    MirrorShardError,
)
from tailrace.mirroring.fail_over import fail_back, fail_over
from tailrace.mirroring.relay import Mirror
from tailrace.mirroring.rows import shard_of


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logs]:
    monkeypatch.setattr(fetch, "WAIT", 0.01)
    monkeypatch.setattr(relay, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(relay, "LOOK_SECONDS", 0.0)
    with (
        BrokerThread(tmp_path / "source", durable=False) as source,
        BrokerThread(tmp_path / "target", durable=False) as target,
    ):
        yield Logs(source.address, target.address)


def _shard(logs: Logs, number: int, shards: int, **settings: object) -> Mirror:
    return Mirror("m", logs.source, logs.target, topics="orders|carts", shard=(number, shards), **settings)  # type: ignore[arg-type]  # fmt: skip


def _catch_up(logs: Logs, shards: int, **settings: object) -> None:
    with ExitStack() as kept:
        running = [kept.enter_context(_shard(logs, n, shards, **settings)) for n in range(shards)]
        for one in running:
            one.run_until_caught_up()


def test_every_partition_is_mirrored_by_one_shard(logs: Logs) -> None:
    for topic in ("orders", "carts"):
        _make(logs, topic)
        _write(logs.source, topic, 60)
    with _shard(logs, 0, 2) as first, _shard(logs, 1, 2) as second:
        first.run_until_caught_up()
        assert second.records == 0
        second.run_until_caught_up()
        for number, one in enumerate((first, second)):
            assert one.records
            assert {shard_of(place, 2) for place in one.rows.positions} == {number}
    for topic in ("orders", "carts"):
        _assert_equal(logs, topic, topic)
    assert len(_rows(logs).positions) == 4


def test_new_partitions_come_to_their_shards(logs: Logs) -> None:
    _make(logs)
    with _shard(logs, 0, 2) as first, _shard(logs, 1, 2) as second:
        first.run_until_caught_up()
        with Admin(logs.source) as admin:
            admin.add_partitions("orders", 4)
        with connect(logs.source) as log, log.producer() as producer:
            for partition in range(4):
                producer.send("orders", value=b"%d" % partition, partition=partition)
        with pytest.raises(MirrorShardError, match="waits for the first") as waiting:
            second.run_until_caught_up()  # what the first has not made yet is left for later
        assert "yet: 1, from orders/3" in waiting.value.detail
        first.run_until_caught_up()
        second.run_until_caught_up()
    assert _rows(logs).records == 4


@pytest.mark.parametrize("names", [{}, {"names": "prefix", "source_name": "ams"}])
def test_settings_are_followed_whose_ever_the_partitions_are(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, names: dict[str, str]
) -> None:
    monkeypatch.setattr(relay, "SETTINGS_SECONDS", 0.0)
    topics = ("orders", "users")
    assert [shard_of((topic, 0), 2) for topic in topics] == [0, 1]
    with Admin(logs.source) as here, Admin(logs.target) as there:
        for topic in topics:
            here.create_topic(topic, 1)
        with Mirror("m", logs.source, logs.target, topics="orders|users", shard=(0, 2), **names) as first:  # type: ignore[arg-type]  # fmt: skip
            first.run_until_caught_up()
            assert first.rows.positions.keys() == {("orders", 0)}
            for topic in topics:
                here.alter_topic_config(topic, {"retention.ms": "7200000"})
            first.run_until_caught_up()
        for topic in topics:
            target = f"ams.{topic}" if names else topic
            assert there.topic_config(target)["retention.ms"].value == "7200000"


def test_a_shard_waits_for_the_first_which_says_how_many_there_are(logs: Logs) -> None:
    _make(logs)
    with pytest.raises(MirrorShardError, match="waits for the first"):
        _shard(logs, 1, 2)
    with _shard(logs, 0, 2):
        _shard(logs, 1, 2).close()
    with pytest.raises(MirrorShardError) as waiting:
        _shard(logs, 2, 3)
    assert "has 2 shards" in waiting.value.detail
    for wrong in ((2, 2), (0, 65), (-1, 2)):
        with pytest.raises(UsageError, match="no shard"):
            _shard(logs, *wrong)


def test_another_number_of_shards_fences_those_before_and_keeps_every_run(logs: Logs) -> None:
    _make(logs)
    seed = 0
    for before, after in ((1, 3), (3, 2), (2, 1)):
        _write(logs.source, "orders", 40, seed=seed)
        with ExitStack() as kept:
            old = [kept.enter_context(_shard(logs, n, before)) for n in range(before)]
            for one in old:
                one.run_until_caught_up()
            _write(logs.source, "orders", 40, seed=seed + 1)
            _catch_up(logs, after)
            for one in old:
                if one.rows.positions:  # else it has nothing to write
                    one._unsaved.update(one.rows.positions)
                    with pytest.raises(MirrorFencedError):
                        one.finish()
        _catch_up(logs, after)
        _assert_equal(logs)
        seed += 3


def test_a_change_of_the_number_that_is_killed_at_any_step_loses_nothing(logs: Logs) -> None:
    _make(logs)
    _catch_up(logs, 1)
    shards, at = 1, 1
    while True:
        _write(logs.source, "orders", 16, seed=at)
        other = 3 - shards
        left = [at]

        def step(name: str, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise _Killed(name)

        try:
            first = _shard(logs, 0, other, step=step)
        except _Killed:
            at += 1
            state = _rows(logs).state
            assert state is not None
            shards = state.shards
            _catch_up(logs, shards)
            continue
        first.close()
        break
    assert at > 3
    _catch_up(logs, 2)
    _assert_equal(logs)


def test_a_shard_of_the_number_before_neither_begins_nor_goes_on_behind_its_fence(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)

    def begin(*given: object) -> None:
        with pytest.raises(MirrorShardError, match="waits for the first"):
            _shard(logs, 1, 3)

    with _shard(logs, 0, 2) as first, _shard(logs, 1, 2) as old:
        first.run_until_caught_up()
        monkeypatch.setattr(relay, "fence_shards", lambda *given: None)
        _shard(logs, 0, 3).close()
        old._broken = True  # it recovers from an error
        with pytest.raises(MirrorFencedError):
            old.cycle()
        monkeypatch.setattr(relay, "fence_shards", begin)
        _shard(logs, 0, 2).close()
    _catch_up(logs, 2)
    _assert_equal(logs)


def test_a_fail_over_fences_every_shard_and_they_go_on_behind_the_fail_back(logs: Logs) -> None:
    _make(logs)
    _write(logs.source, "orders", 40)
    with Admin(logs.source) as admin:
        Groups(admin).commit("billing", {("orders", 0): 3, ("orders", 1): 5})
    with _shard(logs, 0, 2, groups="billing") as first, _shard(logs, 1, 2, groups="billing") as second:  # fmt: skip
        first.run_until_caught_up()
        second.run_until_caught_up()
        found = fail_over("m", logs.target, logs.source)
        assert found.groups["billing"].keys() == {"orders/0", "orders/1"}
        _write(logs.source, "orders", 40, seed=1)
        for one in (first, second):
            with pytest.raises(MirrorFencedError):
                one.run(lambda: False)
    for number in range(2):
        with pytest.raises(MirrorFailedOverError):
            _shard(logs, number, 2)
    _write(logs.target, "orders", 40, seed=2)
    fail_back("m", logs.source, logs.target)
    _write(logs.source, "orders", 40, seed=3)
    _catch_up(logs, 2, groups="billing")
    with Fetcher(logs.source) as here, Fetcher(logs.target) as there:
        found_rows = compare(_rows(logs), here, there)
    assert found_rows.differences == ()
    assert found_rows.compared > 80
