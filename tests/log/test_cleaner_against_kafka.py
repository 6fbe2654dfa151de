"""The same segments, cleaned by Apache Kafka and by us, give the same batches."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from servers.kafka import Kafka, KafkaUnavailable
from tailrace.log.cleaner import Cleaner
from tailrace.log.cleaning_job import CleaningJob, CleaningResult
from tailrace.log.transactions import decode_entries
from tailrace.records.batch import decode_marker, decode_records, iterate_batches

pytestmark = pytest.mark.clients
TOPIC = "kept"


def produce(bootstrap: str, chance: random.Random) -> None:
    """Plain, committed and aborted records, tombstones, every codec; several segments."""
    from confluent_kafka import Producer

    def value() -> bytes | None:
        return None if chance.random() < 0.1 else chance.randbytes(chance.randrange(4000))

    def key() -> bytes:
        return b"%d" % chance.randrange(400)

    plain = [
        Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": "5"})
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    ]
    atomic = []
    for number in range(3):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"writer-{number}",
                "compression.type": "zstd" if number else "none",
            }
        )
        producer.init_transactions(30)
        atomic.append(producer)
    for _ in range(150):
        if chance.random() < 0.5:
            producer = chance.choice(plain)
            for _ in range(chance.randrange(1, 20)):
                producer.produce(TOPIC, value(), key(), partition=0)
            producer.flush(30)
            continue
        producer = chance.choice(atomic)
        producer.begin_transaction()
        for _ in range(chance.randrange(1, 20)):
            producer.produce(TOPIC, value(), key(), partition=0)
        if chance.random() < 0.5:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)
    # Fresh keys until the segment with the last transaction is sealed.
    for number in range(1200):
        plain[0].produce(TOPIC, chance.randbytes(1000), b"last-%d" % number, partition=0)
    plain[0].flush(30)


def batches(files: list[Path]) -> list[tuple[object, ...]]:
    """Everything that must be equal, batch by batch."""
    found: list[tuple[object, ...]] = []
    for path in files:
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            content: object = (
                decode_marker(data, position)
                if header.control
                else tuple(decode_records(data, position))
            )
            found.append(
                (
                    header.base_offset,
                    header.last_offset,
                    header.record_count,
                    header.attributes,
                    header.max_timestamp,
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                    header.leader_epoch,
                    content,
                )
            )
    return found


def job_for(folder: Path, logs: list[Path], active: Path) -> CleaningJob:
    producers: dict[str, list[int]] = {}
    for path in [*logs, active]:
        for _, header in iterate_batches(path.read_bytes()):
            if header.producer_id >= 0:
                known = producers.setdefault(str(header.producer_id), [-1, 0])
                known[1] = header.producer_epoch
                if not header.control:
                    known[0] = header.last_offset
    aborted = [
        [entry.producer_id, entry.first_offset, entry.last_offset]
        for path in sorted(folder.glob("*.txnindex"))
        for entry in decode_entries(path.read_bytes(), int(path.stem))
    ]
    assert aborted
    return CleaningJob(
        str(folder),
        [[int(path.stem), path.stat().st_size] for path in logs],
        0,
        int(active.stem),
        int(time.time() * 1000),
        86_400_000,
        1024 * 1024,
        4096,
        2**27,
        1e300,
        aborted,
        producers,
    )


def left_by_us(folder: Path, logs: list[Path], result: CleaningResult) -> list[Path]:
    """The segments behind the cleaning: new ones, and those of which everything stays."""
    replaced = {base for group in result.groups for base in group.old}
    untouched = [path for path in logs if int(path.stem) not in replaced]
    return sorted([*folder.glob("*.log.cleaned"), *untouched])


def test_kafka_and_we_keep_the_same_batches(tmp_path: Path) -> None:
    try:
        (tmp_path / "kafka").mkdir()
        kafka = Kafka(tmp_path / "kafka", settings={"log.cleaner.backoff.ms": "300"})
    except KafkaUnavailable as reason:
        pytest.skip(f"needs a real Kafka: {reason}")
    try:
        from confluent_kafka.admin import (  # fmt: skip
            AdminClient,
            AlterConfigOpType,
            ConfigEntry,
            ConfigResource,
            NewTopic,
        )

        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        config = {
            "cleanup.policy": "compact",
            "segment.bytes": "1048576",
            "min.cleanable.dirty.ratio": "1.0",
        }
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values():
            future.result(30)
        produce(kafka.bootstrap, random.Random(11))
        theirs = tmp_path / "kafka" / "node-0" / f"{TOPIC}-0"
        ours = tmp_path / "ours"
        shutil.copytree(theirs, ours)
        change = ConfigResource(
            ConfigResource.Type.TOPIC,
            TOPIC,
            incremental_configs=[
                ConfigEntry(
                    "min.cleanable.dirty.ratio",
                    "0.0",
                    incremental_operation=AlterConfigOpType.SET,
                )
            ],
        )
        for future in admin.incremental_alter_configs([change]).values():
            future.result(30)
        checkpoint = theirs.parent / "cleaner-offset-checkpoint"
        deadline = time.monotonic() + 60
        while not (checkpoint.exists() and f"{TOPIC} 0 " in checkpoint.read_text()):
            assert time.monotonic() < deadline, "Kafka did not clean"
            time.sleep(0.2)
        time.sleep(1)  # its renames follow the checkpoint
        logs = sorted(ours.glob("*.log"))
        assert len(logs) > 3
        result = Cleaner(job_for(ours, logs[:-1], logs[-1])).run()
        assert result.damage == []
        mine = batches(left_by_us(ours, logs[:-1], result))
        kept = batches(sorted(theirs.glob("*.log"))[:-1])
        assert len(mine) == len(kept)
        for left, right in zip(mine, kept, strict=True):
            assert left == right
        assert sum(1 for each in kept if not each[2]) > 0, "an emptied batch was among them"
    finally:
        kafka.stop()
