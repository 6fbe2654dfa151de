"""Values instead of bytes: text, JSON, and the formats of a schema registry."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from servers.registry import StandInRegistry, running_registry
from tailrace.client import deserializers, serializers
from tailrace.client.errors import DeserializationError, RegistryError, SerializationError
from tailrace.client.log import Log
from tailrace.client.registry import Registry
from tailrace.errors import UsageError

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "country", "type": "string"}],
}
ORDER_WITH_NOTE = ORDER | {
    "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]
}
POINT = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Point",
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
}
_pools = itertools.count()


@pytest.fixture
def stand_in() -> Iterator[StandInRegistry]:
    with running_registry() as registry:
        yield registry


@pytest.fixture(params=["mock", "http"])
def registry(request: pytest.FixtureRequest, name: str) -> Registry:
    if request.param == "mock":
        return Registry(f"mock://{name}")
    stand_in: StandInRegistry = request.getfixturevalue("stand_in")
    return Registry(stand_in.url, max_retries=0)


def message_class(*fields: str) -> type[Any]:
    """A generated class with text fields, as protoc would make it; the second message
    of its file."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"order_{next(_pools)}.proto", package="shop", syntax="proto3"
    )
    file.message_type.add(name="Unused")
    message = file.message_type.add(name="Order")
    for number, field in enumerate(fields, 1):
        message.field.add(name=field, number=number, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_text_and_json_come_back_as_values(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    with log.producer(
        key_serializer=serializers.text, value_serializer=serializers.json
    ) as producer:
        producer.send(name, key="zwölf", value={"n": [1, None]})
        producer.send(name, key="gone", value=None)
    with log.consumer(
        f"{name}-g",
        [name],
        key_deserializer=deserializers.text,
        value_deserializer=deserializers.json,
    ) as consumer:
        first, second = itertools.islice(consumer, 2)
    assert (first.key, first.value) == ("zwölf", {"n": [1, None]})
    assert (second.key, second.value) == ("gone", None)
    values = log.read(name, value_deserializer=deserializers.json)
    assert [record.value for record in values] == [{"n": [1, None]}, None]


@pytest.mark.parametrize("form", ["avro", "json_schema", "protobuf"])
def test_registry_formats_carry_the_schema_id_and_come_back(
    log: Log, name: str, registry: Registry, form: str
) -> None:
    log.create_topic(name, partitions=1)
    value: Any
    if form == "avro":
        writing, reading, value = (
            registry.avro(ORDER),
            registry.avro(),
            {"id": 7, "country": "NL"},
        )
    elif form == "json_schema":
        writing, reading, value = registry.json_schema(POINT), registry.json_schema(), {"x": 3}
    else:
        kind = message_class("id", "country")
        writing, value = registry.protobuf(kind), kind(id="7", country="NL")
        reading = writing
    with log.producer(key_serializer=serializers.text, value_serializer=writing) as producer:
        producer.send(name, key="7", value=value)
        producer.send(name, key="7", value=None)
    raw = [record.value for record in log.read(name)]
    assert raw[0][:5] == b"\x00\x00\x00\x00\x01"
    assert raw[1] is None, "a tombstone has no schema"
    with log.consumer(partitions={(name, 0): 0}, value_deserializer=reading) as consumer:
        values = [record.value for record in itertools.islice(consumer, 2)]
    assert values == [value, None]


def test_a_transaction_takes_registry_formats_for_keys_and_values(
    log: Log, name: str, registry: Registry
) -> None:
    log.create_topic(name, partitions=1)
    form = registry.avro(ORDER)
    with (
        log.producer(
            transactional_id=name, key_serializer=registry.avro('"long"'), value_serializer=form
        ) as producer,
        producer.transaction(),
    ):
        producer.send(name, key=7, value={"id": 7, "country": "NL"})
    (record,) = log.read(name, key_deserializer=registry.avro(), value_deserializer=registry.avro())
    assert (record.key, record.value) == (7, {"id": 7, "country": "NL"})


def test_a_record_that_cannot_be_read_is_told_and_can_be_passed_by(log: Log, name: str) -> None:
    log.create_topic(name, partitions=1)
    with log.producer() as producer:
        for value in (b"1", b"not json", b"3"):
            producer.send(name, value=value)
    with log.consumer(f"{name}-g", [name], value_deserializer=deserializers.json) as consumer:
        values: list[Any] = []
        while not values:
            values += [record.value for record in consumer.poll(0.2)]
        assert values == [1], "what stands before it is handed out"
        for _ in range(2):
            with pytest.raises(DeserializationError, match="offset 1 cannot be read") as told:
                consumer.poll(1)
        bad = told.value.record
        assert bad is not None
        assert (bad.offset, bad.value) == (1, b"not json")
        assert consumer.position(name, 0) == 1
        consumer.seek(name, 0, bad.offset + 1)
        assert [record.value for record in itertools.islice(consumer, 1)] == [3]


@pytest.mark.parametrize("log", ["in process"], indirect=True)
class TestWithoutSockets:
    """What depends on the registry alone."""

    def test_our_bytes_are_those_of_confluents_serializers(
        self, log: Log, name: str, stand_in: StandInRegistry
    ) -> None:
        theirs = SchemaRegistryClient({"url": stand_in.url})
        context = SerializationContext(name, MessageField.VALUE)
        ours = Registry(stand_in.url).avro(ORDER)
        value = {"id": 7, "country": "NL"}
        written = ours.serialize(name, "value", value)
        assert written == AvroSerializer(theirs, json.dumps(ORDER))(value, context)
        assert AvroDeserializer(theirs)(written, context) == value

    def test_the_registry_is_asked_once_a_topic_and_once_a_schema(
        self, log: Log, name: str, stand_in: StandInRegistry
    ) -> None:
        for topic in ("a", "b"):
            log.create_topic(topic, partitions=1)
        with log.producer(value_serializer=Registry(stand_in.url).avro(ORDER)) as producer:
            for number in range(20):
                producer.send("ab"[number % 2], value={"id": number, "country": "NL"})
        assert set(stand_in.subjects) == {"a-value", "b-value"}
        assert len(stand_in.requests) == 2
        reading = Registry(stand_in.url).avro()
        assert len(list(log.read("a", value_deserializer=reading))) == 10
        assert len(stand_in.requests) == 3

    def test_a_reader_with_its_own_schema_gets_its_defaults(
        self, log: Log, name: str, registry: Registry
    ) -> None:
        written = registry.avro(ORDER).serialize(name, "value", {"id": 1, "country": "NL"})
        read = registry.avro(ORDER_WITH_NOTE).deserialize(name, "value", written)
        assert read == {"id": 1, "country": "NL", "note": ""}

    def test_a_value_that_does_not_fit_is_refused_before_it_is_sent(
        self, log: Log, name: str, registry: Registry
    ) -> None:
        log.create_topic(name, partitions=1)
        for form, value in (
            (registry.avro(ORDER), {"id": "seven"}),
            (registry.avro(ORDER, strict=True), {"id": 7, "country": "NL", "x": 1}),
            (registry.json_schema(POINT), {"x": "three"}),
            (registry.protobuf(message_class("id")), "not a message"),
        ):
            with (
                log.producer(value_serializer=form) as producer,
                pytest.raises(SerializationError, match="does not fit"),
            ):
                producer.send(name, value=value)
        assert list(log.read(name)) == []

    def test_bytes_without_or_with_an_unknown_schema_are_told(
        self, log: Log, name: str, registry: Registry
    ) -> None:
        form = registry.avro()
        with pytest.raises(DeserializationError, match="do not begin with the id"):
            form.deserialize(name, "value", b'{"id":1}')
        with pytest.raises(DeserializationError, match="schema 77 is not in the registry"):
            form.deserialize(name, "value", b"\x00\x00\x00\x00\x4d\x02")
        whole = registry.avro(ORDER).serialize(name, "value", {"id": 1, "country": "NL"})
        assert whole is not None
        with pytest.raises(DeserializationError, match="do not fit"):
            form.deserialize(name, "value", whole[:-2])

    def test_what_the_registry_refuses_is_told_with_a_way_out(
        self, log: Log, name: str, stand_in: StandInRegistry
    ) -> None:
        registry = Registry(stand_in.url, max_retries=0)
        with pytest.raises(RegistryError, match="refused") as missing:
            registry.avro(ORDER, register=False).serialize(name, "value", {"id": 1})
        assert missing.value.status == 404
        registry.avro(ORDER).serialize(name, "value", {"id": 1, "country": "NL"})
        stand_in.closed.add(f"{name}-value")
        with pytest.raises(RegistryError) as incompatible:
            registry.avro('"string"').serialize(name, "value", "x")
        assert incompatible.value.status == 409
        assert "compatible" in incompatible.value.hint
        stand_in.password = "secret"
        with pytest.raises(RegistryError) as refused:
            registry.avro('"int"').serialize(name, "value", 1)
        assert refused.value.status == 401
        known = Registry(stand_in.url, user="shop", password="secret")
        assert known.avro('"int"').serialize("other", "value", 1) is not None

    def test_a_registry_that_is_away_holds_the_reader_and_skips_nothing(
        self, log: Log, name: str, stand_in: StandInRegistry
    ) -> None:
        log.create_topic(name, partitions=1)
        with log.producer(value_serializer=Registry(stand_in.url).avro('"int"')) as producer:
            producer.send(name, value=5)
        away = Registry(stand_in.url, max_retries=0).avro()
        with log.consumer(partitions={(name, 0): 0}, value_deserializer=away) as consumer:
            stand_in.failing = 1
            with pytest.raises(RegistryError):
                next(iter(consumer))
            assert [record.value for record in itertools.islice(consumer, 1)] == [5]

    def test_subjects_may_be_named_by_the_record(
        self, log: Log, name: str, stand_in: StandInRegistry
    ) -> None:
        registry = Registry(stand_in.url)
        value = {"id": 1, "country": "NL"}
        registry.avro(ORDER, subject="record").serialize(name, "value", value)
        registry.avro(ORDER, subject="topic-record").serialize(name, "value", value)
        assert set(stand_in.subjects) == {"shop.Order", f"{name}-shop.Order"}

    def test_wrong_use_is_told(self, log: Log, name: str, registry: Registry) -> None:
        with pytest.raises(UsageError, match="needs a schema"):
            registry.avro().serialize(name, "value", 1)
        with pytest.raises(UsageError, match="class of a message"):
            registry.protobuf(dict)
        with pytest.raises(UsageError, match="no schema registry"):
            Registry("ftp://nowhere")
        with pytest.raises(UsageError, match="no schema registry"):
            Registry("http://localhost", ssl_ca_place="x")
