"""A random life of one partition, judged by a list after every step."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from log_helpers import HandClock, NoSyncs, read_all
from tailrace.log.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    LogError,
    OutOfOrderSequenceError,
)
from tailrace.log.partition import Partition
from tailrace.log.retention import apply_retention
from tailrace.log.store import Store
from tailrace.records.batch import decode_records, encode_columns, iterate_batches
from tailrace.testing.naive_log import NaiveLog

NAMES = {
    OutOfOrderSequenceError: "sequence",
    InvalidProducerEpochError: "fenced",
    InvalidTransactionStateError: "transaction",
}
times = st.integers(0, 500)
producers = st.integers(0, 2)
sizes = st.sampled_from([0, 1, 60, 90])  # two of the larger ones fill the smallest segment


def rows(most: int) -> st.SearchStrategy[list[tuple[bytes, int]]]:
    """Values and timestamps of one batch."""
    value = st.builds(lambda size, letter: letter * size, sizes, st.sampled_from([b"a", b"b"]))
    return st.lists(st.tuples(value, times), min_size=1, max_size=most)


parts = st.one_of(st.just(1.0), st.floats(0, 1))
"""How much of the log DeleteRecords takes: everything, as often as not."""


def read_committed(partition: Partition) -> list[tuple[int, bytes | None]]:
    """What a consumer with isolation.level=read_committed makes of Fetch's answer."""
    kept: list[tuple[int, bytes | None]] = []
    offset, limit = partition.log_start_offset, partition.last_stable_offset
    while offset < limit:
        waiting = sorted(
            partition.aborted_transactions(offset, limit), key=lambda each: each.first_offset
        )
        aborting: set[int] = set()
        with partition.read(offset, 700, limit) as piece:
            data = piece.read()
        if not data:
            break
        for position, header in iterate_batches(data):
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            if header.control:
                aborting.discard(header.producer_id)
            elif not (header.transactional and header.producer_id in aborting):
                kept += [
                    (record.offset, record.value)
                    for record in decode_records(data, position)
                    if record.offset >= offset
                ]
            offset_after = header.last_offset + 1
        offset = offset_after
    return kept


class LogAgainstTwin(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = HandClock(1000)
        self.twin = NaiveLog()
        self.sequences: dict[tuple[int, int], int] = {}
        self.epochs = {0: 0, 1: 0, 2: 0}
        self.store: Store | None = None
        self.config: dict[str, str] = {}

    @initialize(
        segment=st.sampled_from([150, 400, 2000]),
        interval=st.sampled_from([0, 100, 4096]),
        flush=st.booleans(),
    )
    def begin(self, segment: int, interval: int, flush: bool) -> None:
        self.store = Store.open([Path(self.folder.name)], clock=self.clock, files=NoSyncs())
        config = {"internal.segment.bytes": str(segment), "index.interval.bytes": str(interval)}
        if flush:
            config["flush.messages"] = "1"
        self.config = config
        self.store.create_topic("t", 1, config)

    def teardown(self) -> None:
        if self.store is not None:
            self.store.abandon()
        self.folder.cleanup()

    @property
    def partition(self) -> Partition:
        assert self.store is not None
        return self.store.partition("t", 0)

    def _append(self, values: list[bytes], stamps: list[int], **producer: int | bool) -> None:
        batch = encode_columns(
            [b"k"] * len(values),
            values,
            stamps,
            producer_id=producer.get("producer_id", -1),
            producer_epoch=producer.get("epoch", -1),
            base_sequence=producer.get("sequence", -1),
            transactional=bool(producer.get("transactional", False)),
        )
        expected = self.twin.append(values, stamps, **producer)  # type: ignore[arg-type]
        try:
            answer: int | str = self.partition.append(batch).base_offset
        except LogError as error:
            answer = NAMES[type(error)]
        assert answer == expected
        self.partition.sync()

    @rule(rows=rows(5))
    def append(self, rows: list[tuple[bytes, int]]) -> None:
        self._append([value for value, _ in rows], [at for _, at in rows])

    @rule(
        rows=rows(3),
        producer=producers,
        transactional=st.booleans(),
        slip=st.sampled_from([0, 0, 0, 0, -1, 1, -20]),
        epoch_slip=st.sampled_from([0, 0, 0, 0, -1]),
    )
    def append_in_sequence(
        self,
        rows: list[tuple[bytes, int]],
        producer: int,
        transactional: bool,
        slip: int,
        epoch_slip: int,
    ) -> None:
        epoch = max(0, self.epochs[producer] + epoch_slip)
        key = producer, epoch
        sequence = max(0, self.sequences.get(key, 0) + slip)
        before = self.twin.end
        self._append(
            [value for value, _ in rows],
            [at for _, at in rows],
            producer_id=producer,
            epoch=epoch,
            sequence=sequence,
            transactional=transactional,
        )
        if self.twin.end > before:
            self.sequences[key] = sequence + len(rows)

    @rule(producer=producers, back=st.integers(1, 6))
    def repeat_an_earlier_batch(self, producer: int, back: int) -> None:
        known = self.twin.producers.get(producer)
        if known is None or len(known.batches) < back:
            return
        base, count, offset = known.batches[-back]
        if back == 1 and known.epoch != self.epochs[producer]:
            return
        rows = [record for record in self.twin.records if offset <= record.offset < offset + count]
        if len(rows) != count:
            return
        self._append(
            [row.value or b"" for row in rows],
            [row.timestamp for row in rows],
            producer_id=producer,
            epoch=known.epoch,
            sequence=base,
            transactional=rows[0].transactional,
        )

    @rule(producer=producers)
    def bump_epoch(self, producer: int) -> None:
        self.epochs[producer] += 1

    @rule(producer=producers, commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        epoch = self.epochs[producer]
        expected = self.twin.marker(producer, epoch, commit, self.clock.now)
        try:
            answer: int | str = self.partition.append_marker(producer, epoch, commit, 0).base_offset
        except LogError as error:
            answer = NAMES[type(error)]
        assert answer == expected
        self.partition.sync()

    @rule(
        clean=st.booleans(), lose=st.sampled_from(["", "index", "timeindex", "snapshot", "garbage"])
    )
    def restart(self, clean: bool, lose: str) -> None:
        assert self.store is not None
        if clean:
            self.store.close()
        else:
            self.store.abandon()
            folder = self.partition.directory
            if lose == "garbage":
                last = max(folder.glob("*.log"))
                with last.open("ab") as file:
                    file.write(os.urandom(80))
            elif lose and not (lose == "snapshot" and self.twin.start):
                # (What deleted records said of their producers is in snapshots only.)
                for path in folder.glob(f"*.{lose}"):
                    path.unlink()
        self.store = Store.open([Path(self.folder.name)], clock=self.clock, files=NoSyncs())
        assert self.store.unclean == (not clean)

    @rule(part=parts)
    def delete_records(self, part: float) -> None:
        offset = int(self.twin.end * part)
        self.partition.delete_records(offset)
        self.twin.delete_before(offset)

    @rule(part=parts)
    def let_retention_delete(self, part: float) -> None:
        """By size: whole segments go, up to an offset nobody can say beforehand."""
        assert self.store is not None
        keep = int(self.partition.size_bytes * (1 - part))
        self.store.alter_config("t", {"retention.bytes": str(keep)})
        apply_retention(self.partition, self.clock.now)
        self.store.alter_config("t", {"retention.bytes": None})
        assert self.partition.log_start_offset <= self.twin.stable
        self.twin.delete_before(self.partition.log_start_offset)
        self.partition.sync()

    @rule()
    def make_the_topic_again(self) -> None:
        """What was noted of a topic says nothing of the next one of its name."""
        assert self.store is not None
        self.store.delete_topic("t")
        self.store.create_topic("t", 1, self.config)
        self.twin, self.sequences = NaiveLog(), {}

    @rule()
    def checkpoint(self) -> None:
        assert self.store is not None
        self.store.checkpoint()
        self.store.checkpoint()

    @rule(timestamp=times)
    def look_up_a_time(self, timestamp: int) -> None:
        found = self.partition.offset_for_time(timestamp)
        assert (found and found[:2]) == self.twin.at_time(timestamp)

    @precondition(lambda self: self.store is not None)
    @invariant()
    def readers_see_what_the_twin_says(self) -> None:
        partition = self.partition
        assert partition.end_offset == partition.high_watermark == self.twin.end
        assert partition.log_start_offset == self.twin.start
        assert partition.last_stable_offset == self.twin.stable
        assert partition.producers.open == self.twin.open()
        assert {
            row.producer_id: (row.epoch, row.last_sequence)
            for row in partition.describe_producers()
        } == self.twin.last_sequences()
        assert [
            (record.offset, record.timestamp, record.value) for record in read_all(partition)
        ] == self.twin.visible()
        assert read_committed(partition) == self.twin.committed()


TestLogAgainstTwin = LogAgainstTwin.TestCase
TestLogAgainstTwin.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


@pytest.mark.thorough
class TestLogAgainstTwinForLong(LogAgainstTwin.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=1500, stateful_step_count=60, deadline=None)
