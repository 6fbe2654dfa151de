"""Records over HTTP in the formats of a schema registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

import tailrace as tr
from tailrace import sources
from tailrace.client.log import Log
from tailrace.client.registry import Registry
from tailrace.client.schemas import Schemas
from tailrace.plain_http import HttpServer
from tailrace.registry.serve import RegistryServer, Settings
from tailrace.sources.edges import produce
from tailrace.sources.edges.figures import Figures

ORDER = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string", "int"], "default": None},
        {"name": "of", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "sizes", "type": {"type": "array", "items": "double"}},
        {"name": "raw", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "again", "type": ["null", "Kind"], "default": None},
        {"name": "places", "type": {"type": "map", "values": ["null", "Two"]}},
    ],
}  # fmt: skip
GOOD = {"id": 2**40, "note": {"int": 3}, "of": "B", "sizes": [1, 2.5], "raw": "\xff\0", "again": {"shop.Kind": "A"},
        "places": {"x": {"shop.Two": "ab"}, "y": None}}  # fmt: skip
PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; string note = 2; google.protobuf.Timestamp at = 3; repeated Line lines = 4; }
message Line { string sku = 1; }"""
TYPES = {kind: name for name, kind in produce.REGISTERED.items()}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as opened:
        yield opened


@pytest.fixture
def url(log: Log) -> Iterator[str]:
    with RegistryServer(log, Settings("127.0.0.1:0")) as server:
        server.start()
        yield f"http://{server.address}"


@pytest.fixture
def edge(log: Log, url: str) -> Iterator[httpx.Client]:
    log.create_topic("orders", partitions=1)
    declared = sources.HTTP("in", "127.0.0.1:0", ["orders"], registry=url)
    work = produce.Producing(declared, log, Figures())
    server = HttpServer("127.0.0.1", 0, work, refuse=produce.refuse, body_limit_bytes=1 << 20)
    work.start()
    server.start()
    with httpx.Client(base_url=f"http://{server.address}", timeout=60) as client:
        yield client
    server.close()
    work.close()


def post(edge: httpx.Client, kind: str, *records: Any, **body: Any) -> dict[str, Any]:
    answer = edge.post(
        "/topics/orders",
        content=json.dumps({"records": records, **body}),
        headers={"content-type": TYPES[kind]},
    )
    found: dict[str, Any] = answer.json()
    assert answer.status_code == int(str(found.get("error_code", 200))[:3]), found
    return found


def test_avro_is_read_by_confluents_deserializer(edge: httpx.Client, log: Log, url: str) -> None:
    found = post(
        edge, "AVRO", {"key": {"string": "k"}, "value": GOOD}, {"value": None},
        value_schema=json.dumps(ORDER), key_schema='["null", "string"]',
    )  # fmt: skip
    assert found["value_schema_id"] != found["key_schema_id"]
    again = post(edge, "AVRO", {"value": GOOD}, value_schema_id=found["value_schema_id"])
    assert again["value_schema_id"] == found["value_schema_id"]
    assert sorted(Schemas(url).subjects()) == ["orders-key", "orders-value"]
    registry = Registry(url)
    avro = registry.avro()
    read = list(log.read("orders", key_deserializer=avro, value_deserializer=avro))
    registry.client.close()
    raw = list(log.read("orders"))
    assert raw[1].value is None
    assert raw[0].value == raw[2].value
    assert read[0].key == "k"
    assert read[0].value == {
        "id": 2**40, "note": 3, "of": "B", "sizes": [1.0, 2.5], "raw": b"\xff\0", "again": "A",
        "places": {"x": b"ab", "y": None},
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"id": "1"}, {"id": 2**63}, {"id": True}, {"note": "plain"}, {"note": {"float": 1}}, {"of": "C"},
     {"sizes": 1}, {"sizes": ["x"]}, {"raw": "abc"}, {"raw": "\u0100a"}, {"colour": 1}, {"places": []}],
)  # fmt: skip
def test_what_does_not_fit_its_avro_schema_writes_nothing(edge: httpx.Client, log: Log, change: dict[str, Any]) -> None:  # fmt: skip
    found = post(edge, "AVRO", {"value": GOOD}, {"value": {**GOOD, **change}}, value_schema=json.dumps(ORDER))  # fmt: skip
    assert found["error_code"] == 42203
    assert list(log.read("orders")) == []


def test_json_is_judged_by_its_schema(edge: httpx.Client, log: Log) -> None:
    schema = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})  # fmt: skip
    found = post(edge, "JSON", {"value": {"id": 1}}, value_schema=schema)
    (record,) = log.read("orders")
    number = found["value_schema_id"].to_bytes(4, "big")
    assert record.value == b"\0" + number + b'{"id":1}'
    refused = post(edge, "JSON", {"value": {"id": "x"}}, value_schema=schema)
    assert refused["error_code"] == 42203
    assert "$.id" in refused["message"]


def test_protobuf_is_written_from_its_json(edge: httpx.Client, log: Log) -> None:
    value = {"id": "7", "note": "n", "at": "2026-01-02T03:04:05Z", "lines": [{"sku": "s"}]}
    found = post(edge, "PROTOBUF", {"value": value}, value_schema=PROTO)
    (record,) = log.read("orders")
    number = found["value_schema_id"].to_bytes(4, "big")
    at = Timestamp(seconds=int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp())).SerializeToString()  # fmt: skip
    data = b"\x08\x07\x12\x01n\x1a" + bytes([len(at)]) + at + b"\x22\x03\x0a\x01s"
    assert record.value == b"\0" + number + b"\0" + data
    for wrong in ({"id": "x"}, {"colour": 1}, [], 3):
        refused = post(edge, "PROTOBUF", {"value": wrong}, value_schema=PROTO)
        assert refused["error_code"] == 42203


def test_a_schema_that_refers_to_another_is_followed(edge: httpx.Client, log: Log, url: str) -> None:  # fmt: skip
    schemas = Schemas(url)
    money = '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "int"}]}'
    schemas.register("money", money)
    price = '{"type": "record", "name": "Price", "fields": [{"name": "of", "type": "Money"}]}'
    refers = [{"name": "Money", "subject": "money", "version": 1}]
    number = schemas.register("price", price, references=refers)
    post(edge, "AVRO", {"value": {"of": {"cents": 3}}}, value_schema_id=number)
    (record,) = log.read("orders")
    assert record.value == b"\0" + number.to_bytes(4, "big") + b"\x06"


def test_a_schema_that_is_missing_or_none_is_told(edge: httpx.Client, log: Log) -> None:
    for kind, records, body, code in (
        ("AVRO", [{"value": 1}], {}, 42202),
        ("AVRO", [{"value": 1, "key": 2}], {"value_schema": '"int"'}, 42201),
        ("AVRO", [{"value": 1}], {"value_schema": "{"}, 42205),
        ("AVRO", [{"value": 1}], {"value_schema": 5}, 42205),
        ("AVRO", [{"value": 1}], {"value_schema_id": 999}, 42205),
        ("AVRO", [{"value": 1}], {"value_schema_id": "1"}, 42203),
        ("PROTOBUF", [{"value": {}}], {"value_schema": "message {"}, 42205),
        ("PROTOBUF", [{"value": {}}], {"value_schema": 'syntax = "proto3";'}, 42205),
        ("JSON", [{"value": 1}], {"value_schema": '{"type": 5}'}, 42205),
    ):
        found = post(edge, kind, *records, **body)
        assert found["error_code"] in (code, 42205), (kind, body, found)
    assert list(log.read("orders")) == []


def test_without_a_registry_its_formats_are_refused(log: Log) -> None:
    work = produce.Producing(sources.HTTP("in", "127.0.0.1:0", ["orders"]), log, Figures())
    server = HttpServer("127.0.0.1", 0, work, refuse=produce.refuse)
    work.start()
    server.start()
    try:
        with httpx.Client(base_url=f"http://{server.address}") as client:
            assert post(client, "AVRO", {"value": 1}, value_schema='"int"')["error_code"] == 415
    finally:
        server.close()
        work.close()
