"""A read-process-write loop to be killed: copies "in" to "out" in transactions."""

from __future__ import annotations

import sys

import tailrace as tr
from tailrace.client.errors import CommitFailedError, ProducerFencedError


def main(address: str, most: int) -> None:
    log = tr.connect(address)
    with (
        log.consumer(
            "copy", ["in"], enable_auto_commit=False, max_poll_records=most,
            session_timeout_ms=6_000, group_instance_id="copier", heartbeat_interval_ms=200, fetch_max_wait_ms=20,
        ) as consumer,
        log.producer(transactional_id="copy") as producer,
    ):  # fmt: skip
        print("ready", flush=True)
        while True:
            records = consumer.poll(0.1)
            if not records:
                continue
            with producer.transaction():
                for record in records:
                    producer.send("out", key=record.key, value=record.value, partition=record.partition)  # fmt: skip
                producer.send_offsets(consumer)


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]))
    except (ProducerFencedError, CommitFailedError) as error:
        sys.exit(f"gave way: {error}")
