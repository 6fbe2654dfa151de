"""Topics, settings, directories, retention, clean stops."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from log_helpers import HandClock, batch, read_all
from tailrace.log.directories import random_id, short_id
from tailrace.log.errors import (
    DirectoryLockedError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidTopicNameError,
    MetadataDamagedError,
    StorageError,
    TopicExistsError,
    UnknownFormatError,
    UnknownTopicError,
)
from tailrace.log.settings import TOPIC_SETTINGS, LogSettings
from tailrace.log.store import Store

OpenStore = Callable[..., Store]


def test_topics_survive_a_restart_with_ids_and_settings(open_store: OpenStore) -> None:
    store = open_store()
    topic = store.create_topic("clicks", 3, {"retention.ms": "1000"})
    store.alter_config("clicks", {"segment.bytes": "2000000", "retention.ms": None})
    store.add_partitions("clicks", 5)
    store.create_topic("gone")
    store.delete_topic("gone")
    store.close()
    again = open_store()
    assert list(again.topics) == ["clicks"]
    found = again.topics["clicks"]
    assert found.id == topic.id
    assert again.topics_by_id[topic.id] is found
    assert len(found.partitions) == 5
    assert found.overrides == {"segment.bytes": "2000000"}
    assert found.config.segment_bytes == 2_000_000


@pytest.mark.parametrize("name", ["archived", "swap"])
@pytest.mark.parametrize("data", [b"", b"garbage", b"[[1]]", b'[["a", "b"]]', b"7"])
def test_a_damaged_list_of_segments_stops_its_own_partition_alone(
    open_store: OpenStore, tmp_path: Path, name: str, data: bytes
) -> None:
    store = open_store()
    for topic in ("other", "t"):
        store.create_topic(topic).partitions[0].append(batch(b"x"))
    store.abandon()
    (tmp_path / "data" / "t-0" / name).write_bytes(data)
    again = open_store()
    assert read_all(again.topics["other"].partitions[0])
    failure = again.topics["t"].partitions[0].failure
    assert failure is not None
    assert "damaged" in failure.render()
    assert f"t-0/{name}" in failure.render()


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "ü"])
def test_bad_names_are_refused(open_store: OpenStore, name: str) -> None:
    with pytest.raises(InvalidTopicNameError) as caught:
        open_store().create_topic(name)
    assert caught.value.kafka_code == 17


def test_wrong_calls_get_kafkas_numbers(open_store: OpenStore) -> None:
    store = open_store()
    store.create_topic("a.b", 2)
    with pytest.raises(TopicExistsError):
        store.create_topic("a.b")
    with pytest.raises(TopicExistsError):
        store.create_topic("a_b")
    with pytest.raises(InvalidPartitionsError):
        store.create_topic("c", 0)
    with pytest.raises(InvalidPartitionsError):
        store.add_partitions("a.b", 2)
    with pytest.raises(InvalidConfigError, match=r"preallocate"):
        store.create_topic("c", 1, {"preallocate": "true"})
    with pytest.raises(InvalidConfigError):
        store.create_topic("c", 1, {"retention.ms": "soon"})
    with pytest.raises(InvalidConfigError) as caught:
        store.create_topic("c", 1, {"min.insync.replicas": "2"})
    assert "cluster" in caught.value.hint
    for call in (store.delete_topic, lambda name: store.partition(name, 0)):
        with pytest.raises(UnknownTopicError):
            call("nowhere")
    with pytest.raises(UnknownTopicError):
        store.partition("a.b", 2)
    assert "c" not in store.topics


def test_validate_only_changes_nothing(open_store: OpenStore) -> None:
    store = open_store()
    store.create_topic("x", 2, validate_only=True)
    assert store.topics == {}


def test_no_id_begins_like_an_option() -> None:
    assert not any(short_id(random_id()).startswith("-") for _ in range(2000))


def test_every_topic_setting_has_a_default_that_parses() -> None:
    config = LogSettings().topic({})
    assert set(config.values) == set(TOPIC_SETTINGS)
    for name, setting in TOPIC_SETTINGS.items():
        assert setting.documentation
        setting.parse(config.values[name])


@pytest.mark.parametrize(
    ("broker", "name", "value"),
    [
        ({"log.retention.hours": "2"}, "retention.ms", "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention.ms", "180000"),
        ({"log.retention.minutes": "3", "log.retention.ms": "5"}, "retention.ms", "5"),
        ({"log.roll.hours": "1"}, "segment.ms", "3600000"),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup.policy", "compact,delete"),
    ],
)
def test_broker_settings_give_topics_their_defaults(
    broker: dict[str, str], name: str, value: str
) -> None:
    assert LogSettings.from_mapping(broker).topic({}).values[name] == value


def test_changed_broker_settings_reach_topics_without_override(open_store: OpenStore) -> None:
    store = open_store()
    follows = store.create_topic("follows")
    keeps = store.create_topic("keeps", 1, {"max.message.bytes": "77777"})
    store.change_settings(LogSettings.from_mapping({"message.max.bytes": "5000"}))
    assert follows.partitions[0].config.max_message_bytes == 5000
    assert keeps.partitions[0].config.max_message_bytes == 77777


def test_a_directory_is_open_once(open_store: OpenStore) -> None:
    open_store()
    with pytest.raises(DirectoryLockedError) as caught:
        open_store()
    assert str(os.getpid()) in caught.value.detail


def test_an_unknown_format_is_refused_by_name(open_store: OpenStore, tmp_path: Path) -> None:
    open_store().close()
    properties = tmp_path / "data" / "meta.properties"
    properties.write_text(properties.read_text().replace("format=1", "format=9"))
    with pytest.raises(UnknownFormatError, match="format 9"):
        open_store()


def test_a_torn_journal_line_is_dropped_and_damage_before_the_end_told(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    store.create_topic("first")
    store.create_topic("second")
    store.close()
    journal = tmp_path / "data" / "metadata" / "journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-10])
    torn = open_store()
    assert list(torn.topics) == ["first"]
    torn.close()
    damaged = bytearray(whole)
    damaged[20] ^= 1
    journal.write_bytes(damaged)
    with pytest.raises(MetadataDamagedError) as caught:
        open_store()
    assert "journal" in caught.value.detail


def test_a_lost_journal_is_told_and_nothing_is_touched(
    open_store: OpenStore, tmp_path: Path
) -> None:
    import shutil

    store = open_store()
    store.create_topic("orders", 2)
    store.close()
    shutil.rmtree(tmp_path / "data" / "metadata")
    with pytest.raises(MetadataDamagedError, match="missing") as caught:
        open_store()
    assert "orders-0" in caught.value.detail


def test_a_long_journal_begins_anew_from_a_snapshot(
    open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.log.metadata._LINES_BEFORE_SNAPSHOT", 5)
    store = open_store()
    for number in range(12):
        store.create_topic(f"t{number}")
    store.close()
    assert (tmp_path / "data" / "metadata" / "journal").read_bytes().count(b"\n") < 5
    assert len(open_store().topics) == 12


def test_after_a_clean_stop_no_segment_is_read(
    open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, {"internal.segment.bytes": "300"}).partitions[0]
    for number in range(20):
        partition.append(
            batch(b"%d" % number, producer_id=1, producer_epoch=0, base_sequence=number)
        )
    store.close()

    def refuse(*_: object) -> bytes:
        raise AssertionError("a segment was read")

    monkeypatch.setattr(os, "pread", refuse)
    monkeypatch.setattr("tailrace.log.files.Files.pread", staticmethod(refuse))
    again = open_store()
    monkeypatch.undo()
    found = again.partition("t", 0)
    assert not again.unclean
    assert (found.end_offset, found.leader_epoch) == (20, 0)
    assert found.append(batch(b"17", producer_id=1, producer_epoch=0, base_sequence=17)).duplicate
    found.append(batch(b"20", producer_id=1, producer_epoch=0, base_sequence=20))
    assert len(read_all(found)) == 21


def test_an_unclean_start_bumps_the_leader_epoch(open_store: OpenStore) -> None:
    store = open_store()
    partition = store.create_topic("t").partitions[0]
    partition.append(batch(b"a", b"b"))
    store.abandon()
    again = open_store()
    found = again.partition("t", 0)
    assert again.unclean
    assert found.leader_epoch == 1
    assert found.epoch_end(0) == (0, 2)
    found.append(batch(b"c"))
    assert found.epoch_end(0) == (0, 2)
    assert found.epoch_end(1) == (1, 3)
    assert found.epoch_end(2) == (-1, -1)


def test_old_segments_go_by_time_but_never_the_active_one(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    partition = store.create_topic(
        "t", 1, {"retention.ms": "10000", "internal.segment.bytes": "200"}
    ).partitions[0]
    for number in range(5):
        partition.append(batch(b"x" * 90, at=clock.now + number * 1000))
    clock.now += 12_500
    store.tick()
    assert partition.log_start_offset == 3
    clock.now += 10**8
    store.tick()
    assert [record.offset for record in read_all(partition)] == [4]


def test_old_segments_go_by_size(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store(log_retention_check_interval_ms="1")
    partition = store.create_topic(
        "t", 1, {"retention.bytes": "1000", "internal.segment.bytes": "300"}
    ).partitions[0]
    for _ in range(20):
        partition.append(batch(b"x" * 200))
    clock.now += 60_000
    store.tick()
    assert 1000 <= partition.size_bytes < 1000 + 600
    assert partition.log_start_offset > 0


def test_a_small_segment_is_closed_by_age(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    partition = store.create_topic("t", 1, {"segment.ms": "5000"}).partitions[0]
    partition.append(batch(b"x"))
    clock.now += 60_000
    store.tick()
    assert len(partition.segments) == 2
    partition.append(batch(b"y", at=clock.now))
    partition.append(batch(b"z", at=clock.now + 6000))
    assert len(partition.segments) == 3


def test_flush_by_count_and_by_time(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store()
    counted = store.create_topic("counted", 1, {"flush.messages": "3"}).partitions[0]
    timed = store.create_topic("timed", 1, {"flush.ms": "500"}).partitions[0]
    for partition in (counted, timed):
        partition.append(batch(b"a", b"b"))
    clock.now += 200
    store.tick()
    counted.append(batch(b"c"))
    clock.now += 400
    store.tick()
    assert (counted.synced_offset, timed.synced_offset) == (3, 2)


def test_partitions_spread_over_directories_and_a_lost_one_stops_only_its_own(
    tmp_path: Path,
) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    with Store.open(places) as store:
        topic = store.create_topic("t", 4)
        assert [p.directory.parent.name for p in topic.partitions] == ["one", "two", "one", "two"]
        for partition in topic.partitions:
            partition.append(batch(b"x"))
    # The disk with the first directory is gone; the other one knows all topics.
    os.rename(places[0], tmp_path / "elsewhere")
    places[0].write_text("not a directory")
    with Store.open(places) as store:
        found = store.topics["t"].partitions
        assert len(read_all(found[1])) == 1
        with pytest.raises(StorageError) as caught:
            found[0].append(batch(b"y"))
        assert caught.value.kafka_code == 56
        found[3].append(batch(b"y"))
    places[0].unlink()
    os.rename(tmp_path / "elsewhere", places[0])
    with Store.open(places) as store:
        assert len(read_all(store.partition("t", 0))) == 1
        assert len(read_all(store.partition("t", 3))) == 2


def test_a_deleted_topics_files_are_gone_and_its_name_free(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    old = store.create_topic("t").partitions[0]
    old.append(batch(b"old"))
    store.delete_topic("t")
    with pytest.raises(StorageError):
        old.append(batch(b"late"))
    assert not [path for path in (tmp_path / "data").iterdir() if path.name.startswith("t-")]
    new = store.create_topic("t")
    assert read_all(new.partitions[0]) == []


def test_a_clock_set_back_does_not_stop_the_work(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store(log_retention_check_interval_ms="1000")
    clock.now += 10**10
    store.tick()
    clock.jump(-2 * 10**10)
    partition = store.create_topic("t", 1, {"segment.ms": "5000"}).partitions[0]
    partition.append(batch(b"x", at=clock.wall_ms()))
    clock.now += 60_000
    store.tick()
    store.tick()
    assert len(partition.segments) == 2
