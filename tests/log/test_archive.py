"""Archived segments: moved out, read on, fetched when needed, deleted in the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from log_helpers import HandClock, batch, read_all
from tailrace.log.archive import ArchivedSegment
from tailrace.log.errors import InvalidConfigError, NotFetchedError
from tailrace.log.partition import Partition
from tailrace.log.settings import LogSettings
from tailrace.log.store import Store

KINDS = ["directory", pytest.param("object store", marks=pytest.mark.thorough)]
CONFIG = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "600",
    "index.interval.bytes": "100",
    "local.retention.ms": "10000",
}


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An archive that is read in place, and one that fsspec must fetch from."""
    place = tmp_path / "archive"
    return str(place) if request.param == "directory" else f"local://{place}"


@pytest.fixture
def open_archived(url: str, tmp_path: Path, clock: HandClock) -> Iterator[Callable[[], Store]]:
    opened: list[Store] = []

    def open_it() -> Store:
        settings = LogSettings.from_mapping(
            {"tailrace.archive.url": url, "log.retention.check.interval.ms": "1000"}
        )
        opened.append(Store.open([tmp_path / "data"], settings, clock))
        return opened[-1]

    yield open_it
    for store in opened:
        if not store.closed:
            store.abandon()


def filled(store: Store, clock: HandClock, **config: str) -> Partition:
    texts = CONFIG | {name.replace("_", "."): value for name, value in config.items()}
    partition = store.create_topic("t", 1, texts).partitions[0]
    for number in range(24):
        partition.append(batch(b"%d" % number * 20, at=clock.now))
    store.checkpoint()
    return partition


def archived(partition: Partition) -> int:
    return sum(isinstance(segment, ArchivedSegment) for segment in partition.segments)


def work_until(store: Store, clock: HandClock, done: Callable[[], bool]) -> None:
    """Tick until something is so."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "the archive did nothing"
        store.tick()
        clock.now += 100
        time.sleep(0.01)


def read_waiting(store: Store, partition: Partition, clock: HandClock) -> list[bytes | None]:
    """Read everything, waiting for what is being fetched, as a consumer does."""
    values: list[bytes | None] = []
    offset = partition.log_start_offset
    deadline = time.monotonic() + 60
    while offset < partition.high_watermark:
        assert time.monotonic() < deadline, "a segment never came back"
        found = read_all_from(partition, offset)
        if not found:
            store.tick()
            clock.now += 100
            time.sleep(0.005)
            continue
        values += [record.value for record in found]
        offset = found[-1].offset + 1
    return values


def read_all_from(partition: Partition, offset: int) -> list:  # type: ignore[type-arg]
    from tailrace.records.batch import decode_records, iterate_batches

    with partition.read(offset, 10**6) as piece:
        data = piece.read()
    return [
        record
        for position, _ in iterate_batches(data)
        for record in decode_records(data, position)
        if record.offset >= offset
    ]


def test_old_segments_move_out_and_are_still_read(
    open_archived: Callable[[], Store], clock: HandClock
) -> None:
    store = open_archived()
    partition = filled(store, clock)
    sealed = len(partition.segments) - 1
    clock.now += 20_000
    work_until(store, clock, lambda: archived(partition) == sealed)
    assert len(list(partition.directory.glob("*.log"))) == 1
    assert partition.log_start_offset == 0
    expected = [b"%d" % number * 20 for number in range(24)]
    assert read_waiting(store, partition, clock) == expected
    for ending in (store.close, None):
        if ending is not None:
            ending()
        else:
            store.abandon()
        store = open_archived()
        partition = store.partition("t", 0)
        assert archived(partition) == sealed
        assert read_waiting(store, partition, clock) == expected


def test_nothing_moves_before_its_time_or_unsynced(
    open_archived: Callable[[], Store], clock: HandClock
) -> None:
    store = open_archived()
    partition = filled(store, clock)
    for _ in range(20):
        store.tick()
        clock.now += 100
    assert archived(partition) == 0


def test_local_size_limit_moves_the_oldest(
    open_archived: Callable[[], Store], clock: HandClock
) -> None:
    store = open_archived()
    partition = filled(store, clock, local_retention_ms="-1", local_retention_bytes="1000")
    work_until(store, clock, lambda: archived(partition) > 0)
    local = [segment for segment in partition.segments if segment.here]
    work_until(store, clock, lambda: store.archive is not None and store.archive._child is None)
    local = [segment for segment in partition.segments if segment.here]
    assert 1000 <= sum(segment.size for segment in local) < 1000 + 1200


def test_retention_deletes_from_the_archive_too(
    open_archived: Callable[[], Store], clock: HandClock, tmp_path: Path
) -> None:
    store = open_archived()
    partition = filled(store, clock, retention_ms="100000")
    clock.now += 20_000
    work_until(store, clock, lambda: archived(partition) == len(partition.segments) - 1)
    assert list((tmp_path / "archive").rglob("*.log"))
    clock.now += 200_000
    work_until(store, clock, lambda: not list((tmp_path / "archive").rglob("*.log")))
    assert partition.log_start_offset == partition.active.base_offset
    assert not list(partition.directory.glob("*.index"))[1:]


def test_a_deleted_topic_leaves_the_archive(
    open_archived: Callable[[], Store], clock: HandClock, tmp_path: Path
) -> None:
    store = open_archived()
    partition = filled(store, clock)
    clock.now += 20_000
    work_until(store, clock, lambda: archived(partition) > 0)
    work_until(store, clock, lambda: store.archive is not None and store.archive._child is None)
    store.delete_topic("t")
    work_until(store, clock, lambda: not list((tmp_path / "archive").rglob("*.log")))


def test_times_are_found_in_the_archive(
    open_archived: Callable[[], Store], clock: HandClock
) -> None:
    store = open_archived()
    partition = filled(store, clock)
    clock.now += 20_000
    work_until(store, clock, lambda: archived(partition) == len(partition.segments) - 1)
    deadline = time.monotonic() + 30
    while True:
        try:
            found = partition.offset_for_time(0)
            break
        except NotFetchedError as error:
            assert error.kafka_code == 56
            assert time.monotonic() < deadline
            store.tick()
            clock.now += 100
            time.sleep(0.01)
    assert found is not None
    assert found.offset == 0


def test_an_archive_that_is_gone_keeps_the_local_copy(
    open_archived: Callable[[], Store], clock: HandClock, tmp_path: Path
) -> None:
    (tmp_path / "archive").write_text("not a directory")
    store = open_archived()
    partition = filled(store, clock)
    clock.now += 20_000
    work_until(store, clock, lambda: bool(store.archive and store.archive.last_error))
    assert archived(partition) == 0
    assert len(read_all(partition)) == 24
    (tmp_path / "archive").unlink()
    clock.now += 20_000
    work_until(store, clock, lambda: archived(partition) > 0)


def test_an_archive_needs_an_address_and_no_compaction(tmp_path: Path) -> None:
    with Store.open([tmp_path / "one"]) as store:
        with pytest.raises(InvalidConfigError, match="needs an archive"):
            store.create_topic("t", 1, {"remote.storage.enable": "true"})
        store.create_topic("t")
        with pytest.raises(InvalidConfigError):
            store.alter_config("t", {"remote.storage.enable": "true"})
    settings = LogSettings.from_mapping({"tailrace.archive.url": str(tmp_path / "archive")})
    with Store.open([tmp_path / "two"], settings) as store, pytest.raises(InvalidConfigError):
        store.create_topic("t", 1, {"remote.storage.enable": "true", "cleanup.policy": "compact"})
