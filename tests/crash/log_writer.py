"""Writes to a log until it is killed, telling on stdout what was acknowledged.

    python log_writer.py DIRECTORY SEED

`plain N`: record N of topic plain is appended. `synced N`: record N of topic synced is
synced. `commit N` / `abort N`: transaction N of topic atomic has ended. `topic N`: topic
made-N exists.
"""

from __future__ import annotations

import os
import random
import sys
import time

from tailrace.log.partition import Partition
from tailrace.log.store import Store
from tailrace.records.batch import encode_columns

SMALL = {"internal.segment.bytes": "4000", "index.interval.bytes": "300"}


def tell(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def open_topic(store: Store, name: str, **config: str) -> Partition:
    if name not in store.topics:
        store.create_topic(name, 1, SMALL | {key.replace("_", "."): v for key, v in config.items()})
    return store.partition(name, 0)


def numbered(first: int, count: int, *, transactional: bool = False) -> bytearray:
    return encode_columns(
        [b"k"] * count,
        [b"%d" % number for number in range(first, first + count)],
        int(time.time() * 1000),
        producer_id=1,
        producer_epoch=0,
        base_sequence=first,
        transactional=transactional,
    )


def next_number(partition: Partition) -> int:
    """How many records producer 1 has written here."""
    rows = [row for row in partition.describe_producers() if row.producer_id == 1]
    return rows[0].last_sequence + 1 if rows else 0


def work(directory: str, chance: random.Random) -> None:
    store = Store.open([directory])
    plain = open_topic(store, "plain")
    synced = open_topic(store, "synced", flush_messages="1")
    atomic = open_topic(store, "atomic")
    if atomic.has_open_transaction(1):
        atomic.append_marker(1, 0, False, 0)
    made = len(store.topics) - 3
    while True:
        match chance.choices(["plain", "synced", "atomic", "topic", "tick"], [8, 3, 4, 0.2, 1])[0]:
            case "plain":
                count = chance.randrange(1, 6)
                first = next_number(plain)
                plain.append(numbered(first, count))
                tell(f"plain {first + count - 1}")
            case "synced":
                first = next_number(synced)
                synced.append(numbered(first, 1))
                synced.sync()
                tell(f"synced {first}")
            case "atomic":
                first = next_number(atomic)
                for number in range(first, first + chance.randrange(1, 4)):
                    atomic.append(numbered(number, 1, transactional=True))
                commit = chance.random() < 0.6
                atomic.append_marker(1, 0, commit, 0)
                tell(f"{'commit' if commit else 'abort'} {first}")
            case "topic":
                store.create_topic(f"made-{made}")
                tell(f"topic {made}")
                made += 1
            case _:
                if chance.random() < 0.2:
                    store.checkpoint()
                if chance.random() < 0.03:
                    store.close()
                    tell("closed 0")
                    return


if __name__ == "__main__":
    work(sys.argv[1], random.Random(int(sys.argv[2])))
