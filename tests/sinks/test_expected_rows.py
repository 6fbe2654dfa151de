"""The rows on disk are those a dict would hold, wherever one stops and goes on."""

from __future__ import annotations

import random

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.sinks.base import SinkPosition
from tailrace.sinks.expected import RANGES, ExpectedRows, range_of
from tailrace.testing.changelogs import MemoryLog


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000), chunk=st.integers(1, 9))
def test_rows_equal_those_of_a_dict_at_every_position(seed: int, chunk: int) -> None:
    chance = random.Random(seed)
    log = MemoryLog()
    log.chunk_records = chunk
    log.create("v", 2)
    for _ in range(60):
        key = orjson.dumps({"id": chance.choice(["a", "b" * 600, chance.randrange(8)])})
        row = None if chance.random() < 0.3 else orjson.dumps({"row": {"n": chance.random()}})
        log.topics["v"][len(key) % 2].append(key, row)
    log.topics["v"][0].append(b'{"id":1}', b"no row")
    ends = {index: partition.end for index, partition in enumerate(log.topics["v"])}

    def naive(offsets: dict[int, int]) -> dict[bytes, bytes]:
        held: dict[bytes, bytes] = {}
        for index, partition in enumerate(log.topics["v"]):
            for offset, key, value in partition.records:
                if offset < offsets[index] and key is not None and value != b"no row":
                    held.pop(key, None)
                    if value is not None:
                        held[key] = value.removeprefix(b'{"row":').removesuffix(b"}")
        return held

    with ExpectedRows(log, wrapped=True) as rows:
        for _ in range(6):
            offsets = {index: chance.randint(0, end) for index, end in ends.items()}
            rows.advance(SinkPosition("v", 1, 0, offsets))
            wanted = naive(offsets)
            assert dict(rows.rows()) == wanted
            assert len(rows) == len(wanted)
            for number in {range_of(key) for key in wanted}:
                part = dict(rows.rows(number))
                assert part == {k: v for k, v in wanted.items() if range_of(k) == number}
            assert all(rows.get(key) == value for key, value in wanted.items())
            assert rows.get(b"absent") is None
    assert all(0 <= range_of(str(n).encode()) < RANGES for n in range(100))
