"""`tailrace topic read` and `write`: records out to the terminal, lines into the log."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import click
import orjson

from tailrace.cli import known_names
from tailrace.cli.output import bootstrap_address, json_option, log_option, print_json, said_option
from tailrace.errors import UsageError
from tailrace.security import librdkafka_settings

if TYPE_CHECKING:
    from tailrace.client.admin import Admin
    from tailrace.records.batch import Record

WAIT_SECONDS = 0.25


@click.command()
@click.argument("name", shell_complete=known_names.topics)
@click.option("--from", "start", default="earliest", show_default=True,
              metavar="earliest|latest|OFFSET|TIME", help="TIME as 2026-11-15T10:20:30 or ms since 1970 with `ms`.")  # fmt: skip
@click.option("--partition", "chosen", type=int, multiple=True, help="Only these partitions.")
@click.option("--max", "most", type=click.IntRange(1), default=None, metavar="N")
@click.option("--follow", is_flag=True, help="Wait for more until Ctrl-C.")
@click.option(
    "--format", "style", type=click.Choice(["json", "raw"]), default="json", show_default=True
)
@click.option("--uncommitted", is_flag=True, help="Also records of open and aborted transactions.")
@said_option  # its records are JSON unless another form is chosen
@log_option
def read(
    name: str,
    start: str,
    chosen: tuple[int, ...],
    most: int | None,
    follow: bool,
    style: str,
    uncommitted: bool,
    address: str | None,
) -> None:
    """Print the records of a topic, one a line.

    json gives offset, timestamp, key, value and headers; raw gives the values alone.
    """
    from tailrace.cli.topic import missing
    from tailrace.client.admin import Admin

    bootstrap = bootstrap_address(address)
    isolation = "read_uncommitted" if uncommitted else "read_committed"
    with Admin(bootstrap) as admin:
        found = admin.describe_topic(name)
        if found is None:
            raise missing(name)
        partitions = list(chosen) or list(range(len(found.leaders)))
        bad = [index for index in partitions if not 0 <= index < len(found.leaders)]
        if bad:
            raise UsageError(f"{name} has no partition {bad[0]}")
        positions = start_positions(admin, name, partitions, start)
        places = [(name, index) for index in partitions]
        ends = {index: end for (_, index), end in admin.end_offsets(places, isolation).items()}
    out = sys.stdout.buffer
    found_records = records(bootstrap, name, positions, ends, follow=follow, isolation=isolation)
    for count, (index, record) in enumerate(found_records, 1):
        if style == "json":
            out.write(orjson.dumps(as_document(name, index, record)) + b"\n")
        else:
            out.write((record.value or b"") + b"\n")
        if follow:
            out.flush()
        if most is not None and count >= most:
            break
    out.flush()


def start_positions(admin: Admin, name: str, partitions: list[int], start: str) -> dict[int, int]:
    """Where to begin in each partition, for what `--from` says."""
    places = [(name, index) for index in partitions]
    if start == "earliest":
        return {index: offset for (_, index), offset in admin.start_offsets(places).items()}
    ends = {index: offset for (_, index), offset in admin.end_offsets(places).items()}
    if start == "latest":
        return ends
    if start.isdigit():
        starts = admin.start_offsets(places)
        return {index: max(int(start), starts[name, index]) for index in partitions}
    from tailrace.client.reset import parse_time

    at = parse_time(start)
    found = admin.offsets_for_times(dict.fromkeys(places, at))
    return {
        index: found[name, index].offset if found[name, index].offset >= 0 else ends[index]
        for index in partitions
    }


def records(
    bootstrap: str,
    name: str,
    positions: dict[int, int],
    ends: dict[int, int],
    *,
    follow: bool,
    isolation: str,
) -> Iterator[tuple[int, Record]]:
    """Records of several partitions in turns; up to `ends`, or for ever with `follow`."""
    from tailrace.client.fetcher import Fetcher

    with Fetcher(bootstrap) as fetcher:
        live = dict(positions)
        while live:
            moved = False
            for index in list(live):
                if not follow and live[index] >= ends[index]:
                    del live[index]
                    continue
                end = None if follow else ends[index]
                wait = 0.0 if moved else WAIT_SECONDS / len(live)
                found = fetcher.fetch(
                    name, index, live[index], wait=wait, isolation=isolation, end=end
                )
                for record in found.records:
                    yield index, record
                moved = moved or found.following > live[index]
                live[index] = found.following


def as_document(name: str, partition: int, record: Record) -> dict[str, Any]:
    """A record for people and machines: JSON and text as they are, other bytes as base64."""
    from tailrace.records.decode import shown_name

    return {
        "topic": name,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _readable(record.key),
        "value": _readable(record.value),
        "headers": [[shown_name(key), _readable(value)] for key, value in record.headers],
    }


def _readable(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        if data[:1] in (b"{", b"[", b'"'):
            return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def has_keys(bootstrap: str, name: str, partitions: int) -> bool:
    """Whether the last records of the topic carry keys."""
    from tailrace.client.fetcher import Fetcher

    with Fetcher(bootstrap) as fetcher:
        for index in range(partitions):
            record = fetcher.read_last(name, index)
            if record is not None and record.key is not None:
                return True
    return False


@click.command()
@click.argument("name", shell_complete=known_names.topics)
@click.option("--key", default=None, help="The key of every record.")
@click.option("--key-separator", default=None, metavar="TEXT", help="Lines are KEY TEXT VALUE.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE")
@click.option("--partition", type=int, default=-1, help="Instead of the one the key gives.")
@click.option("--file", "source", type=click.File("rb"), default="-", help="Instead of stdin.")
@log_option
@json_option
def write(
    name: str,
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int,
    source: IO[bytes],
    address: str | None,
    as_json: bool,
) -> None:
    """Write every line of stdin, or of --file, as a record."""
    from confluent_kafka import KafkaError, Message, Producer

    from tailrace.cli.topic import pair
    from tailrace.errors import TailraceError

    problems: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            problems.append(str(error))

    producer = Producer(
        {
            **librdkafka_settings(bootstrap_address(address)),
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 5,
        }
    )
    given: list[tuple[str, str | bytes | None]] = [pair(one) for one in headers]
    separator = key_separator.encode() if key_separator else None
    count = 0
    for line in source:
        value = line.rstrip(b"\r\n")
        record_key = key.encode() if key is not None else None
        if separator is not None and separator in value:
            record_key, _, value = value.partition(separator)
        while True:
            try:
                producer.produce(
                    name,
                    value,
                    record_key,
                    partition=partition,
                    headers=given or None,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        count += 1
    left = producer.flush(60)
    if problems or left:
        raise TailraceError(
            f"{len(problems) + left} of {count} records were not written",
            detail=problems[0] if problems else "the log did not answer in time",
        )
    if as_json:
        print_json({"topic": name, "written": count})
    else:
        click.echo(f"wrote {count} records to {name}", err=True)
