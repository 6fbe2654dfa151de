"""Values to bytes and back, as Kafka Connect's converters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from registry.conftest import Asking as RegistryAsking
from tailrace.connectors import converters
from tailrace.connectors.config import Config, Setting
from tailrace.connectors.errors import ConnectorError, ConnectorSettingError
from tailrace.connectors.names import long_name
from tailrace.connectors.offsets import StoredOffsets
from tailrace.connectors.transforms import place
from tailrace.registry.serve import RegistryServer, Settings


@pytest.mark.parametrize(
    ("name", "settings", "value", "data"),
    [
        ("string", {}, "grün", "grün".encode()),
        ("org.apache.kafka.connect.storage.StringConverter", {}, "x", b"x"),
        ("string", {"converter.encoding": "latin-1"}, "é", b"\xe9"),
        ("bytes", {}, b"\x00\xff", b"\x00\xff"),
        ("json", {"schemas.enable": "false"}, {"a": [1, 2.5, None]}, b'{"a":[1,2.5,null]}'),
        ("JsonConverter", {"schemas.enable": "false"}, None, None),
        ("json", {}, "line", b'{"schema":{"type":"string","optional":false},"payload":"line"}'),
        ("json", {}, b"\x01", b'{"schema":{"type":"bytes","optional":false},"payload":"AQ=="}'),
        ("integer", {}, -2, b"\xff\xff\xff\xfe"),
        ("long", {}, 1, b"\x00\x00\x00\x00\x00\x00\x00\x01"),
        ("short", {}, 1, b"\x00\x01"),
        ("double", {}, 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00"),
        ("boolean", {}, True, b"\x01"),
        ("string", {}, None, None),
    ],
)
def test_both_ways(name: str, settings: dict[str, str], value: Any, data: bytes | None) -> None:
    made = converters.make(name, settings, "value")
    assert made.to_bytes("t", None, value) == data
    assert made.from_bytes("t", data)[1] == value


def test_json_with_the_schema_of_a_record() -> None:
    schema = {"type": "struct", "optional": False, "fields": [{"field": "raw", "type": "bytes", "optional": False}, {"field": "n", "type": "int32", "optional": True}]}  # fmt: skip
    made = converters.make("json", {}, "value")
    data = made.to_bytes("t", schema, {"raw": b"\x01", "n": None})
    assert orjson.loads(data or b"") == {"schema": schema, "payload": {"raw": "AQ==", "n": None}}
    assert made.from_bytes("t", data) == (schema, {"raw": b"\x01", "n": None})
    assert made.to_bytes("t", None, {"a": 1}) == b'{"schema":null,"payload":{"a":1}}'


@pytest.mark.parametrize(
    ("name", "settings", "data"),
    [("json", {}, b"{bad"), ("json", {}, b'{"a":1}'), ("json", {}, b'{"schema":{"type":"bytes"},"payload":3}'),
     ("integer", {}, b"123"), ("string", {}, b"\xff")],
)  # fmt: skip
def test_bytes_that_do_not_fit_are_errors(name: str, settings: dict[str, str], data: bytes) -> None:
    with pytest.raises(ConnectorError):
        converters.make(name, settings, "value").from_bytes("t", data)


def test_names() -> None:
    assert long_name("string") == long_name("StringConverter") == "org.apache.kafka.connect.storage.StringConverter"  # fmt: skip
    assert long_name("nope") is None
    assert long_name("mine:Converter") == "mine:Converter"
    with pytest.raises(ConnectorSettingError):
        converters.make("nope", {}, "value")
    with pytest.raises(ConnectorSettingError, match="registry"):
        converters.make("avro", {}, "value")


def test_where_a_transform_is() -> None:
    assert place("a.b:c") == place("a.b.c") == ("a.b", "c")
    assert place("org.apache.kafka.connect.transforms.InsertField$Value") is None
    assert place("alone") is None


def test_whose_converter_counts() -> None:
    chosen = converters.chosen(
        {"value.converter": "json", "value.converter.schemas.enable": "true"},
        {"value.converter": "string"},
        {"key.converter": "bytes", "value.converter": "long", "value.converter.x": "y"},
    )
    assert chosen["value"] == ("json", {"schemas.enable": "true"})
    assert chosen["key"] == ("bytes", {})
    assert converters.chosen({}, {"value.converter": "string"}, {})["value"] == ("string", {})
    assert converters.chosen({}, {}, {})["value"] == ("json", {"schemas.enable": "false"})


def test_offsets_of_one_partition_have_one_key_whoever_wrote_it() -> None:
    stored = StoredOffsets("c")
    stored.apply(b'["c",{"b":1,"a":2}]', b'{"n":1}')  # Java keeps another order
    assert stored({"a": 2, "b": 1}) == {"n": 1}
    [(partition, _)] = stored.listed()
    assert stored.key(orjson.dumps(partition)) == b'["c",{"b":1,"a":2}]'
    stored.apply(b'["other",{"a":1}]', b'{"n":1}')
    stored.apply(b"odd", b"odd")
    stored.apply(b'["c",{"b":1,"a":2}]', None)
    assert stored.listed() == []


def test_settings_say_what_is_wrong() -> None:
    config = Config(
        Setting("n", int, required=True, least=1),
        Setting("flag", bool, default=False),
        Setting("list", list, default=[]),
        Setting("key", secret=True, check=lambda value: "is weak"),
    )
    values = config.look({"n": "x", "flag": "maybe", "list": "a, b", "key": "hush"})
    errors = [text for one in values for text in one.errors]
    assert errors == [
        "Invalid value x for configuration n: Not a number of type INT",
        "Invalid value null for configuration n: Value must be non-null",
        "Invalid value maybe for configuration flag: Expected value to be either true or false",
        "Invalid value [hidden] for configuration key: is weak",
    ]
    typed = config.typed({"n": "2", "list": "a, b", "own": "z"})
    assert typed == {"n": 2, "flag": False, "list": ["a", "b"], "key": None, "own": "z"}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with tr.open(tmp_path / "log") as log, RegistryServer(log, Settings("127.0.0.1:0")) as server:
        server.start()
        yield f"http://{server.address}"


ORDERS = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; import "money.proto";
enum State { NEW = 0; PAID = 1; }
message Other { string x = 1; }
message Order {
  int64 id = 1; State state = 2; repeated Line lines = 3; map<string, int32> counts = 4;
  optional string note = 5; bytes raw = 6; google.protobuf.Timestamp at = 7; Money total = 8;
  message Line { string name = 1; double price = 2; }
}"""


def test_protobuf_through_a_registry(url: str) -> None:
    """Confluent's own serializer and ours read each other, nested messages and imports included."""
    ask = RegistryAsking(url)
    money = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    ask.register("money", money, schemaType="PROTOBUF")
    reference = {"name": "money.proto", "subject": "money", "version": 1}
    number = ask.register("t-value", ORDERS, schemaType="PROTOBUF", references=[reference])
    made = converters.make(
        "protobuf", {"schema.registry.url": url, "message": "shop.Order"}, "value"
    )
    order = {
        "id": 1 << 60, "state": "PAID", "lines": [{"name": "a", "price": 1.5}], "counts": {"x": 2},
        "note": None, "raw": b"\x00\xff", "at": "2026-11-19T00:00:00Z", "total": {"cents": 5},
    }  # fmt: skip
    data = made.to_bytes("t", None, order)
    assert data is not None
    assert (
        data[:7] == b"\0" + number.to_bytes(4, "big") + b"\x02\x02"
    )  # one index, the second message
    assert made.from_bytes("t", data)[1] == order
    line = converters.make(
        "protobuf", {"schema.registry.url": url, "message": "Order.Line"}, "value"
    )
    inner = line.to_bytes("t", None, {"name": "b", "price": 2.0})
    assert inner is not None
    assert inner[5:8] == b"\x04\x02\x00"
    assert made.from_bytes("t", inner)[1] == {"name": "b", "price": 2.0}
    for wrong in ({"id": "x"}, {"what": 1}, 5):
        with pytest.raises(ConnectorError):
            made.to_bytes("t", None, wrong)
    for bad in (b"", b"\0\0\0", data[:8], b"\x01" + data[1:], data[:5] + b"\x02\x7e" + data[7:]):
        with pytest.raises(ConnectorError):
            made.from_bytes("t", bad)
    ask.client.close()


def test_avro_through_a_registry(url: str) -> None:
    """Written with the newest schema of the subject, read with the writer's."""
    ask = RegistryAsking(url)
    schema = '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}'
    ask.register("t-value", schema)
    made = converters.make("avro", {"schema.registry.url": url}, "value")
    data = made.to_bytes("t", None, {"n": 7})
    assert data is not None
    assert data[:1] == b"\x00"
    assert made.from_bytes("t", data)[1] == {"n": 7}
    with pytest.raises(ConnectorError, match="no schema is registered"):
        made.to_bytes("other", None, {"n": 7})
    ask.client.close()
    assert isinstance(made, converters.Registered)
    made.close()
