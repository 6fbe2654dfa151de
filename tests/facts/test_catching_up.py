"""What an owner reads when it begins: by columns, judged by looking at each record."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tailrace as tr
from servers.accounts import Account, Deposited, declare, deposit
from tailrace.client.log import LocalLog
from tailrace.clock import SYSTEM
from tailrace.facts import partition as partition_module
from tailrace.facts.declare import Events
from tailrace.facts.errors import EventUnreadableError
from tailrace.facts.folding import fold
from tailrace.facts.index import IndexBatch, PartitionIndex, StreamEntry, clear_indexes
from tailrace.facts.opened import OpenedEvents
from tailrace.facts.partition import Partition
from tailrace.facts.reading import EventReader, one_by_one
from tailrace.facts.topic import SETTINGS
from tailrace.testing.naive_fold import naive_fold

Given = tuple[str, bytes, bytes, bytes, bytes]  # stream, type, version, meta, value
_numbers = itertools.count()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LocalLog]:
    with tr.open(tmp_path / "log") as made:
        yield made


def write(log: LocalLog, name: str, records: list[Given], batch: int = 3) -> None:
    with log.producer() as producer:
        for number, (stream, kind, version, meta, value) in enumerate(records):
            headers = [
                ("tailrace.event", kind),
                ("tailrace.version", version),
                ("tailrace.meta", meta),
            ]
            headers = headers if kind != b"-" else [("other", b"")]
            producer.send(name, value, key=stream.encode(), headers=headers, partition=0)
            if number % batch == batch - 1:
                producer.flush()


def partition_of(log: LocalLog, declared: Events[Account], root: Path) -> Partition[Account]:
    reader = EventReader(log, 10.0, columns_from_bytes=0)
    return Partition(declared, 0, reader, root, "topic", SYSTEM)


def contents(partition: Partition[Account], commands: list[bytes]) -> dict[str, object]:
    index = partition.index
    stamp = index.stamp
    return {
        "stamp": (stamp.next, stamp.events, stamp.bytes, stamp.streams, stamp.foreign, stamp.kinds),
        "streams": {
            name: (entry.version, entry.offset, index.offsets(name.encode(), 1, entry.version))
            for name, entry in index.streams()
        },
        "states": {name: partition.states.get(name.encode()) for name, _ in index.streams()},
        "commands": {command: index.command(command) for command in commands},
    }


def judge(log: LocalLog, records: list[Given], more: list[Given] = []) -> None:  # noqa: B006
    name = f"topic-{next(_numbers)}"
    declared = declare(name, partitions=1)
    log.create_topic(name, 1, SETTINGS)
    commands = [b"c%d" % n for n in range(6)]
    with tempfile.TemporaryDirectory() as directory:
        fast = partition_of(log, declared, Path(directory, "fast"))
        slow = partition_of(log, declared, Path(directory, "slow"))
        try:
            for some in (records, more):
                write(log, name, some)
                end = log.end_offsets(name)[0]
                first = slow.index.stamp.next
                fast.catch_up(end)
                plain = EventReader(log, 10.0, columns_from_bytes=1 << 30)
                for offsets in (range(end), range(0, end, 3), range(1, end, 7)):
                    seen = fast._reader.at_offsets(name, 0, offsets)
                    assert seen == plain.at_offsets(name, 0, offsets)
                plain.close()
                pieces = slow._reader.pieces(name, 0, first, end)
                for piece, following in pieces:
                    slow.take_events(one_by_one(piece), following, 0)
                slow.index.apply(IndexBatch(), end, 0)
                assert contents(fast, commands) == contents(slow, commands)
            clever, naive = fold(log, declared, columns_from_bytes=0), naive_fold(log, declared)
            assert (clever.streams, clever.broken) == (naive.streams, naive.broken)
            assert (clever.events, clever.foreign) == (naive.events, naive.foreign)
        finally:
            for each in (fast, slow):
                each.close()
                each._reader.close()


def meta(command: int) -> bytes:
    return b'{"id":"c%d/0","command":"c%d","name":"x"}' % (command, command)


def told(versions: list[tuple[str, int]]) -> list[Given]:
    """Deposits whose versions are right, but where a number says otherwise."""
    at: dict[str, int] = {}
    found: list[Given] = []
    for stream, step in versions:
        at[stream] = max(0, at.get(stream, 0) + step)
        version = b"%d" % at[stream]
        found.append((stream, b"Deposited", version, meta(len(found) % 6), b'{"amount":2}'))
    return found


ODD = st.sampled_from(
    [
        ("a", b"-", b"1", b"{}", b"{}"),
        ("a", b"Deposited", b"one", meta(1), b"{}"),
        ("b", b"Deposited", b"1", b"rubbish", b"{}"),
        ("b", b"Deposited", b"1", b"{},{}", b"{}"),
        ("a", b"Lost", b"1", meta(2), b"{}"),
        ("c", b"Deposited", b"1", meta(3), b"no json"),
        ("d", b"Deposited\xff", b"1", meta(3), b"{}"),
        ("s" * 500, b"Deposited", b"1", meta(3), b'{"amount":1}'),
        ("s" * 600, b"Deposited", b"1", meta(3), b'{"amount":1}'),
        ("f", b"Deposited", b"1", b'{"command":"c1"}', b'{"amount":1}'),
        ("f", b"Deposited", b"1", b'{"id":"x","command":"c1","actor":5}', b'{"amount":1}'),
        ("", b"Deposited", b"1", meta(3), b'{"amount":1}'),
        ("a\0b", b"Deposited", b"1", meta(3), b'{"amount":1}'),
        ("f", b"Deposited", b"1", b'{"id":"x","command":""}', b'{"amount":1}'),
        ("e", b"Deposited", b"1", b'{"id":"x","command":"' + b"x" * 600 + b'"}', b'{"amount":1}'),
    ]
)  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1, 1, 1, 1, 1, 0, 2, -1])))


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # topics have names of their own
)
@given(versions=STEPS, odd=st.lists(st.tuples(st.integers(0, 20), ODD), max_size=3), cut=st.integers(0, 20))  # fmt: skip
def test_columns_give_what_each_record_gives(
    log: LocalLog, versions: list[tuple[str, int]], odd: list[tuple[int, Given]], cut: int
) -> None:
    records = told(versions)
    for place, record in odd:
        records.insert(min(place, len(records)), record)
    judge(log, records[:cut], records[cut:])


def test_long_streams_give_what_each_record_gives(log: LocalLog) -> None:
    records = told([("ab"[n % 3 == 0], 1) for n in range(900)])
    judge(log, records[:700], records[700:])


def test_offsets_stand_in_runs_and_are_found_one_by_one(tmp_path: Path) -> None:
    index = PartitionIndex(tmp_path / "0", "topic", "code")
    offsets = {b"a": list(range(0, 3000, 3)), b"ab": list(range(1, 3000, 3))}
    written = dict.fromkeys(offsets, 0)
    for size in itertools.cycle([1, 300, 2, 17, 1, 1, 256, 255]):
        batch = IndexBatch()
        for stream, all_of in offsets.items():
            some = all_of[written[stream] : written[stream] + size]
            if some:
                batch.add_run(stream, written[stream] + 1, some)
                written[stream] += len(some)
                batch.streams[stream] = StreamEntry(written[stream], some[-1])
        index.apply(batch, 3000, 0)
        if all(written[stream] == 1000 for stream in offsets):
            break
    for stream, all_of in offsets.items():
        for first, last in ((1, 1000), (1, 1), (1000, 1000), (2, 3), (300, 700), (999, 2000)):
            assert index.offsets(stream, first, last) == all_of[first - 1 : last]
        for end in (0, 1, 2, 3, 4, 700, 2998, 2999, 3000):
            assert index.version_before(stream, end) == sum(offset < end for offset in all_of)
    assert index.offsets(b"b", 1, 10) == []
    index.close()


@dataclass(frozen=True, slots=True)
class Told:
    told: int


def test_a_stream_whose_records_were_deleted_is_told_and_never_guessed(
    log: LocalLog, tmp_path: Path
) -> None:
    name = f"topic-{next(_numbers)}"
    log.create_topic(name, 1, SETTINGS)
    write(log, name, told([("a", 2), ("a", 1), ("b", 1)]))  # "a" begins at version 2
    bank: OpenedEvents[Account]
    with declare(name, partitions=1).open(log, index=tmp_path / "index") as bank:
        assert bank.state("b").value.balance == 2
        asked: list[Callable[[], object]] = [
            lambda: bank.state("a"), lambda: bank.history("a"), lambda: bank.execute("deposit", "a", amount=1),
        ]  # fmt: skip
        for ask in asked:
            with pytest.raises(EventUnreadableError) as wrong:
                ask()
            assert "'a' are missing" in wrong.value.message
        assert bank.execute("deposit", "b", amount=1).version == 2


def test_states_are_folded_in_pieces(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "MOST_AT_ONCE", 7)
    with declare("accounts", 1).open(log) as bank:
        done = [bank.execute(deposit, "a", amount=1) for _ in range(45)]  # a snapshot at 32
        for version in (1, 6, 7, 8, 31, 32, 33, 39, 40, 44, 45):
            found = bank.state("a", version=version)
            assert (found.version, found.value.balance) == (version, version)
            assert found.position == done[version - 1].position


@pytest.mark.thorough
def test_a_stream_of_a_million_events(log: LocalLog) -> None:
    with declare("accounts", 1).open(log) as bank:
        for _ in range(250):
            bank.append("a", [Deposited(1)] * 4000)
        assert bank.state("a").value.balance == 1_000_000
        clear_indexes(bank.index_directory)
    with declare("accounts", 1).open(log) as bank:
        assert bank.execute(deposit, "a", amount=1).version == 1_000_001
        assert bank.state("a", version=765_432).value.balance == 765_432
        assert [fact.version for fact in bank.history("a", first=999_999)] == [999_999, 1_000_000, 1_000_001]  # fmt: skip
