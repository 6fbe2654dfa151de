"""Kafka's own dump tool reads our files without complaint."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable

import pytest

from log_helpers import batch
from servers.kafka import KafkaUnavailable, jars, java
from tailrace.log.store import Store
from tailrace.records.batch import encode_columns

pytestmark = pytest.mark.clients


def dump(files: list[str]) -> str:
    """What the tool says, complaints on stderr included."""
    try:
        command = [
            java(),
            "-Xmx256m",
            "-cp",
            f"{jars()}/*",
            "org.apache.kafka.tools.DumpLogSegments",
        ]
    except KafkaUnavailable as reason:
        pytest.skip(f"needs Kafka's tools: {reason}")
    options = ["--deep-iteration", "--print-data-log", "--files", ",".join(files)]
    run = subprocess.run([*command, *options], capture_output=True, text=True, timeout=90)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


COMPLAINTS = ("Found timestamp mismatch", "Found out of order timestamp", "Mismatches in", "isvalid: false", "is corrupted", "Exception")  # fmt: skip


def test_dump_tool_accepts_every_file_of_a_partition(open_store: Callable[..., Store]) -> None:
    chance = random.Random(5)
    store = open_store()
    partition = store.create_topic(
        "t", 1, {"internal.segment.bytes": "15000", "index.interval.bytes": "500"}
    ).partitions[0]
    sequences = {1: 0, 2: 0}
    for number in range(300):
        codec = chance.choice(["none", "gzip", "snappy", "lz4", "zstd"])
        count = chance.randrange(1, 6)
        stamps = [1_700_000_000_000 + chance.randrange(10**6) for _ in range(count)]
        producer = chance.choice([None, 1, 2])
        keys, values = [b"key"] * count, [b"%d" % number * chance.randrange(40)] * count
        if producer is None:
            partition.append(encode_columns(keys, values, stamps, compression=codec))
            continue
        partition.append(
            encode_columns(
                keys,
                values,
                stamps,
                (("h", b"x"),),
                compression=codec,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequences[producer],
                transactional=True,
            )
        )
        sequences[producer] += count
        if chance.random() < 0.4:
            partition.append_marker(producer, 0, chance.random() < 0.5, 0)
    assert len(partition.segments) > 2
    assert partition.aborted.entries
    store.close()
    files = sorted(
        str(path)
        for path in partition.directory.iterdir()
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
    )
    assert {file.rsplit(".", 1)[1] for file in files} == {
        "log", "index", "timeindex", "snapshot", "txnindex",
    }  # fmt: skip
    text = dump(files)
    # The tool counts from −1 in every file, Kafka's own included; other gaps are ours.
    gaps = [line for line in text.splitlines() if "is followed by" in line]
    assert all(line.strip().startswith("-1 is") for line in gaps)
    for complaint in COMPLAINTS:
        assert complaint not in text, text[max(0, text.find(complaint) - 2000) :][:4000]
    assert text.count("endTxnMarker") == text.count("isControl: true")
    assert "producerId: 2 " in text


def test_dump_tool_accepts_compacted_segments(open_store: Callable[..., Store]) -> None:
    chance = random.Random(6)
    store = open_store()
    config = {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "8000",
        "index.interval.bytes": "300",
    }
    partition = store.create_topic("t", 1, config).partitions[0]
    sequence = 0
    for _ in range(400):
        count = chance.randrange(1, 6)
        keys = [b"%d" % chance.randrange(120) for _ in range(count)]
        values = [chance.choice([None, b"v" * chance.randrange(60)]) for _ in range(count)]
        stamps = [1_700_000_000_000 + chance.randrange(10**6) for _ in range(count)]
        codec = chance.choice(["none", "gzip", "snappy", "lz4", "zstd"])
        if chance.random() < 0.5:
            partition.append(encode_columns(keys, values, stamps, compression=codec))
            continue
        partition.append(
            encode_columns(
                keys,
                values,
                stamps,
                compression=codec,
                producer_id=1,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=True,
            )
        )
        sequence += count
        partition.append_marker(1, 0, chance.random() < 0.5, 0)
    partition.roll(1_700_000_000_000)
    before = partition.size_bytes
    for _ in range(2):
        assert store.compact("t", 0).damage == []
    assert partition.size_bytes < before / 2
    store.close()
    files = sorted(
        str(path)
        for path in partition.directory.iterdir()
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex")
    )
    text = dump(files)
    for complaint in COMPLAINTS:
        assert complaint not in text, text[max(0, text.find(complaint) - 2000) :][:4000]
    assert "deleteHorizonMs: OptionalLong[" in text


def test_dump_tool_sees_a_flipped_bit(open_store: Callable[..., Store]) -> None:
    store = open_store()
    partition = store.create_topic("t").partitions[0]
    for _ in range(5):
        partition.append(batch(b"value"))
    store.close()
    path = next(partition.directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    text = dump([str(path)])
    assert any(complaint in text for complaint in COMPLAINTS), text
