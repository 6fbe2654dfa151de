"""What is offered, and how a client that asks for something else is answered."""

from __future__ import annotations

import struct
from importlib import import_module

from tailrace.broker import lazy
from tailrace.broker.embedded import BrokerThread
from tailrace.testing.wire_client import WireClient
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.messages.api_versions import ApiVersionsRequest

# What clients of every family need to produce, consume without a group and administer.
NEEDED = {
    ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 13), ApiKey.PRODUCE: (3, 13),
    ApiKey.FETCH: (4, 18), ApiKey.LIST_OFFSETS: (1, 11), ApiKey.INIT_PRODUCER_ID: (0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4), ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6), ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_RECORDS: (0, 2), ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2), ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
}  # fmt: skip


def test_every_version_of_api_versions_is_answered(talk: WireClient) -> None:
    for version in range(5):
        answer = talk.ask(ApiKey.API_VERSIONS, version, ApiVersionsRequest("test", "1"))
        assert answer.error_code == 0
        offered = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        for key, versions in NEEDED.items():
            assert offered[key] == versions, key


def test_everything_offered_can_be_decoded_here(talk: WireClient) -> None:
    answer = talk.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    for one in answer.api_keys:
        api = APIS[one.api_key]
        assert api.min_version <= one.min_version <= one.max_version <= api.max_version
    assert not {71, 72} & {one.api_key for one in answer.api_keys}


def test_a_version_to_come_is_answered_in_version_0_with_error_35(talk: WireClient) -> None:
    talk.send_bytes(struct.pack(">ihhih", 16, 18, 99, 7, 4) + b"test" + b"\x00\x00")
    frame = talk.read_frame()
    correlation_id, error, count = struct.unpack_from(">ihi", frame)
    assert (correlation_id, error, count) == (7, 35, 1)
    assert struct.unpack_from(">hhh", frame, 10) == (18, 0, 4)
    answer = talk.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1"))
    assert answer.error_code == 0


def test_a_client_without_a_proper_name_is_told(talk: WireClient) -> None:
    answer = talk.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("bad name!", "1"))
    assert answer.error_code == 42


def test_a_request_that_is_not_offered_closes_the_connection(broker: BrokerThread) -> None:
    for key, version in ((71, 0), (0, 99), (3, 77), (999, 0), (-1, 0)):
        with WireClient(broker.address) as client:
            client.send_bytes(struct.pack(">ihhih", 14, key, version, 1, 4) + b"test")
            assert client.closed_by_peer()


def test_the_table_of_lazy_requests_is_that_of_the_coordinators(broker: BrokerThread) -> None:
    coordination = broker.broker.coordination
    offered = {(route.api_key, route.minimum, route.maximum) for route in coordination.routes()}
    assert set(lazy.OFFERED) == offered
    assert broker.broker.features == lazy.FEATURES


def test_the_table_of_lazy_administration_is_that_of_its_handlers(broker: BrokerThread) -> None:
    for name, told in lazy.ADMINISTRATION.items():
        module = import_module(f"tailrace.broker.handlers.{name}")
        offered = {
            (route.api_key, route.minimum, route.maximum) for route in module.routes(broker.broker)
        }
        assert set(told) == offered
