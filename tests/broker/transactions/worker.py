"""A read-process-write loop to be killed: copies `input` to `output`, transaction by transaction.

    python worker.py ADDRESS RECORDS

Ends with status 0 when the group has read everything. Any error ends the process too:
whoever started it starts it again, under the same transactional id.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

BATCH = 40
PATIENCE = 8
SECONDS_TO_LIVE = 30
"""Without progress for so long, the process is killed and started again."""


def main(address: str, records: int) -> int:
    common = {
        "bootstrap.servers": address,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 20,
        "log_level": 0,
        # With "rebootstrap" librdkafka forgets the only broker while it is down, and a
        # commit of offsets can then wait for the forgotten one for ever.
        "metadata.recovery.strategy": "none",
    }
    consumer = Consumer(
        common
        | {
            "group.id": "workers",
            # Static: it returns after a kill without waiting for its session to end.
            "group.instance.id": "worker",
            "session.timeout.ms": 30_000,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.error.backoff.ms": 20,
        }
    )
    producer = Producer(
        common | {"transactional.id": "worker", "transaction.timeout.ms": 20_000, "linger.ms": 1}
    )
    producer.init_transactions(20)
    consumer.subscribe(["input"])
    places = [TopicPartition("input", index) for index in range(2)]
    idle = 0
    while True:
        signal.alarm(SECONDS_TO_LIVE)
        done = [one.offset for one in consumer.committed(places, 20)]
        if sum(max(one, 0) for one in done) >= records:
            return 0
        messages = [
            one
            for one in consumer.consume(BATCH, 0.3)
            if one.error() is None or one.error().code() != KafkaError._PARTITION_EOF
        ]
        if not messages:
            idle += 1
            if idle == PATIENCE:
                # librdkafka sometimes drops what it had fetched when the leader's epoch
                # changes, and waits at the end: begin again at what is committed.
                return 4
            continue
        idle = 0
        producer.begin_transaction()
        following: dict[int, int] = {}
        for message in messages:
            if message.error() is not None:
                raise SystemExit(3)
            origin = message.partition()
            producer.produce("output", partition=1 - origin, key=str(origin), value=message.value())
            following[origin] = message.offset() + 1
        producer.send_offsets_to_transaction(
            [TopicPartition("input", index, offset) for index, offset in following.items()],
            consumer.consumer_group_metadata(),
            20,
        )
        producer.commit_transaction(20)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
