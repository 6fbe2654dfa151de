"""aiokafka, which speaks older versions of the protocol."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import fresh_loop

pytestmark = pytest.mark.filterwarnings("ignore")


def test_records_come_back_in_order(address: str, topic: str) -> None:
    async def run() -> list[bytes]:
        async with AIOKafkaProducer(
            bootstrap_servers=address, enable_idempotence=True, linger_ms=2
        ) as producer:
            sent = [
                await producer.send(topic, b"%d" % number, partition=0) for number in range(300)
            ]
            offsets = [(await future).offset for future in sent]
            assert offsets == list(range(300))
        consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, 0)])
            return [(await consumer.getone()).value for _ in range(300)]
        finally:
            await consumer.stop()

    assert fresh_loop.run(run(), 60) == [b"%d" % number for number in range(300)]


def test_a_group_goes_on_where_it_stopped(address: str, topic: str) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 2, 1)])
        await admin.close()
        async with AIOKafkaProducer(bootstrap_servers=address) as producer:
            for number in range(40):
                await producer.send_and_wait(topic, b"%d" % number, key=b"%d" % number)
        for start in (0, 20):
            consumer = AIOKafkaConsumer(
                topic,
                bootstrap_servers=address,
                group_id=topic,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                max_poll_records=1,
            )
            await consumer.start()
            try:
                for _ in range(20):
                    await consumer.getone()
                await consumer.commit()
                parts = [TopicPartition(topic, index) for index in range(2)]
                done = [await consumer.committed(part) or 0 for part in parts]
                assert sum(done) == start + 20
            finally:
                await consumer.stop()

    fresh_loop.run(run(), 60)


def test_transactions_commit_and_abort(address: str, topic: str) -> None:
    async def run() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=address, transactional_id=topic) as producer:
            for number in range(4):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, b"%d" % number, partition=0)
                if number % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        consumer = AIOKafkaConsumer(
            bootstrap_servers=address,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            consumer.assign([TopicPartition(topic, 0)])
            return [(await consumer.getone()).value for _ in range(2)]
        finally:
            await consumer.stop()

    assert fresh_loop.run(run(), 60) == [b"0", b"2"]
