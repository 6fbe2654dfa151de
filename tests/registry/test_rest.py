"""Confluent's paths, answers and error codes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from registry.conftest import Asking

INT, LONG, TEXT = '"int"', '"long"', '"string"'


def record(*fields: dict[str, Any], name: str = "R") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "int"}
B_OPTIONAL = {**B, "default": 0}


def test_one_schema_has_one_id_under_every_subject(ask: Asking) -> None:
    assert ask.register("a", '{ "type" : "int" }') == 1
    assert ask.register("a", INT) == 1
    assert ask.register("b", INT) == 1
    assert ask.register("c", TEXT) == 2
    assert ask("GET", "/subjects") == (200, ["a", "b", "c"])
    assert ask("GET", "/subjects/a/versions") == (200, [1])
    assert ask("GET", "/schemas/ids/1") == (200, {"schema": INT})
    assert ask("GET", "/schemas/ids/1/schema") == (200, "int")
    assert ask("GET", "/schemas/ids/1/subjects") == (200, ["a", "b"])
    assert ask("GET", "/schemas/ids/1/versions") == (
        200,
        [{"subject": "a", "version": 1}, {"subject": "b", "version": 1}],
    )
    expected = {"subject": "a", "version": 1, "id": 1, "schema": INT}
    for version in ("1", "latest", "-1"):
        assert ask("GET", f"/subjects/a/versions/{version}") == (200, expected)
    assert ask("POST", "/subjects/a", {"schema": INT}) == (200, expected)
    assert ask("GET", "/subjects/a/versions/1/schema") == (200, "int")
    assert ask("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    assert ask("GET", "/") == (200, {})


def test_what_is_not_there_has_its_own_code(ask: Asking) -> None:
    ask.register("a", INT)
    assert ask.code("GET", "/subjects/none/versions") == 40401
    assert ask.code("GET", "/subjects/none/versions/1") == 40401
    assert ask.code("GET", "/subjects/a/versions/2") == 40402
    assert ask.code("GET", "/subjects/a/versions/0") == 42202
    assert ask.code("GET", "/subjects/a/versions/x") == 42202
    assert ask.code("GET", "/schemas/ids/9") == 40403
    assert ask.code("GET", "/schemas/ids/9/versions") == 40403
    assert ask.code("POST", "/subjects/none", {"schema": INT}) == 40401
    assert ask.code("POST", "/subjects/a", {"schema": TEXT}) == 40403
    assert ask.code("DELETE", "/subjects/none") == 40401
    assert ask.code("DELETE", "/subjects/a/versions/7") == 40402
    assert ask.code("GET", "/config/a") == 40408
    assert ask.code("GET", "/mode/a") == 40409
    assert ask.code("DELETE", "/config/a") == 40401
    assert ask.code("GET", "/nowhere") == 404
    assert ask.code("PATCH", "/subjects") == 405
    assert ask.code("GET", "/schemas/ids/x") == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"no json", 400),
        (b"[]", 400),
        (b'{"schema": 7}', 400),
        (b'{"schema": "\\"int\\"", "version": "x"}', 400),
        (b'{"colour": "red"}', 422),
        (b"{}", 42201),
        (b'{"schema": "{"}', 42201),
        (b'{"schema": "\\"int\\"", "schemaType": "XML"}', 42201),
        (b'{"schema": "\\"int\\"", "version": 7}', 42201),
        (b'{"schema": "\\"x\\"", "references": [{"name": "x", "subject": "x", "version": 1}]}', 42201),
        (b"{" * 5000, 400),
    ],
)  # fmt: skip
def test_a_body_that_is_wrong_is_refused_and_the_rest_goes_on(
    ask: Asking, body: bytes, code: int
) -> None:
    answer = ask.client.post("/subjects/a/versions", content=body)
    assert (answer.json()["error_code"], answer.status_code) == (code, int(str(code)[:3]))
    assert ask("GET", "/subjects") == (200, [])


def test_other_media_types_are_refused(ask: Asking) -> None:
    answer = ask.client.post("/subjects/a/versions", content=b"{}", headers={"content-type": "text/plain"})  # fmt: skip
    assert answer.json() == {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}
    answer = ask.client.get("/subjects", headers={"accept": "text/html"})
    assert answer.json()["error_code"] == 406
    answer = ask.client.get("/subjects")
    assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"


def test_a_version_that_does_not_fit_is_refused_with_rule_path_and_hint(ask: Asking) -> None:
    ask.register("s", record(A))
    status, found = ask("POST", "/subjects/s/versions", {"schema": record(A, B)})
    assert (status, found["error_code"]) == (409, 409)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in found["message"]
    assert "/fields/1" in found["message"]
    assert found["hint"] == 'give "b" a default'
    assert ask.register("s", record(A, B_OPTIONAL)) == 2
    check = "/compatibility/subjects/s/versions"
    bad = {"schema": record(A, {"name": "c", "type": "int"})}
    assert ask("POST", f"{check}/latest", bad) == (200, {"is_compatible": False})
    status, found = ask("POST", f"{check}?verbose=true", bad)
    assert not found["is_compatible"]
    assert "{oldSchemaVersion: 2}" in found["messages"]
    assert ask("POST", f"{check}/1", {"schema": record(A)}) == (200, {"is_compatible": True})
    assert ask("POST", "/compatibility/subjects/new/versions/latest", bad)[1]["is_compatible"]
    assert ask.code("POST", f"{check}/9", bad) == 40402
    assert ask.code("POST", f"{check}/latest", {"schema": "{"}) == 42201
    assert ask("POST", f"{check}/latest?verbose=true", {"schema": "{"})[1]["messages"]


# level, first, second, third, may the third follow
LEVELS: list[tuple[str, str, str, str, bool]] = [
    ("NONE", INT, TEXT, record(A), True),
    ("BACKWARD", record(A), record(A, B_OPTIONAL), record(A, B), True),
    ("BACKWARD_TRANSITIVE", record(A), record(A, B_OPTIONAL), record(A, B), False),
    ("FORWARD", record(A, B_OPTIONAL), record(A), record(), False),
    ("FORWARD", record(A, B_OPTIONAL), record(A), record(A, B), True),
    ("FORWARD_TRANSITIVE", record(A, B_OPTIONAL), record(A), record(A, B), True),
    ("FULL", record(A), record(A, B_OPTIONAL), record(A), True),
    ("FULL", record(A), record(A, B_OPTIONAL), record(A, B, name="R"), True),
    ("FULL_TRANSITIVE", record(A), record(A, B_OPTIONAL), record(A, B), False),
]


@pytest.mark.parametrize(("level", "first", "second", "third", "fits"), LEVELS)
def test_a_level_decides_what_may_follow(
    ask: Asking, level: str, first: str, second: str, third: str, fits: bool
) -> None:
    assert ask("PUT", "/config/s", {"compatibility": level.lower()}) == (
        200,
        {"compatibility": level},
    )
    ask.register("s", first)
    ask.register("s", second)
    status, found = ask("POST", "/subjects/s/versions", {"schema": third})
    assert (status == 200) == fits, found


def test_configurations_are_global_of_a_context_and_of_a_subject(ask: Asking) -> None:
    assert ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert ask("PUT", "/config", {"compatibility": "FULL"}) == (200, {"compatibility": "FULL"})
    assert ask("GET", "/config/s?defaultToGlobal=true")[1] == {"compatibilityLevel": "FULL"}
    assert ask("PUT", "/config/s", {"compatibility": "NONE", "normalize": True})[0] == 200
    expected = {"normalize": True, "compatibilityLevel": "NONE"}
    assert ask("GET", "/config/s")[1] == expected
    assert ask("DELETE", "/config/s") == (200, expected)
    assert ask.code("GET", "/config/s") == 40408
    assert ask("DELETE", "/config") == (200, {"compatibilityLevel": "FULL"})
    assert ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert ask("PUT", "/config/:.eu:", {"compatibility": "NONE"})[0] == 200
    assert ask("GET", "/config/:.eu:s?defaultToGlobal=true")[1] == {"compatibilityLevel": "NONE"}
    assert ask.code("PUT", "/config", {"compatibility": "SOMETIMES"}) == 42203
    assert ask.code("PUT", "/config/s", {"alias": "t"}) == 422


def test_a_soft_deleted_version_keeps_its_id_and_number(ask: Asking) -> None:
    ask("PUT", "/config", {"compatibility": "NONE"})
    ask.register("s", INT)
    ask.register("s", TEXT)
    assert ask("DELETE", "/subjects/s/versions/1") == (200, 1)
    assert ask.code("DELETE", "/subjects/s/versions/1") == 40406
    assert ask("GET", "/subjects/s/versions")[1] == [2]
    assert ask("GET", "/subjects/s/versions?deleted=true")[1] == [1, 2]
    assert ask("GET", "/subjects/s/versions?deletedOnly=true")[1] == [1]
    assert ask("GET", "/subjects/s/versions?deletedAsNegative=true")[1] == [-1, 2]
    assert ask("GET", "/schemas/ids/1") == (200, {"schema": INT})
    assert ask.code("GET", "/subjects/s/versions/1") == 40402
    assert ask("GET", "/subjects/s/versions/1?deleted=true")[0] == 200
    assert ask.register("s", INT) == 1
    assert ask("GET", "/subjects/s/versions?deleted=true")[1] == [2, 3]


def test_a_deletion_for_good_comes_after_a_soft_one(ask: Asking) -> None:
    ask.register("s", INT)
    assert ask.code("DELETE", "/subjects/s?permanent=true") == 40405
    assert ask.code("DELETE", "/subjects/s/versions/1?permanent=true") == 40407
    assert ask("DELETE", "/subjects/s") == (200, [1])
    assert ask.code("DELETE", "/subjects/s") == 40404
    assert ask("GET", "/subjects") == (200, [])
    assert ask("GET", "/subjects?deleted=true") == (200, ["s"])
    assert ask("GET", "/subjects?deletedOnly=true") == (200, ["s"])
    assert ask("DELETE", "/subjects/s?permanent=true") == (200, [1])
    assert ask.code("GET", "/schemas/ids/1") == 40403
    assert ask.register("other", TEXT) == 2, "an id is not given out again"
    assert ask.register("s", INT) == 3
    assert ask("GET", "/subjects/s/versions") == (200, [2]), "nor is a version"


def test_what_is_referred_to_cannot_be_deleted(ask: Asking) -> None:
    ask.register("money", record(A, name="Money"))
    order = record({"name": "m", "type": "Money"}, name="Order")
    references = [{"name": "Money", "subject": "money", "version": 1}]
    assert ask.register("order", order, references=references) == 2
    assert ask("GET", "/subjects/money/versions/1/referencedby") == (200, [2])
    assert ask("GET", "/schemas/ids/2")[1]["references"] == references
    assert ask.code("DELETE", "/subjects/money/versions/1") == 42206
    assert ask.code("DELETE", "/subjects/money") == 42206
    assert ask("DELETE", "/subjects/order")[0] == 200
    assert ask("DELETE", "/subjects/money")[0] == 200
    assert ask.code("DELETE", "/subjects/money?permanent=true") == 42206


def test_modes_say_who_may_write(ask: Asking) -> None:
    assert ask("GET", "/mode") == (200, {"mode": "READWRITE"})
    ask.register("s", INT)
    assert ask("PUT", "/mode/s", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    assert ask.register("s", INT) == 1, "what is there is found"
    assert ask.code("POST", "/subjects/s/versions", {"schema": LONG}) == 42205
    assert ask.code("DELETE", "/subjects/s") == 42205
    assert ask.code("PUT", "/config/s", {"compatibility": "NONE"}) == 42205
    assert ask("DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    assert ask.code("PUT", "/mode/s", {"mode": "SOMETIMES"}) == 42204
    assert ask.code("PUT", "/mode", {"mode": "IMPORT"}) == 42205
    assert ask("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})[0] == 200
    assert ask.code("POST", "/subjects/t/versions", {"schema": LONG}) == 42205


def test_an_import_brings_its_ids_and_versions(ask: Asking) -> None:
    body = {"schema": INT, "id": 100, "version": 7}
    assert ask.code("POST", "/subjects/s/versions", body) == 42205
    assert ask("PUT", "/mode/s", {"mode": "IMPORT"})[0] == 200
    assert ask("POST", "/subjects/s/versions", body) == (200, {"id": 100})
    assert ask("GET", "/subjects/s/versions") == (200, [7])
    assert ask.code("POST", "/subjects/s/versions", {**body, "schema": TEXT, "version": 8}) == 42205
    assert ask.code("POST", "/subjects/s/versions", {"schema": LONG}) == 42205
    assert ask("DELETE", "/mode/s")[0] == 200
    assert ask.register("s", LONG) == 101


def test_contexts_keep_their_subjects_and_ids_apart(ask: Asking) -> None:
    ask.register("s", TEXT)
    assert ask.register(":.eu:s", INT) == 1
    assert ask("GET", "/contexts") == (200, [".", ".eu"])
    assert ask("GET", "/subjects") == (200, [":.eu:s", "s"])
    assert ask("GET", "/contexts/.eu/subjects") == (200, [":.eu:s"])
    assert ask("GET", "/subjects?subjectPrefix=:.eu:") == (200, [":.eu:s"])
    assert ask("GET", "/subjects?subjectPrefix=") == (200, ["s"])
    assert ask("GET", "/contexts/.eu/schemas/ids/1")[1] == {"schema": INT}
    assert ask("GET", "/schemas/ids/1")[1] == {"schema": TEXT}
    assert ask("GET", "/schemas/ids/1?subject=:.eu:s")[1] == {"schema": INT}
    assert ask("POST", "/contexts/:.eu:/subjects/t/versions", {"schema": LONG}) == (200, {"id": 2})
    assert ask("GET", "/subjects/t/versions/1")[1]["subject"] == ":.eu:t"
    assert ask("DELETE", "/contexts/.eu")[0] == 422
    assert ask("GET", "/schemas?subjectPrefix=:.eu:&latestOnly=true")[1][0]["id"] == 1


def test_lists_come_in_pages(ask: Asking) -> None:
    for name in "abcd":
        ask.register(name, INT)
    assert ask("GET", "/subjects?offset=1&limit=2") == (200, ["b", "c"])
    assert ask("GET", "/schemas/ids/1/subjects?limit=1") == (200, ["a"])
    assert len(ask("GET", "/schemas")[1]) == 4
    assert ask("GET", "/subjects?offset=x")[0] == 404


def test_normal_texts_are_one_schema_when_that_is_asked_for(ask: Asking) -> None:
    one = '{"type":"object","title":"t"}'
    other = '{"title":"t","type":"object"}'
    path = "/subjects/s/versions?normalize=true"
    ids = {
        ask("POST", path, {"schema": text, "schemaType": "JSON"})[1]["id"] for text in (one, other)
    }
    assert len(ids) == 1
    assert ask.register("t", one, schemaType="JSON") != ask.register("u", other, schemaType="JSON")


def test_protobuf_is_given_as_text_and_as_a_descriptor(ask: Asking) -> None:
    common = 'syntax = "proto3"; package c; message Money { int64 cents = 1; }'
    order = 'syntax="proto3"; import "c.proto"; message Order { c.Money price = 1; }'
    ask.register("c", common, schemaType="PROTOBUF")
    references = [{"name": "c.proto", "subject": "c", "version": 1}]
    number = ask.register("o", order, schemaType="PROTOBUF", references=references)
    found = ask("GET", f"/schemas/ids/{number}")[1]
    assert found["schemaType"] == "PROTOBUF"
    assert found["schema"].startswith('syntax = "proto3";\n\nimport "c.proto";\n')
    coded = ask("GET", f"/schemas/ids/{number}?format=serialized")[1]["schema"]
    again = ask("POST", "/subjects/o?normalize=true", {"schema": coded, "schemaType": "PROTOBUF", "references": references})  # fmt: skip
    assert again[0] == 404, "its names are qualified, so its text is another"
    normal = "/subjects/n/versions?normalize=true"
    ids = [
        ask("POST", normal, {"schema": text, "schemaType": "PROTOBUF", "references": references})[1]["id"]
        for text in (order, coded)
    ]  # fmt: skip
    assert ids[0] == ids[1]


def test_a_schema_too_large_and_one_too_deep_are_refused(ask: Asking) -> None:
    large = record(*({"name": f"f{n}", "type": "int", "doc": "x" * 1000} for n in range(1000)))
    assert ask.code("POST", "/subjects/s/versions", {"schema": large}) == 42209
    deep = '{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000
    assert ask.code("POST", "/subjects/s/versions", {"schema": deep}) == 42201
    huge = "x" * (13 << 20)
    answer = ask.client.post("/subjects/s/versions", content=huge)
    assert answer.status_code == 413
    assert ask("GET", "/subjects") == (200, [])


def test_a_pattern_that_never_ends_is_never_run_by_backtracking(ask: Asking) -> None:
    closed = {"type": "object", "additionalProperties": False}
    first = {**closed, "patternProperties": {"^(a+)+$": {"type": "string"}}}
    second = {**first, "properties": {"a" * 40 + "!": {"type": "string"}}}
    ask.register("s", json.dumps(first), schemaType="JSON")
    assert ask.register("s", json.dumps(second), schemaType="JSON") == 2


def test_newer_fields_are_given_to_clients_that_know_them(ask: Asking) -> None:
    headers = {"confluent-accept-unknown-properties": "true"}
    found = ask.client.post("/subjects/s/versions", json={"schema": INT}, headers=headers).json()
    assert {"id", "version", "guid"} <= found.keys()
    assert ask("GET", f"/schemas/guids/{found['guid']}") == (200, {"schema": INT})
    assert ask("GET", f"/schemas/guids/{found['guid']}/ids") == (200, [{"context": ".", "id": 1}])


def test_metadata_is_kept_and_found(ask: Asking) -> None:
    metadata = {"properties": {"owner": "ann"}}
    ask.register("s", INT, metadata=metadata)
    found = ask("GET", "/subjects/s/metadata?key=owner&value=ann")
    assert found[1]["metadata"] == metadata
    assert ask.code("GET", "/subjects/s/metadata?key=owner&value=bob") == 40403


def test_a_name_with_slashes_is_a_subject(ask: Asking) -> None:
    assert ask.register("a%2Fb%20c", INT) == 1
    assert ask("GET", "/subjects") == (200, ["a/b c"])
    assert ask.code("POST", "/subjects/__GLOBAL/versions", {"schema": INT}) == 42208


def test_a_page_elsewhere_cannot_ask_under_its_own_name(url: str) -> None:
    answer = httpx.get(f"{url}/subjects", headers={"host": "evil.example"})
    assert answer.status_code == 403
