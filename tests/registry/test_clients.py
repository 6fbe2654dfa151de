"""Confluent's client and serializers for Python, as they are."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

_numbers = itertools.count()
VALUE = SerializationContext("orders", MessageField.VALUE)


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url, "max.retries": 0}) as made:
        yield made


def message_class() -> type[Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"order_{next(_numbers)}.proto", package="shop", syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )  # fmt: skip
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=9, label=1)
    message.field.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_the_client_does_everything_it_has_a_call_for(client: SchemaRegistryClient) -> None:
    schema = Schema('{"type":"record","name":"R","fields":[]}', "AVRO")
    number = client.register_schema("s", schema)
    assert client.get_schema(number).schema_str == schema.schema_str
    assert client.get_subjects() == ["s"]
    assert client.get_versions("s") == [1]
    assert client.lookup_schema("s", schema).version == 1
    assert client.get_latest_version("s").schema_id == number
    assert client.get_version("s", 1).schema_id == number
    assert client.test_compatibility("s", schema)
    client.set_compatibility("s", "FULL")
    assert client.get_compatibility("s") == "FULL"
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("s", Schema('"int"', "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    assert client.delete_version("s", 1) == 1
    assert client.delete_subject("s", permanent=True) == [1]


def test_avro_goes_there_and_back(client: SchemaRegistryClient) -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    written = AvroSerializer(client, json.dumps(schema))({"id": 7}, VALUE)
    assert AvroDeserializer(client)(written, VALUE) == {"id": 7}
    assert client.get_subjects() == ["orders-value"]


def test_json_schema_goes_there_and_back(client: SchemaRegistryClient) -> None:
    schema = json.dumps(
        {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    )
    written = JSONSerializer(schema, client)({"id": 7}, VALUE)
    read = JSONDeserializer(None, schema_registry_client=client)
    assert read(written, VALUE) == {"id": 7}


def test_protobuf_goes_there_and_back_with_its_imports(client: SchemaRegistryClient) -> None:
    kind = message_class()
    order = kind(id="7", at={"seconds": 5})
    written = ProtobufSerializer(kind, client)(order, VALUE)
    read = ProtobufDeserializer(kind, schema_registry_client=client)
    assert read(written, VALUE) == order
    assert "orders-value" in client.get_subjects()
