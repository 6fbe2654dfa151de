"""Erased records: gone from every file, their slots and all other records as they were."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_helpers import HandClock, read_all
from tailrace.log.archive import ArchivedSegment
from tailrace.log.errors import InvalidConfigError
from tailrace.log.partition import Partition
from tailrace.log.settings import LogSettings, check_topic_config
from tailrace.log.store import Store
from tailrace.records.batch import Record, encode_columns, iterate_batches
from tailrace.records.erased_offsets import ERASE, held, ranges_of, read_request, write_request
from tailrace.records.event_headers import ERASED

OpenStore = Callable[..., Store]
NOW = 1_700_000_000_000
SMALL = {"internal.segment.bytes": "600", "index.interval.bytes": "100"}
GONE = ((ERASED, b""),)


def put(partition: Partition, *values: str, codec: str = "none", **more: object) -> None:
    partition.append(
        encode_columns(
            [f"k{number}".encode() for number, _ in enumerate(values)],
            [value.encode() for value in values],
            [NOW + number for number, _ in enumerate(values)],
            compression=codec,
            **more,  # type: ignore[arg-type]
        )
    )


def erase(store: Store, topic: str, **wanted: list[int]) -> None:
    text = write_request({int(name[1:]): ranges_of(each) for name, each in wanted.items()})
    store.alter_config(topic, {ERASE: text})


def finish(store: Store, clock: HandClock) -> None:
    deadline = time.monotonic() + 60
    while any(ERASE in topic.overrides for topic in store.topics.values()):
        assert time.monotonic() < deadline, "nothing was erased"
        store.tick()
        clock.now += 100
        time.sleep(0.01)


def files_with(place: Path, needle: bytes) -> list[str]:
    return [
        path.name for path in place.rglob("*") if path.is_file() and needle in path.read_bytes()
    ]


def test_requests_are_read_as_they_were_written() -> None:
    wanted = {0: ranges_of([5, 6, 7, 12]), 3: ranges_of([991])}
    assert write_request(wanted) == "0:5-7,12;3:991"
    assert read_request("0:5-7,12;3:991") == wanted
    assert read_request("") == {}
    for wrong in ("x", "0", "0:7-5", "0:-3", "0:1,,2"):
        with pytest.raises(ValueError):
            read_request(wrong)
        with pytest.raises(InvalidConfigError, match=ERASE):
            check_topic_config({ERASE: wrong})


@given(st.sets(st.integers(0, 60)), st.integers(0, 60), st.integers(0, 10))
def test_ranges_hold_what_they_were_made_of(offsets: set[int], first: int, more: int) -> None:
    last = first + more
    assert held(ranges_of(offsets), first, last) == any(first <= each <= last for each in offsets)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_record_goes_and_its_slot_stays(
    open_store: OpenStore, clock: HandClock, tmp_path: Path, codec: str
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, SMALL).partitions[0]
    for number in range(20):
        put(partition, f"before {number}", f"SECRET {number} {'x' * 40}", "behind", codec=codec)
    before = read_all(partition)
    secrets = [each.offset for each in before if (each.value or b"").startswith(b"SECRET")]
    erase(store, "t", p0=secrets)
    finish(store, clock)
    expected = [
        each._replace(value=None, headers=GONE) if each.offset in secrets else each
        for each in before
    ]
    assert read_all(partition) == expected
    assert files_with(tmp_path, b"SECRET") == []
    put(partition, "more")
    store.close()
    again = open_store().partition("t", 0)
    assert read_all(again)[:-1] == expected


def test_an_event_stays_an_event_with_its_version_and_the_id_of_its_command(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1).partitions[0]
    meta = b'{"id":"c1/0","command":"c1","name":"open","actor":"Ann"}'
    headers = [
        ("tailrace.event", b"Opened.2"),
        ("tailrace.version", b"7"),
        ("tailrace.meta", meta),
    ]
    partition.append(encode_columns([b"acc"], [b'{"owner":"Ann"}'], NOW, [headers]))
    erase(store, "t", p0=[0])
    finish(store, clock)
    (found,) = read_all(partition)
    assert (found.key, found.value) == (b"acc", b"{}")
    assert found.headers == (
        ("tailrace.event", b"Erased"),
        ("tailrace.version", b"7"),
        ("tailrace.meta", b'{"id":"c1/0","command":"c1","name":"open"}'),
    )


def test_producers_and_transactions_go_on_behind_an_erasure(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1).partitions[0]
    numbers = {"producer_id": 7, "producer_epoch": 0}
    put(partition, "a", "SECRET", base_sequence=0, **numbers)
    put(partition, "open", base_sequence=2, transactional=True, **numbers)
    erase(store, "t", p0=[1, 2])
    finish(store, clock)
    assert partition.last_stable_offset == 2  # its transaction is as open as before
    store.abandon()
    store = open_store()
    partition = store.partition("t", 0)
    known = partition.producers.by_id[7]
    assert known.batches[-1].last_offset == 2
    partition.append_marker(7, 0, True, 0)
    assert [each.value for each in read_all(partition)][:3] == [b"a", None, None]


def test_a_stop_at_any_moment_is_finished_by_the_next_start(
    open_store: OpenStore, clock: HandClock, tmp_path: Path
) -> None:
    store = open_store()
    partition = store.create_topic("t", 2, SMALL).partitions[1]
    for number in range(30):
        put(partition, f"SECRET {number} {'y' * 60}", codec="lz4")
    before = read_all(partition)
    erase(store, "t", p1=list(range(25)))
    for ticks in range(4):  # begun and not collected; collected in part; …
        for _ in range(ticks):
            store.tick()
            time.sleep(0.05)
        store.abandon()
        store = open_store()
    finish(store, clock)
    partition = store.partition("t", 1)
    assert [each.value for each in read_all(partition)] == [None] * 25 + [
        each.value for each in before[25:]
    ]
    assert [name for name in files_with(tmp_path, b"SECRET 0 ") if name.endswith(".log")] == []
    assert list((tmp_path / "data" / "t-1").glob("*.cleaned")) == []


def test_what_is_asked_for_meanwhile_is_erased_too(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, SMALL).partitions[0]
    put(partition, *[f"v{number}" for number in range(30)])
    erase(store, "t", p0=[3])
    store.tick()
    erase(store, "t", p0=[3, 9])
    finish(store, clock)
    gone = [each.offset for each in read_all(partition) if each.value is None]
    assert gone == [3, 9]


def test_a_damaged_segment_is_never_written_again(
    open_store: OpenStore, clock: HandClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, SMALL).partitions[0]
    for number in range(20):
        put(partition, f"v{number} {'z' * 50}")
    path = sorted((tmp_path / "data" / "t-0").glob("*.log"))[0]
    octets = bytearray(path.read_bytes())
    octets[100] ^= 1
    path.write_bytes(octets)
    erase(store, "t", p0=[0])
    deadline = time.monotonic() + 60
    while "records not erased yet" not in caplog.text:
        assert time.monotonic() < deadline
        store.tick()
        clock.now += 100
        time.sleep(0.01)
    assert path.read_bytes() == bytes(octets)
    assert ERASE in store.topics["t"].overrides


@settings(max_examples=6, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    chosen=st.sets(st.integers(0, 40)),
    compact=st.booleans(),
)
def test_erasing_is_what_its_naive_twin_says(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], chosen: set[int], compact: bool
) -> None:
    """The twin: the records as they were read before, slots in the place of those chosen."""
    clock = HandClock()
    with Store.open([tmp_path_factory.mktemp("data")], clock=clock) as store:
        partition = store.create_topic("t", 1, SMALL).partitions[0]
        for number, size in enumerate(sizes):
            put(partition, *[f"{number}.{each}" * 9 for each in range(size)])
        before = read_all(partition)
        if compact:
            store.alter_config("t", {"cleanup.policy": "compact"})
            partition.roll(NOW)
            store.compact("t", 0)
            before = read_all(partition)
        erase(store, "t", p0=sorted(chosen)) if chosen else None
        finish(store, clock)
        assert read_all(partition) == [twin(each, chosen) for each in before]
        for position, header in iterate_batches(whole(partition)):
            assert position >= 0
            assert header.record_count >= 0


def twin(record: Record, chosen: set[int]) -> Record:
    return record._replace(value=None, headers=GONE) if record.offset in chosen else record


def whole(partition: Partition) -> bytes:
    return Path(partition.active.path).read_bytes()


# In the archive -------------------------------------------------------------


@pytest.fixture(params=["directory", pytest.param("object store", marks=pytest.mark.thorough)])
def open_archived(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock
) -> Iterator[Callable[[], Store]]:
    place = tmp_path / "archive"
    url = str(place) if request.param == "directory" else f"local://{place}"
    opened: list[Store] = []

    def open_it() -> Store:
        texts = {"tailrace.archive.url": url, "log.retention.check.interval.ms": "1000"}
        opened.append(Store.open([tmp_path / "data"], LogSettings.from_mapping(texts), clock))
        return opened[-1]

    yield open_it
    for store in opened:
        if not store.closed:
            store.abandon()


def test_archived_segments_are_rewritten_and_their_old_copies_deleted(
    open_archived: Callable[[], Store], clock: HandClock, tmp_path: Path
) -> None:
    store = open_archived()
    config = SMALL | {"remote.storage.enable": "true", "local.retention.ms": "10000"}
    partition = store.create_topic("t", 1, config).partitions[0]
    for number in range(24):
        partition.append(encode_columns([b"k"], [b"SECRET%02d" % number * 10], clock.now))
    store.checkpoint()
    clock.now += 20_000

    def archived() -> int:
        return sum(isinstance(each, ArchivedSegment) for each in partition.segments)

    def work_until(done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not done():
            assert time.monotonic() < deadline
            store.tick()
            clock.now += 100
            time.sleep(0.01)

    work_until(lambda: archived() == len(partition.segments) - 1)
    many = archived()
    assert files_with(tmp_path / "archive", b"SECRET03") != []
    erase(store, "t", p0=[3, 10, 23])
    finish(store, clock)
    for number in (3, 10, 23):
        assert files_with(tmp_path, b"SECRET%02d" % number) == []
    assert files_with(tmp_path / "archive", b"SECRET04") == []  # its segment is here again
    store.abandon()  # the middle segments are local ones now, others are not
    store = open_archived()
    partition = store.partition("t", 0)
    bases = [each.base_offset for each in partition.segments]
    assert bases == sorted(bases)
    assert partition.failure is None, partition.failure.render()
    work_until(lambda: archived() >= many)  # and out they go once more
    found = read_waiting(store, partition, clock)
    assert [number for number, value in enumerate(found) if value is None] == [3, 10, 23]
    assert len(found) == 24


def read_waiting(store: Store, partition: Partition, clock: HandClock) -> list[bytes | None]:
    """Read everything, waiting for what is being fetched, as a consumer does."""
    deadline = time.monotonic() + 60
    found: list[Record] = []
    while len(found) < partition.high_watermark:
        assert time.monotonic() < deadline, "a segment never came back"
        found += read_all(partition, start=len(found))
        store.tick()
        clock.now += 100
        time.sleep(0.01)
    return [each.value for each in found]


TICKING = """
import sys, time
from tailrace.log.store import Store
store = Store.open([sys.argv[1]])
print("open", flush=True)
while True:
    store.tick()
    time.sleep(0.005)
"""


@pytest.mark.crash
def test_a_log_that_is_killed_again_and_again_erases_in_the_end(
    open_store: OpenStore, clock: HandClock, tmp_path: Path
) -> None:
    store = open_store()
    partition = store.create_topic("t", 1, SMALL).partitions[0]
    for number in range(200):
        put(partition, f"SECRET {number} {'y' * 60}", f"kept {number}")
    before = read_all(partition)
    wanted = list(range(0, 400, 2))
    erase(store, "t", p0=wanted)
    store.close()
    for number in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", TICKING, str(tmp_path / "data")], stdout=subprocess.PIPE
        )
        with process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.05 * number)  # from before the child begins to behind its swap
            process.kill()
        time.sleep(0.2)  # a child that outlives it ends by itself
    store = open_store()
    finish(store, clock)
    found = read_all(store.partition("t", 0))
    assert found == [twin(each, set(wanted)) for each in before]
    assert files_with(tmp_path, b"SECRET") == []
    assert list((tmp_path / "data" / "t-0").glob("*.cleaned")) == []
