"""`tailrace topic repartition`: more partitions without breaking the order of keys.

Growing a topic in place sends most keys elsewhere. Here a new topic with the wanted
number of partitions gets every record in order (a key's records lie in one source
partition, so their order survives), and groups are moved to the first record they may
not have read: after the switch a record may come twice, none is missed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tailrace.cli.output import bootstrap_address, json_option, log_option, print_json
from tailrace.errors import TailraceError
from tailrace.security import librdkafka_settings

if TYPE_CHECKING:
    from tailrace.records.batch import Record


class CopyFailedError(TailraceError):
    """A record could not be written to the new topic. The old topic and its groups are
    untouched: delete the new topic and start again."""

    code = "repartition-failed"


@click.command()
@click.argument("name")
@click.option("--partitions", type=click.IntRange(1), required=True)
@click.option("--to", "target", default=None, help="Name of the new topic; NAME-N if not given.")
@click.option("--group", "groups", multiple=True, help="Move these groups to the new topic.")
@log_option
@json_option
def repartition(
    name: str,
    partitions: int,
    target: str | None,
    groups: tuple[str, ...],
    address: str | None,
    as_json: bool,
) -> None:
    """Copy a topic, in order, into a new one with N partitions.

    Stop its writers first: what they add while the copy runs is copied too, but what
    comes after the last look is not.
    """
    from tailrace.cli.topic import missing
    from tailrace.client.admin import Admin

    bootstrap = bootstrap_address(address)
    target = target or f"{name}-{partitions}"
    with Admin(bootstrap) as admin:
        found = admin.describe_topic(name)
        if found is None:
            raise missing(name)
        config = {
            key: entry.value
            for key, entry in admin.topic_config(name).items()
            if not entry.is_default and not entry.read_only and entry.value is not None
        }
        admin.create_topic(target, partitions, config)
        sources = list(range(len(found.leaders)))
        places = [(name, index) for index in sources]
        committed = {group: _committed(bootstrap, group, name, sources) for group in groups}
        positions = {index: at for (_, index), at in admin.start_offsets(places).items()}
        copied = 0
        starts: dict[str, dict[int, int]] = {group: {} for group in groups}
        while True:
            ends = {index: at for (_, index), at in admin.end_offsets(places).items()}
            if all(positions[index] >= ends[index] for index in sources):
                break
            copied += _copy(bootstrap, name, target, partitions, positions, ends, committed, starts)
            positions = ends
        target_places = [(target, index) for index in range(partitions)]
        target_ends = {index: at for (_, index), at in admin.end_offsets(target_places).items()}
    for group in groups:
        _move(bootstrap, group, target, {**target_ends, **starts[group]})
    position = {f"log:{name}/{index}": at for index, at in positions.items()}
    if as_json:
        print_json({"topic": target, "records": copied, "up_to": position, "groups": groups})
        return
    click.echo(f"copied {copied} records of {name} to {target}")
    for group in groups:
        click.echo(f"group {group} goes on in {target}")
    click.echo(f"the copy reaches {', '.join(f'{k}:{v}' for k, v in position.items())}")


def _copy(
    bootstrap: str,
    name: str,
    target: str,
    partitions: int,
    positions: dict[int, int],
    ends: dict[int, int],
    committed: dict[str, dict[int, int]],
    starts: dict[str, dict[int, int]],
) -> int:
    """Copy everything between `positions` and `ends`, oldest first; how many records.

    Lowers `starts[group][partition]` to the first record there that the group may not
    have read.
    """
    from confluent_kafka import KafkaError, Message, Producer

    from tailrace.records.partitioner import partition_for

    problems: list[str] = []
    producer = Producer(
        {**librdkafka_settings(bootstrap), "enable.idempotence": True, "linger.ms": 20}
    )
    count = 0
    for source, record in _by_time(bootstrap, name, positions, ends):
        unread = [group for group, offsets in committed.items() if record.offset >= offsets[source]]

        def delivered(
            error: KafkaError | None, message: Message, unread: list[str] = unread
        ) -> None:
            if error is not None:
                problems.append(str(error))
                return
            index, offset = message.partition(), message.offset()
            if index is None or offset is None:
                return
            for group in unread:
                before = starts[group].get(index)
                if before is None or offset < before:
                    starts[group][index] = offset

        index = (
            partition_for(record.key, partitions) if record.key is not None else count % partitions
        )
        while True:
            try:
                producer.produce(
                    target,
                    record.value,
                    record.key,
                    partition=index,
                    headers=list(record.headers) or None,
                    timestamp=record.timestamp,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        count += 1
    left = producer.flush(120)
    if problems or left:
        raise CopyFailedError(
            f"{len(problems) + left} records could not be copied to {target}",
            detail=problems[0] if problems else "the log did not answer in time",
            hint=f"`tailrace topic delete {target}` and start again; {name} is as it was",
        )
    return count


def _by_time(
    bootstrap: str, name: str, positions: dict[int, int], ends: dict[int, int]
) -> Iterator[tuple[int, Record]]:
    """All partitions' records, merged by timestamp; each partition keeps its own order."""
    from tailrace.client.fetcher import Fetcher

    with Fetcher(bootstrap) as fetcher:

        def one(index: int) -> Iterator[tuple[int, int, int, Record]]:
            latest = 0
            for record in fetcher.read_range(name, index, positions[index], ends[index]):
                latest = max(latest, record.timestamp)
                yield latest, index, record.offset, record

        for _, index, _, record in heapq.merge(*(one(index) for index in positions)):
            yield index, record


def _committed(bootstrap: str, group: str, name: str, partitions: list[int]) -> dict[int, int]:
    """What the group has committed; 0 where it has not."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({**librdkafka_settings(bootstrap), "group.id": group})
    try:
        asked = [TopicPartition(name, index) for index in partitions]
        return {one.partition: max(one.offset, 0) for one in consumer.committed(asked, 30)}
    finally:
        consumer.close()


def _move(bootstrap: str, group: str, target: str, offsets: dict[int, int]) -> None:
    """Let the group begin at these offsets of the new topic; it must have no members."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {**librdkafka_settings(bootstrap), "group.id": group, "enable.auto.commit": False}
    )
    try:
        consumer.commit(
            offsets=[TopicPartition(target, index, offset) for index, offset in offsets.items()],
            asynchronous=False,
        )
    except KafkaException as error:
        raise CopyFailedError(
            f"group {group} could not be moved to {target}",
            detail=str(error),
            hint="stop the group's members, then `tailrace group reset`",
        ) from error
    finally:
        consumer.close()
