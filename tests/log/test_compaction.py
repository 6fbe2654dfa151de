"""Compaction: the last value of every live key stays, offsets stay, readers go on."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_helpers import HandClock, read_all
from tailrace.log import swap
from tailrace.log.cleaner import Cleaner
from tailrace.log.compaction import choose, dirtiness, make_job, swap_segments
from tailrace.log.key_map import KeyMap
from tailrace.log.partition import Partition
from tailrace.log.settings import LogSettings
from tailrace.log.store import Store
from tailrace.records.batch import decode_records, encode_columns, iterate_batches

OpenStore = Callable[..., Store]
NOW = 1_700_000_000_000
SMALL = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "600",
    "index.interval.bytes": "100",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "1000",
}


def make(store: Store, **config: str) -> Partition:
    texts = SMALL | {name.replace("_", "."): value for name, value in config.items()}
    return store.create_topic("t", 1, texts).partitions[0]


def put(partition: Partition, *rows: tuple[str, str | None], **more: object) -> None:
    partition.append(
        encode_columns(
            [key.encode() for key, _ in rows],
            [None if value is None else value.encode() for _, value in rows],
            NOW,
            **more,  # type: ignore[arg-type]
        )
    )


def clean(partition: Partition, at: int = NOW, **settings: str) -> None:
    """Roll, so that everything may be cleaned, and clean in this process."""
    if partition.active.size:
        partition.roll(at)
    names = {name.replace("_", "."): value for name, value in settings.items()}
    result = Cleaner(make_job(partition, LogSettings.from_mapping(names), at)).run()
    assert result.damage == []
    swap_segments(partition, result)


def table(partition: Partition) -> dict[bytes, bytes | None]:
    """What reading from the start gives."""
    return {record.key or b"": record.value for record in read_all(partition)}


def rows(partition: Partition) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_all(partition)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_only_the_last_record_of_a_key_stays_in_its_codec(
    open_store: OpenStore, codec: str
) -> None:
    partition = make(open_store())
    for number in range(30):
        put(partition, ("a", f"{number}" * 20), (f"k{number}", "once"), compression=codec)
    before = rows(partition)
    clean(partition)
    kept = [row for row in before if row[1] != b"a" or row[0] == 58]
    assert rows(partition) == kept
    with partition.read(0, 10**6) as piece:
        assert all(
            header.codec == ["none", "gzip", "snappy", "lz4", "zstd"].index(codec)
            for _, header in iterate_batches(piece.read())
        )
    for offset in range(60):
        with partition.read(offset, 10) as piece:
            assert next(iterate_batches(piece.read()))[1].last_offset >= offset


def test_small_segments_are_merged_and_survive_a_restart(open_store: OpenStore) -> None:
    store = open_store()
    partition = make(store)
    for number in range(100):
        put(partition, ("same", f"{number}"))
    many = len(partition.segments)
    clean(partition)
    assert len(partition.segments) < many / 3
    assert table(partition) == {b"same": b"99"}
    for ending in (store.abandon, None):
        if ending is None:
            store.close()
        else:
            ending()
        store = open_store()
        partition = store.partition("t", 0)
        assert table(partition) == {b"same": b"99"}
        assert partition.end_offset == 100


def test_a_segment_of_which_everything_stays_keeps_its_file(open_store: OpenStore) -> None:
    partition = make(open_store())
    for number in range(30):
        put(partition, (f"k{number}", "x" * 300))
    partition.roll(NOW)
    before = [(base, os.stat(f"{partition.directory}/{base:020d}.log").st_ino) for base in partition.bases]  # fmt: skip
    put(partition, ("k0", "new"))
    clean(partition)
    assert partition.cleaned_to == partition.active.base_offset
    after = [(base, os.stat(f"{partition.directory}/{base:020d}.log").st_ino) for base in partition.bases]  # fmt: skip
    assert len(set(before) & set(after)) > 10
    assert before[0] not in after
    assert len(table(partition)) == 30
    assert table(partition)[b"k0"] == b"new"
    assert not list(partition.directory.glob("*.cleaned"))


def test_tombstones_go_after_their_time_and_never_before_what_they_delete(
    open_store: OpenStore,
) -> None:
    partition = make(open_store())
    put(partition, ("a", "1"), ("b", "1"))
    put(partition, ("a", None))
    clean(partition)
    assert rows(partition) == [(1, b"b", b"1"), (2, b"a", None)]
    clean(partition, NOW + 500)
    assert table(partition) == {b"a": None, b"b": b"1"}
    put(partition, ("c", "1"))
    clean(partition, NOW + 2000)
    assert table(partition) == {b"b": b"1", b"c": b"1"}


def test_timestamps_survive_the_delete_horizon(open_store: OpenStore) -> None:
    partition = make(open_store())
    partition.append(
        encode_columns([b"a", b"b", b"c"], [b"1", None, None], [NOW - 5, NOW - 9, NOW])
    )
    put(partition, ("c", "2"))
    clean(partition)
    assert [(r.key, r.timestamp) for r in read_all(partition)] == [
        (b"a", NOW - 5),
        (b"b", NOW - 9),
        (b"c", NOW),
    ]


def test_aborted_records_go_and_markers_follow(open_store: OpenStore) -> None:
    store = open_store()
    partition = make(store)
    put(partition, ("a", "old"))
    put(partition, ("a", "aborted"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)  # fmt: skip
    partition.append_marker(5, 0, False, 0)
    put(partition, ("b", "kept"), producer_id=6, producer_epoch=0, base_sequence=0, transactional=True)  # fmt: skip
    partition.append_marker(6, 0, True, 0)
    put(partition, ("z", "1"), producer_id=5, producer_epoch=0, base_sequence=1)
    put(partition, ("z", "2"), producer_id=6, producer_epoch=0, base_sequence=1)
    clean(partition)
    assert table(partition) == {b"a": b"old", b"b": b"kept", b"z": b"2"}
    assert partition.aborted_transactions(0, 100) == []
    for step in range(1, 5):
        put(partition, ("z", f"{step}"))
        clean(partition, NOW + step * 2000)
    controls = []
    offset = 0
    while offset < partition.end_offset:
        with partition.read(offset, 10**6) as piece:
            data = piece.read()
        if not data:
            break
        for _, header in iterate_batches(data):
            controls += [header.producer_id] if header.control and header.record_count else []
            offset = header.last_offset + 1
    # The marker of a committed record stays with it; the aborted one's has gone.
    assert controls == [6]
    assert table(partition)[b"b"] == b"kept"


def test_an_open_transaction_holds_the_cleaner_back(open_store: OpenStore) -> None:
    partition = make(open_store())
    put(partition, ("a", "1"))
    put(partition, ("a", "2"))
    partition.roll(NOW)
    put(partition, ("a", "3"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)  # fmt: skip
    put(partition, ("a", "4"))
    clean(partition)
    assert [value for _, _, value in rows(partition)] == [b"2", b"3", b"4"]


def test_a_producers_last_sequence_is_known_after_cleaning_and_a_crash(
    open_store: OpenStore,
) -> None:
    store = open_store()
    partition = make(store)
    for number in range(4):
        put(partition, ("a", f"{number}"), producer_id=9, producer_epoch=0, base_sequence=number)
    put(partition, ("a", "last"))
    clean(partition)
    for path in partition.directory.glob("*.snapshot"):
        path.unlink()
    store.abandon()
    again = open_store().partition("t", 0)
    assert table(again) == {b"a": b"last"}
    again.append(
        encode_columns([b"a"], [b"4"], NOW, producer_id=9, producer_epoch=0, base_sequence=4)
    )
    assert again.append(
        encode_columns([b"a"], [b"4"], NOW, producer_id=9, producer_epoch=0, base_sequence=4)
    ).duplicate


def test_a_small_map_takes_several_passes(open_store: OpenStore) -> None:
    partition = make(open_store())
    for number in range(300):
        put(partition, (f"k{number % 150}", f"{number}"))
    reached = []
    for _ in range(20):
        clean(partition, log_cleaner_dedupe_buffer_size="1024")
        reached.append(partition.cleaned_to)
        if partition.cleaned_to >= 300:
            break
    assert len(reached) > 3
    assert reached == sorted(set(reached))
    assert table(partition) == {b"k%d" % n: b"%d" % (n + 150) for n in range(150)}
    assert len(rows(partition)) == 150


def test_readers_in_the_middle_are_not_disturbed(open_store: OpenStore) -> None:
    partition = make(open_store())
    for number in range(50):
        put(partition, (f"k{number % 5}", f"{number}"))
    piece = partition.read(0, 10**6)
    expected = piece.read()
    clean(partition)
    assert piece.read() == expected
    piece.release()
    with partition.read(7, 10**6) as later:
        first = next(iterate_batches(later.read()))[1]
    assert first.last_offset >= 45


def test_lags_decide_what_may_and_what_must_be_cleaned(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store()
    partition = make(store, min_compaction_lag_ms="60000", min_cleanable_dirty_ratio="0.9")
    for number in range(20):
        put(partition, ("a", f"{number}"))
    partition.roll(NOW)
    assert choose(store.partitions(), NOW + 1000, set()) is None
    assert choose(store.partitions(), NOW + 61_000, set()) is partition
    clean(partition, NOW + 61_000)
    put(partition, ("a", "new"))
    partition.roll(NOW)
    put(partition, ("b", "x" * 500))
    share, overdue = dirtiness(partition, NOW + 130_000)
    assert 0 < share < 0.9
    assert not overdue
    assert choose(store.partitions(), NOW + 130_000, set()) is None
    store.alter_config("t", {"max.compaction.lag.ms": "100000"})
    assert choose(store.partitions(), NOW + 130_000, set()) is partition


def test_compact_and_delete_together(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store(log_retention_check_interval_ms="1")
    partition = make(store, cleanup_policy="compact,delete", retention_ms="5000")
    for number in range(20):
        put(partition, (f"k{number}", "x" * 50))
    clean(partition)
    assert len(table(partition)) == 20
    clock.now += 60_000
    store.tick()
    assert partition.log_start_offset == partition.active.base_offset


def test_damage_stops_the_cleaner_and_leaves_the_log_alone(open_store: OpenStore) -> None:
    store = open_store()
    partition = make(store)
    for number in range(30):
        put(partition, ("a", f"{number}" * 10))
    partition.roll(NOW)
    path = Path(partition.segments[1].path)
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    result = store.compact("t", 0)
    assert result.damage[0] == str(path)
    assert not list(partition.directory.glob("*.cleaned"))
    assert partition.cleaned_to == 0
    assert choose(store.partitions(), NOW, set(store.compaction._broken)) is None


def wait_for_cleaner(store: Store, clock: HandClock, runs: int) -> None:
    deadline = time.monotonic() + 60
    while store.compaction.runs < runs:
        assert time.monotonic() < deadline, "the cleaner did not end"
        store.tick()
        clock.now += 1000
        time.sleep(0.01)


def test_the_cleaner_runs_in_a_child_and_the_loop_swaps(
    open_store: OpenStore, clock: HandClock
) -> None:
    store = open_store()
    partition = make(store, min_cleanable_dirty_ratio="0.5")
    for number in range(200):
        put(partition, (f"k{number % 7}", f"{number}"))
    wait_for_cleaner(store, clock, 1)
    assert table(partition) == {b"k%d" % (n % 7): b"%d" % n for n in range(193, 200)}
    assert store.compaction.last_result is not None
    assert store.compaction.last_result.bytes_written < store.compaction.last_result.bytes_read
    store.close()
    assert table(open_store().partition("t", 0))[b"k3"] == b"199"


def test_a_killed_cleaner_is_started_again(open_store: OpenStore, clock: HandClock) -> None:
    store = open_store()
    partition = make(store)
    for number in range(100):
        put(partition, ("a", f"{number}"))
    store.tick()
    child = store.compaction._child
    assert child is not None
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait()
    wait_for_cleaner(store, clock, 1)
    assert table(partition) == {b"a": b"99"}


def test_a_stop_ends_the_cleaner(open_store: OpenStore) -> None:
    store = open_store()
    partition = make(store)
    for number in range(100):
        put(partition, ("a", f"{number}"))
    store.tick()
    assert store.compaction.busy
    store.close()
    assert not store.compaction.busy
    assert table(open_store().partition("t", 0)) == {b"a": b"99"}


class Stop(Exception):
    """The power went."""


def test_a_swap_cut_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """Every system call of the swap fails once; the next start must find one whole log."""
    finished = False
    for step in range(200):
        if finished:
            break
        finished = _swap_cut_at(tmp_path / str(step), step)
    assert finished
    assert step > 10


def _swap_cut_at(folder: Path, step: int) -> bool:
    """Whether the swap ended before its call number `step`."""
    from tailrace.log.files import Files

    class Failing(Files):
        __slots__ = ("left",)

        def __init__(self) -> None:
            self.left = 10**9

        def _count(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise Stop

        def rename(self, old: str | Path, new: str | Path) -> None:
            self._count()
            super().rename(old, new)

        def remove(self, path: str | Path) -> None:
            self._count()
            super().remove(path)

        def sync_directory(self, path: str | Path) -> None:
            self._count()
            super().sync_directory(path)

    files = Failing()
    store = Store.open([folder], clock=HandClock(NOW), files=files)
    partition = make(store)
    for number in range(60):
        put(partition, (f"k{number % 4}", f"{number}" * 3))
    put(partition, ("x", "gone"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)  # fmt: skip
    partition.append_marker(5, 0, False, 0)
    partition.roll(NOW)
    files.left = step
    finished = False
    try:
        store.compact("t", 0)
        finished = True
    except Stop:
        pass
    files.left = 10**9
    store.abandon()
    with Store.open([folder], clock=HandClock(NOW)) as again:
        found = again.partition("t", 0)
        live = table(found)
        aborted = found.aborted_transactions(0, 100)
        assert live.pop(b"x", None) is None or aborted
        assert live == {b"k%d" % (n % 4): b"%d" % n * 3 for n in range(56, 60)}
        assert found.end_offset == 62
        assert not list(found.directory.glob("*.cleaned"))
        assert not (found.directory / "swap").exists()
    return finished


def test_leftovers_without_a_decision_are_removed(open_store: OpenStore) -> None:
    store = open_store()
    partition = make(store)
    put(partition, ("a", "1"))
    (partition.directory / "00000000000000000000.log.cleaned").write_bytes(b"half")
    store.abandon()
    again = open_store().partition("t", 0)
    assert table(again) == {b"a": b"1"}
    assert not list(again.directory.glob("*.cleaned"))
    swap.complete(again.directory)


@given(st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 2**60)), max_size=300))
def test_the_map_of_keys_equals_a_dict(rows: list[tuple[bytes, int]]) -> None:
    keys = KeyMap(100_000)
    plain: dict[bytes, int] = {}
    for key, offset in rows:
        assert keys.put(key, offset)
        plain[key] = offset
    assert keys.count == len(plain)
    assert all(keys.get(key) == offset for key, offset in plain.items())
    assert keys.get(b"never seen by anyone") == -1


def test_a_full_map_takes_known_keys_only() -> None:
    keys = KeyMap(300)
    for number in range(keys.capacity):
        assert keys.put(b"%d" % number, number)
    assert not keys.put(b"one more", 1)
    assert keys.put(b"0", 99)
    assert keys.get(b"0") == 99


def test_the_map_costs_about_24_bytes_a_key() -> None:
    import sys

    keys = KeyMap(30 * 200_000)
    count = 0
    while keys.put(b"key-%d" % count, count):
        count += 1
    used = sys.getsizeof(keys._buckets) + sum(
        sys.getsizeof(bucket) for bucket in keys._buckets if bucket is not None
    )
    assert 24 <= used / count <= 32


# ── the life of a compacted topic against a dict ────────────────────────────────────

actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.lists(
                st.tuples(st.sampled_from("abcdef"), st.none() | st.text("xyz", max_size=30)),
                min_size=1,
                max_size=4,
            ),
            st.sampled_from(["none", "gzip", "zstd"]),
        ),
        st.tuples(
            st.just("transaction"),
            st.integers(0, 1),
            st.lists(
                st.tuples(st.sampled_from("abcdef"), st.none() | st.text("xyz", max_size=30)),
                min_size=1,
                max_size=3,
            ),
            st.booleans(),
        ),
        st.tuples(st.just("clean"), st.integers(0, 1500), st.sampled_from(["1024", "1000000"])),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=25,
)


@given(actions)
def test_reading_a_compacted_topic_gives_the_last_value_of_every_live_key(
    life: list[tuple[object, ...]],
) -> None:
    clock = HandClock(NOW)
    expected: dict[bytes, bytes | None] = {}
    sequences = {0: 0, 1: 0}
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open([folder], clock=clock)
        make(store)
        for action in life:
            partition = store.partition("t", 0)
            match action:
                case ("put", list(entries), str(codec)):
                    put(partition, *entries, compression=codec)
                    _apply(expected, entries)
                case ("transaction", int(producer), list(entries), bool(commit)):
                    put(
                        partition,
                        *entries,
                        producer_id=producer,
                        producer_epoch=0,
                        base_sequence=sequences[producer],
                        transactional=True,
                    )
                    sequences[producer] += len(entries)
                    partition.append_marker(producer, 0, commit, 0)
                    if commit:
                        _apply(expected, entries)
                case ("clean", int(later), str(memory)):
                    clock.now += later
                    clean(partition, clock.now, log_cleaner_dedupe_buffer_size=memory)
                case ("restart", bool(crash)):
                    (store.abandon if crash else store.close)()
                    store = Store.open([folder], clock=clock)
            partition = store.partition("t", 0)
            found = _committed(partition)
            assert {k: v for k, v in found.items() if v is not None} == {
                k: v for k, v in expected.items() if v is not None
            }
            for key, value in found.items():
                assert value == expected[key]
        store.abandon()


def _apply(expected: dict[bytes, bytes | None], entries: list[tuple[str, str | None]]) -> None:
    for key, value in entries:
        expected[key.encode()] = None if value is None else value.encode()


def _committed(partition: Partition) -> dict[bytes, bytes | None]:
    found: dict[bytes, bytes | None] = {}
    waiting = sorted(partition.aborted_transactions(0, 10**9), key=lambda each: each.first_offset)
    aborting: set[int] = set()
    offset, last = 0, -1
    while offset < partition.end_offset:
        with partition.read(offset, 10**6) as piece:
            data = piece.read()
        if not data:
            break
        for position, header in iterate_batches(data):
            assert header.base_offset > last, "offsets only grow"
            last = header.last_offset
            offset = header.last_offset + 1
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            if header.control:
                aborting.discard(header.producer_id)
            elif not (header.transactional and header.producer_id in aborting):
                for record in decode_records(data, position):
                    found[record.key or b""] = record.value
    return found


@pytest.mark.thorough
@settings(max_examples=3000)
@given(actions)
def test_many_lives_of_a_compacted_topic(life: list[tuple[object, ...]]) -> None:
    test_reading_a_compacted_topic_gives_the_last_value_of_every_live_key.hypothesis.inner_test(
        life
    )
