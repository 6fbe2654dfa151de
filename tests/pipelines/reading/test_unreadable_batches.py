"""A batch that nobody can read becomes a dead letter, and views and streams go on behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

import tailrace as tr
from pipelines.ticks.test_ticks import in_process
from tailrace.broker.embedded import BrokerThread
from tailrace.client.errors import UnreadableBatchError
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.errors import UndecodableRecordError
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.ranges import LogRanges
from tailrace.pipelines.reading.reader import LogReader, Range, read_all
from tailrace.pipelines.streams import dead_letters
from tailrace.pipelines.streams.source import LogBatchReader, RangePartition
from tailrace.pipelines.ticks.driver import Runner, TickSettings, last_row
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.records.encode import assemble, encode_columns
from tailrace.testing.wire_client import WireClient

TIME = 1_700_000_000_000
POISON = {
    "gzip": assemble(b"no gzip", count=2, last_offset_delta=1, attributes=1,
                     base_timestamp=TIME, max_timestamp=TIME),
    "garbage": assemble(b"\x99" * 40, count=2, last_offset_delta=1, attributes=0,
                        base_timestamp=TIME, max_timestamp=TIME),
    "count": assemble(bytes(encode_columns([b"k"], [b"v"], TIME)[61:]), count=2,
                      last_offset_delta=1, attributes=0, base_timestamp=TIME, max_timestamp=TIME),
}  # fmt: skip
POSITION = "log:clicks/0:2"


def row(number: int) -> bytes:
    return orjson.dumps({"id": number})


@pytest.fixture(params=POISON)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Records 0 and 1, a batch at 2 and 3 as a broker that does not look would keep it, 4."""
    with BrokerThread(tmp_path / "log", durable=False) as broker:
        with WireClient(broker.address) as talk:
            talk.create("clicks")
            talk.create("terms.dead")
            talk.produce("clicks", encode_columns([b"a", b"b"], [row(0), row(1)], TIME))
            partition = broker.broker.store.partition("clicks", 0)
            partition.append_internal(bytearray(POISON[request.param]))
            talk.produce("clicks", encode_columns([b"c"], [row(4)], TIME))
        yield broker.address


@pytest.mark.parametrize("run", [in_process, run_levels_here], ids=["one task", "levels"])
def test_a_view_goes_on_behind_it(address: str, tmp_path: Path, run: Runner) -> None:
    clicks = tr.topic("clicks", schema="id BIGINT")
    view = tr.view("seen", "SELECT id, count(*) AS n FROM clicks GROUP BY id", key="id")
    state, cache = str(tmp_path / "state"), str(tmp_path / "cache")
    project = ProjectTicks(
        compile_views([view], [topic_table(clicks)]),
        TickSettings("p", address, state, cache, shards=2),
        run,
        plain=frozenset(["clicks"]),
    )
    try:
        project.start()
        for _ in range(12):
            project.step(0.05)
        assert project.failed == {}
        with LogReader(address) as reader:
            tick = last_row(reader, "p")
            assert tick is not None
            keys = [
                key
                for records in read_all(reader, tick.views["seen"].topic)
                for key in records.keys
            ]
    finally:
        project.close()
    assert {orjson.loads(key or b"")["id"] for key in keys} == {0, 1, 4}
    [letter] = dead_letters.letters(address, "p.dead")
    assert letter["position"] == POSITION
    assert letter["reason"].startswith("records 2 to 3 of clicks/0 cannot be read: ")


def test_a_stream_goes_on_behind_it(address: str) -> None:
    options = {"bootstrap": address, "topics": "clicks", "form": "json",
               "columns": '[["id", "bigint"]]'}  # fmt: skip

    def found(start: int, end: int, **more: str) -> list[int]:
        reader = LogBatchReader({**options, **more})
        parts = reader.read(RangePartition(Range("clicks", 0, start, end)))
        return [one for part in parts for one in part.column("id").to_pylist()]

    with pytest.raises(UndecodableRecordError, match="2 of clicks/0"):
        found(0, 5)
    assert found(0, 5, dead="terms.dead") == [0, 1, 4]
    assert found(0, 3, dead="terms.dead") == [0, 1]  # ends in the middle of it
    assert found(3, 5, dead="terms.dead") == [4]
    [letter] = dead_letters.letters(address, "terms.dead")
    assert letter["position"] == POSITION
    assert dead_letters.retry_letters(address, "terms.dead") == 0  # it holds no record to try again
    assert dead_letters.letters(address, "terms.dead") == [letter]


def test_whoever_has_no_place_for_letters_is_told(address: str) -> None:
    log = LogRanges(address)
    try:
        with pytest.raises(UnreadableBatchError):
            list(log.read(Range("clicks", 0, 0, 5)))
    finally:
        log.close()
