"""Data that is not in memory is read beside the loop, and comes out the same."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tailrace.broker.cold import PROBE_STRIDE_BYTES, is_warm
from tailrace.broker.embedded import BrokerThread
from tailrace.testing.wire_client import WireClient, batch_of, values_of


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every range is found cold: what the kernel keeps or reads ahead is its own affair."""
    monkeypatch.setattr("tailrace.broker.handlers.fetch.is_warm", lambda found: False)


def test_cold_records_are_read_beside_the_loop(broker: BrokerThread, talk: WireClient) -> None:
    talk.create("t")
    values = [os.urandom(200_000) for _ in range(20)]
    for value in values:
        talk.produce("t", batch_of(value))
    found: list[bytes | None] = []
    while len(found) < len(values):
        found += values_of(talk.fetch("t", len(found)).records)
    assert found == values
    assert broker.broker.cold.reads_total > 0


def test_answers_behind_a_cold_read_keep_their_order(
    broker: BrokerThread, talk: WireClient
) -> None:
    from tailrace.wire.apis import ApiKey

    talk.create("cold")
    talk.create("warm")
    value = os.urandom(900_000)
    talk.produce("cold", batch_of(value))
    talk.say(ApiKey.FETCH, 12, talk.fetch_request("cold", 0))
    talk.say(ApiKey.PRODUCE, 9, talk.produce_request("warm", batch_of(b"x")))
    assert values_of(talk.hear().responses[0].partitions[0].records) == [value]
    assert talk.hear().responses[0].partition_responses[0].base_offset == 0


def test_a_reader_that_leaves_during_a_cold_read_leaves_no_file_open(
    broker: BrokerThread, talk: WireClient, connect: Callable[[str], WireClient]
) -> None:
    from tailrace.wire.apis import ApiKey

    talk.create("t")
    talk.produce("t", batch_of(os.urandom(900_000)))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with WireClient(broker.address) as reader:
            reader.say(ApiKey.FETCH, 12, talk.fetch_request("t", 0))
    for _ in range(100):
        talk.fetch("t", 0)
        if len(os.listdir("/proc/self/fd")) <= before + 2:
            break
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_a_range_is_warm_unless_the_kernel_would_have_to_wait(
    broker: BrokerThread, talk: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.create("t")
    talk.produce("t", batch_of(os.urandom(900_000)))
    with broker.broker.store.partition("t", 0).read(0, 1 << 20) as found:
        asked: list[int] = []

        def refuses_the_last(descriptor: int, into: object, position: int, flags: int) -> int:
            asked.append(position)
            if position == found.position + found.length - 1:
                raise BlockingIOError
            return 1

        monkeypatch.setattr(os, "preadv", refuses_the_last)
        assert not is_warm(found)
        assert asked[:2] == [found.position, found.position + PROBE_STRIDE_BYTES]
        monkeypatch.setattr(os, "preadv", lambda *_: 1)
        assert is_warm(found)
