"""Topics whose columns a registry tells, and outputs that must fit their subjects."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

import tailrace as tr
from registry.conftest import Asking
from tailrace.client.errors import RegistryError
from tailrace.client.registry import Registry
from tailrace.client.schemas import Schemas
from tailrace.config import RegistrySettings
from tailrace.pipelines.declare import Topic
from tailrace.pipelines.errors import DeclarationError
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.decode import decode, decode_whole
from tailrace.pipelines.reading.forms import Piece, form_records
from tailrace.pipelines.reading.reader import Records
from tailrace.pipelines.reading.registered import (
    for_views,
    json_columns,
    look_again,
    registered,
    wait_for_views,
)
from tailrace.pipelines.streams.inputs import _topic
from tailrace.project.check import Checked, check
from tailrace.project.load import load
from tailrace.records.decode_columns import RecordColumns
from tailrace.telemetry.part import Part

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "share", "type": "double"},
        {"name": "raw", "type": "bytes"},
    ],
}  # fmt: skip
ROW = {
    "id": 7,
    "amount": Decimal("9.90"),
    "at": datetime(2026, 11, 19, 5, tzinfo=UTC),
    "share": float("inf"),
    "raw": b"\xff",
}
JSON = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["string", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"$ref": "#/definitions/place"},
    },
    "definitions": {"place": {"type": "object", "properties": {"x": {"type": "number"}}}},
}


def written(schema: dict[str, Any], number: int, row: dict[str, Any]) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), row)
    return b"\0" + number.to_bytes(4, "big") + data.getvalue()


def records(*values: bytes | None) -> Records:
    count = len(values)
    return Records("orders", 0, list(range(count)), [b"k"] * count, list(values), [0] * count, [])


@pytest.fixture
def schemas(url: str) -> Schemas:
    return Schemas(url)


def test_a_declaration_asks_nobody() -> None:
    subject = Schemas("http://127.0.0.1:1")["orders-value"]
    topic = tr.topic("orders", schema=subject, key="id")
    assert (topic.schema, topic.tabular) == (None, False)
    assert "hidden" not in repr(
        tr.topic("o", schema=Schemas("http://127.0.0.1:1", user="u", password="hidden")["o"])
    )
    with pytest.raises(DeclarationError, match="says the format"):
        tr.topic("orders", schema=subject, format="avro")
    with pytest.raises(RegistryError, match="did not answer"):
        registered(topic)


def test_views_read_avro_by_the_subject_of_the_topic(ask: Asking, schemas: Schemas) -> None:
    number = ask.register("orders-value", json.dumps(AVRO))
    chosen = RegistrySettings(url=schemas.url)
    (named,) = for_views([tr.topic("orders", schema=schemas["orders-value"])], RegistrySettings())
    (found,) = for_views([tr.topic("orders")], chosen)
    assert topic_table(named) == topic_table(found)
    table = topic_table(found)
    assert dict(zip(table.schema.names, map(str, table.schema.types), strict=True)) == {
        "id": "int64",
        "amount": "decimal128(9, 2)",
        "at": "timestamp[us, tz=UTC]",
        "share": "double",
        "raw": "binary",
    }
    older = {**AVRO, "fields": AVRO["fields"][:3]}  # type: ignore[index]
    ask("PUT", "/config/orders-value", {"compatibility": "NONE"})
    other = ask.register("orders-value", json.dumps(older))
    good = written(AVRO, number, ROW)
    values = (good, b"no avro", None, written(older, other, ROW), b"\0\0\0\0\x63\0")
    decoded = decode(table, records(*values), 1, envelope=False)
    assert decoded.rows.drop_columns(["__shard"]).to_pylist() == [ROW]
    assert [one.offset for one in decoded.dead] == [1, 3, 4]
    assert [one.value for one in decoded.dead] == [values[1], values[3], values[4]]
    assert "magic byte" in decoded.dead[0].reason
    assert "99" in decoded.dead[2].reason


def test_a_registry_that_is_away_gives_no_record_up(ask: Asking, schemas: Schemas) -> None:
    ask.register("orders-value", json.dumps(AVRO))
    topic = registered(tr.topic("orders", schema=schemas["orders-value"]))
    table = topic_table(topic)
    gone = tuple((name, "http://127.0.0.1:1" if name == "registry" else one) for name, one in table.wire)  # fmt: skip
    with pytest.raises(RegistryError):
        decode(replace(table, wire=gone), records(written(AVRO, 1, ROW)), 1, envelope=False)


def test_views_read_json_behind_the_id_of_its_schema(ask: Asking, schemas: Schemas) -> None:
    ask.register("orders-value", json.dumps(JSON), schemaType="JSON")
    topic = registered(tr.topic("orders", schema=schemas["orders-value"], key="id"))
    table = topic_table(topic)
    row = {"id": 1, "name": None, "at": "2026-11-19T05:00:00Z", "tags": ["a"], "place": {"x": 1.5}}
    value = b"\0\0\0\0\1" + json.dumps(row).encode()
    decoded = decode(table, records(value), 1, envelope=False)
    (found,) = decoded.rows.to_pylist()
    assert (found["id"], found["tags"], found["place"]) == (1, ["a"], {"x": 1.5})
    columns = RecordColumns(
        np.array([0]), np.array([0]), pa.array([b"k"]), pa.array([value], pa.binary()), None
    )
    assert decode_whole(table, columns, 0, envelope=False) is None
    options = {"form": "json", "wire": "confluent", "columns": '[["id", "BIGINT"]]'}
    table, bad = form_records(Piece("orders", 0, columns), options)
    assert (table["id"].to_pylist(), bad) == ([1], [])


def test_a_stream_takes_the_columns_of_its_subject(ask: Asking, schemas: Schemas) -> None:
    ask.register("orders-value", json.dumps(AVRO))
    options = _topic(tr.topic("orders", schema=schemas["orders-value"]))
    assert (options["form"], options["wire"]) == ("avro", "confluent")
    assert ["id", "BIGINT"] in json.loads(options["columns"])


def test_a_subject_without_columns_is_refused(ask: Asking, schemas: Schemas) -> None:
    with pytest.raises(DeclarationError, match="has no schema"):
        registered(tr.topic("orders", schema=schemas["orders-value"]))
    ask.register("orders-value", '"string"')
    with pytest.raises(DeclarationError, match="gives topic"):
        registered(tr.topic("orders", schema=schemas["orders-value"]))
    ask.register("keyed-value", json.dumps(AVRO))
    with pytest.raises(DeclarationError, match="no column 'country'"):
        registered(tr.topic("keyed", schema=schemas["keyed-value"], key="country"))
    for text in ("[]", "{}", '{"properties": {"a": {}}}', '{"properties": {"a": {"$ref": "#"}}}'):
        with pytest.raises(ValueError):
            json_columns(text)


def test_the_client_of_producers_names_subjects_too(url: str) -> None:
    registry = Registry(url, user="u", password="p")
    subject = registry["orders-value"]
    assert (subject.name, subject.schemas.url) == ("orders-value", url)
    assert subject.schemas.address == f"http://u:p@{url.removeprefix('http://')}"
    with registry.client:  # closes it, in every version
        pass


PIPELINES = """
import tailrace as tr

orders = tr.topic("orders")
per_country = tr.view("per_country", "SELECT country, count(*) AS orders FROM orders GROUP BY country")
"""
ORDERS = json.dumps(
    {"type": "object", "properties": {"id": {"type": "integer"}, "country": {"type": "string"}}}
)


def checked(directory: Path) -> dict[str, Checked]:
    return {one.what: one for one in check(load(directory), ask=True)}


@pytest.fixture
def project(tmp_path: Path, url: str) -> Path:
    directory = tmp_path / "shop"
    (directory / "pipelines").mkdir(parents=True)
    (directory / "tailrace.toml").write_text(f'[registry]\nurl = "{url}"\n')
    (directory / "pipelines" / "shop.py").write_text(PIPELINES)
    return directory


def row_schema(**columns: str) -> str:
    row = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in columns.items()},
        "additionalProperties": False,
    }
    return json.dumps({"type": "object", "properties": {"row": row}})


def test_check_refuses_a_view_that_breaks_its_subject(ask: Asking, project: Path) -> None:
    assert any(one.error for one in checked(project).values()), "the topic has no columns yet"
    ask.register("orders-value", ORDERS, schemaType="JSON")
    assert checked(project)["columns and types"].error is None
    ask("PUT", "/config", {"compatibility": "NONE"})
    good = row_schema(country="string", orders="integer")
    ask.register("per_country-value", good, schemaType="JSON")
    one = checked(project)["subject per_country-value"]
    assert (one.error, one.found) == (None, "version 1 reads what is written")
    for columns, rule in (
        ({"country": "string"}, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        ({"country": "string", "orders": "string"}, "TYPE_CHANGED"),
    ):
        ask.register("per_country-value", row_schema(**columns), schemaType="JSON")
        error = checked(project)["subject per_country-value"].error
        assert error is not None
        assert error.code == "schema-incompatible"
        assert rule in error.detail
    ask.register("per_country-value", json.dumps(AVRO))
    error = checked(project)["subject per_country-value"].error
    assert error is not None
    assert "of type AVRO" in error.detail


def test_check_says_when_the_registry_was_not_asked(project: Path) -> None:
    (project / "tailrace.toml").write_text('[registry]\nurl = "http://127.0.0.1:1"\n')
    assert "does not answer" in checked(project)["registry"].found
    told = {one.what: one for one in check(load(project))}
    assert "registry" not in told, "a project that starts does not ask"
    assert all(one.error is None for one in told.values())
    assert "not looked at" in told["columns and types"].found


def test_topics_with_declared_columns_stay_as_they_are(schemas: Schemas) -> None:
    declared = [tr.topic("orders", schema="id BIGINT"), Topic("c", pattern="c.*")]
    assert for_views(declared, RegistrySettings(url=schemas.url)) == declared


def test_what_runs_is_looked_after_while_a_registry_is_away(tmp_path: Path) -> None:
    part = Part("p", "pipelines", "p", "127.0.0.1:1", tmp_path)
    looked: list[int] = []

    def look() -> None:
        looked.append(1)
        if len(looked) == 2:
            part.stopping.set()

    away = RegistrySettings(url="http://127.0.0.1:1")
    assert wait_for_views([tr.topic("orders")], away, part, look) is None
    assert len(looked) == 2


def test_columns_registered_later_are_found_when_views_look_again(
    ask: Asking, schemas: Schemas
) -> None:
    chosen = RegistrySettings(url=schemas.url)
    topics = [tr.topic("orders")]
    assert look_again(topics, RegistrySettings(url="http://127.0.0.1:1")) == topics
    assert look_again(topics, chosen) == topics
    ask.register("orders-value", json.dumps(AVRO))
    assert [topic.tabular for topic in look_again(topics, chosen)] == [True]
