"""Batches are looked into before they are kept, and looking never holds others up."""

from __future__ import annotations

import gzip
import struct
import threading
from collections.abc import Callable

import cramjam
import pytest

from tailrace.broker.embedded import BrokerThread
from tailrace.log.admission import LEAST_DECOMPRESSED_BYTES
from tailrace.records.batch import Record, encode_batch
from tailrace.records.encode import assemble, encode_columns
from tailrace.records.header import HEADER_BYTES, read_header
from tailrace.testing.wire_client import WireClient, values_of
from tailrace.wire.apis import ApiKey
from tailrace.wire.message import write_varint
from tailrace.wire.messages import list_offsets as listing

CORRUPT, TOO_LARGE, INVALID_TIMESTAMP, INVALID = 2, 10, 32, 87
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
TIME = 1_700_000_000_000


def sealed(block: bytes, count: int, codec: str = "none") -> bytearray:
    """A batch whose header and checksum are right, whatever is in it."""
    return assemble(
        block,
        count=count,
        last_offset_delta=count - 1,
        attributes=CODECS[codec],
        base_timestamp=TIME,
        max_timestamp=TIME,
    )


def good(*values: bytes, compression: str = "none") -> bytearray:
    return encode_columns([b"k"] * len(values), list(values), TIME, compression=compression)


ONE = bytes(good(b"value")[HEADER_BYTES:])
POISON = {
    "gzip that is no gzip": sealed(b"this is no gzip", 1, "gzip"),
    "zstd that is no zstd": sealed(b"this is no zstd", 1, "zstd"),
    "lz4 that is no lz4": sealed(b"this is no lz4", 1, "lz4"),
    "snappy that is no snappy": sealed(b"\xff\xff\xff\xff\xff", 1, "snappy"),
    "garbage records": sealed(b"\x99" * 40, 1),
    "garbage in gzip": sealed(gzip.compress(b"\x99" * 40), 1, "gzip"),
    "count 3, one record": sealed(ONE, 3),
    "count 3, one record, gzip": sealed(gzip.compress(ONE), 3, "gzip"),
    "an empty block": sealed(b"", 1),
    "an empty block, gzip": sealed(gzip.compress(b""), 1, "gzip"),
    "more than one record": sealed(ONE + ONE, 1),
    "a key longer than its record": sealed(ONE[:4] + b"\x40" + ONE[5:], 1),
    "a cut record": sealed(ONE[:-3], 1),
    "a header that is cut": sealed(ONE[:-1] + b"\x02", 1),
    "an offset that does not count up": sealed(ONE[:3] + b"\x0e" + ONE[4:], 1),
    "cut gzip": sealed(gzip.compress(ONE * 100)[:-9], 1, "gzip"),
}


@pytest.mark.parametrize("what", POISON)
@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_batch_that_nobody_can_read_is_not_taken(
    talk: WireClient, what: str, policy: str
) -> None:
    talk.create("t", cleanup_policy=policy)
    answer = talk.produce("t", POISON[what])
    assert answer.error_code in (CORRUPT, INVALID), what
    assert talk.produce("t", good(b"next")).error_code == 0
    assert values_of(talk.fetch("t", 0).records) == [b"next"]


@pytest.mark.parametrize("codec", CODECS)
def test_what_can_be_read_is_taken_as_it_is(talk: WireClient, codec: str) -> None:
    talk.create("t")
    values = [b"%d" % number for number in range(3000)]  # more than the loop looks at itself
    for some in (values[:1], values[:100], values):
        sent = good(*some, compression=codec)
        answer = talk.produce("t", sent)
        assert answer.error_code == 0
        kept = talk.fetch("t", answer.base_offset).records
        assert bytes(kept)[16:] == bytes(sent)[16:]


def test_a_topic_may_take_compressed_batches_unread(talk: WireClient) -> None:
    talk.create("t", tailrace_validate="compacted")
    assert talk.produce("t", POISON["gzip that is no gzip"]).error_code == 0
    assert talk.produce("t", POISON["garbage records"]).error_code == INVALID


def bomb(size: int, codec: str) -> bytearray:
    """Many records of seven bytes in few kilobytes."""
    block = b"\x0c\x00\x00\x00\x01\x01\x00" * (size // 7)
    packed = gzip.compress(block, 1) if codec == "gzip" else bytes(cramjam.zstd.compress(block, 1))
    return sealed(packed, size // 7, codec)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize(
    "setting", [{"cleanup_policy": "compact"}, {"compression_type": "lz4"}, {}]
)
def test_a_bomb_is_refused_beside_the_loop(
    broker: BrokerThread, talk: WireClient, codec: str, setting: dict[str, str]
) -> None:
    talk.create("t", **setting)
    batch = bomb(LEAST_DECOMPRESSED_BYTES + 7_000_000, codec)
    assert len(batch) < 200_000
    before = broker.broker.inspector.inspected_total
    assert talk.produce("t", batch).error_code == TOO_LARGE
    assert broker.broker.inspector.inspected_total == before + 1


def test_others_are_served_while_a_large_batch_is_looked_at(
    broker: BrokerThread, talk: WireClient, connect: Callable[[str], WireClient]
) -> None:
    talk.create("witness")
    talk.create("t", cleanup_policy="compact")
    values = [b"v" * (number % 7) for number in range(400_000)]
    batch = encode_columns([b"k"] * len(values), values, TIME, compression="zstd")
    witness = connect(broker.address)
    answered = threading.Event()

    def produce() -> None:
        assert talk.produce("t", batch).error_code == 0
        answered.set()

    thread = threading.Thread(target=produce)
    thread.start()
    served = 0
    while not answered.is_set():
        witness.fetch("witness", 0)
        served += 1
    thread.join()
    assert served > 20  # on the loop it would be one or two


def test_requests_behind_a_held_one_keep_their_order(talk: WireClient) -> None:
    talk.create("t")
    large = good(*[b"a%d" % number for number in range(3000)], compression="gzip")
    for batch in (
        good(b"first"),
        large,
        good(b"last"),
        large,
        POISON["garbage in gzip"],
        good(b"end"),
    ):
        talk.say(ApiKey.PRODUCE, 9, talk.produce_request("t", batch))
    answers = [talk.hear().responses[0].partition_responses[0] for _ in range(6)]
    assert [one.error_code for one in answers] == [0, 0, 0, 0, INVALID, 0]
    assert [one.base_offset for one in answers] == [0, 1, 3001, 3002, -1, 6002]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize(
    ("base", "difference"),
    [
        (2**62, 2**62),  # more than 64 bits together
        (2**63 - 1, 0),
        (-(2**63), -1),
        (-(2**62), -(2**63)),
        (-(2**63), 0),
        (TIME, 2**63 - 1),
        (TIME, -(2**63)),
    ],
)
def test_times_that_do_not_add_up_are_refused(
    talk: WireClient, base: int, difference: int, codec: str
) -> None:
    talk.create("t")
    record = bytearray(b"\x00")
    write_varint(record, (difference << 1 ^ difference >> 63) & (2**64 - 1))
    record += b"\x00\x02k\x02v\x00"
    block = bytes([len(record) << 1]) + record
    if codec == "zstd":
        block = bytes(cramjam.zstd.compress(block))
    batch = assemble(
        block, count=1, last_offset_delta=0, attributes=CODECS[codec],
        base_timestamp=base, max_timestamp=TIME,
    )  # fmt: skip
    assert talk.produce("t", batch).error_code in (INVALID, INVALID_TIMESTAMP)
    assert talk.produce("t", good(b"next")).base_offset == 0


def test_the_header_s_largest_time_is_the_records(talk: WireClient) -> None:
    """A search by time trusts it: one that lies made it read the whole log."""
    talk.create("t")
    batch = encode_batch([Record(0, TIME + at, None, b"v") for at in (0, 5, 3)])
    batch[35:43] = struct.pack(">q", TIME + 10**9)
    lying = assemble(
        bytes(batch[HEADER_BYTES:]), count=3, last_offset_delta=2, attributes=0,
        base_timestamp=TIME, max_timestamp=TIME + 10**9,
    )  # fmt: skip
    assert talk.produce("t", lying).error_code == 0
    assert read_header(bytes(talk.fetch("t", 0).records)).max_timestamp == TIME + 5
    question = listing.ListOffsetsPartition(0, -1, TIME + 6)
    answer = talk.ask(
        ApiKey.LIST_OFFSETS,
        7,
        listing.ListOffsetsRequest(-1, 0, [listing.ListOffsetsTopic("t", [question])]),
    )
    assert answer.topics[0].partitions[0].offset == -1
