"""JSON Schema: what it takes, and what lets through what."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.json_compatibility import COMPATIBLE, LENIENT, changes, differences
from tailrace.schemas.json_schema import JsonSchema, check_all

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def find(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def read(value: Any, references: dict[str, str] | None = None) -> JsonSchema:
    found = JsonSchema(json.dumps(value), references)
    check_all(found)
    return found


def stops(writer: Any, reader: Any, allowed: frozenset[str] = COMPATIBLE) -> list[str]:
    return sorted(one.rule for one in differences(read(reader), read(writer), find, allowed))


CLOSED = {"additionalProperties": False}
A = {"a": {"type": "string"}}
B = {"b": {"type": "integer"}}
BOTH = {**A, **B}

# before, after, the rules that stop a reader with the schema after
CASES: list[tuple[Any, Any, list[str]]] = [
    ({}, {}, []),
    ({"type": "string"}, {}, []),
    ({}, {"type": "string"}, ["TYPE_CHANGED"]),
    ({"type": "string"}, {"type": "integer"}, ["TYPE_CHANGED"]),
    ({"type": "integer"}, {"type": "number"}, []),
    ({"type": "number"}, {"type": "integer"}, ["TYPE_NARROWED"]),
    ({"type": "string"}, {"type": ["string", "null"]}, []),
    ({"type": ["string", "null"]}, {"type": "string"}, ["TYPE_CHANGED"]),
    ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 4},
     ["MAX_LENGTH_DECREASED"]),
    ({"type": "string"}, {"type": "string", "pattern": "a"}, ["PATTERN_ADDED"]),
    ({"type": "number", "minimum": 1}, {"type": "number", "minimum": 2}, ["MINIMUM_INCREASED"]),
    ({"type": "number", "multipleOf": 0.5}, {"type": "number", "multipleOf": 0.1}, []),
    ({"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 3},
     ["MULTIPLE_OF_CHANGED"]),
    ({"enum": [1, 2]}, {"enum": [1, 2, 3]}, []),
    ({"enum": [1, 2]}, {"enum": [1]}, ["ENUM_ARRAY_NARROWED"]),
    ({"const": 1}, {"const": 2}, ["ENUM_ARRAY_CHANGED"]),
    ({"properties": A}, {"properties": BOTH}, ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
    ({"properties": A, **CLOSED}, {"properties": BOTH, **CLOSED}, []),
    ({"properties": A, **CLOSED}, {"properties": BOTH, **CLOSED, "required": ["b"]},
     ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"]),
    ({"properties": A, **CLOSED},
     {"properties": {**A, "b": {"type": "integer", "default": 1}}, **CLOSED, "required": ["b"]}, []),
    ({"properties": BOTH}, {"properties": A}, []),
    ({"properties": BOTH, **CLOSED}, {"properties": A, **CLOSED},
     ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
    ({"properties": BOTH, **CLOSED}, {"properties": A, "patternProperties": {"^b": {"type": "integer"}}, **CLOSED}, []),
    ({"properties": A}, {"properties": A, "required": ["a"]}, ["REQUIRED_ATTRIBUTE_ADDED"]),
    ({"properties": A}, {"properties": A, **CLOSED}, ["ADDITIONAL_PROPERTIES_REMOVED"]),
    ({"items": {"type": "integer"}}, {"items": {"type": "number"}}, []),
    ({"items": [{"type": "integer"}], "additionalItems": False},
     {"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": False}, []),
    ({"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "string"}, {"type": "null"}]}, []),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"oneOf": [{"type": "string"}]},
     ["SUM_TYPE_NARROWED"]),
    ({"allOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, []),
    ({"not": {"type": "string"}}, {"not": {"type": "string", "maxLength": 2}}, []),
    ({"$schema": DRAFT_2020, "prefixItems": [{"type": "integer"}], "items": False},
     {"$schema": DRAFT_2020, "prefixItems": [{"type": "integer"}]}, []),
    ({"$schema": DRAFT_2020, "$defs": {"x": {"type": "string"}}, "$ref": "#/$defs/x"},
     {"$schema": DRAFT_2020, "$defs": {"x": {"type": "integer"}}, "$ref": "#/$defs/x"},
     ["TYPE_CHANGED"]),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 1,
      "exclusiveMinimum": True},
     {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 1,
      "exclusiveMinimum": True}, []),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "rules"), CASES)
def test_a_reader_is_stopped_by_these_rules(before: Any, after: Any, rules: list[str]) -> None:
    assert stops(before, after) == rules


def test_the_lenient_policy_lets_properties_be_added_to_open_models() -> None:
    assert stops({"properties": A}, {"properties": BOTH}, LENIENT) == []
    assert stops({"properties": A}, {"properties": {"a": {"type": "integer"}}}, LENIENT)


def test_a_difference_names_path_rule_and_a_way_out() -> None:
    (one,) = differences(read({"properties": BOTH}), read({"properties": A}), find)
    assert (one.rule, one.path) == (
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/b",
    )
    assert "additionalProperties" in one.hint


def tree(leaf: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"value": {"type": leaf}, "children": {"items": {"$ref": "#"}}},
        **CLOSED,
    }


def test_a_schema_that_refers_to_itself_is_compared_to_its_end() -> None:
    assert stops(tree("integer"), tree("integer")) == []
    assert "TYPE_CHANGED" in stops(tree("integer"), tree("string"))


def test_references_are_found_by_pointer_anchor_id_and_name() -> None:
    used = json.dumps({"definitions": {"n": {"type": "integer"}}})
    for schema in (
        {"$ref": "other.json#/definitions/n"},
        {"$schema": DRAFT_2020, "$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "integer"}}},
        {"$ref": "n.json", "definitions": {"x": {"$id": "n.json", "type": "integer"}}},
        {"$id": "http://x/base.json", "$ref": "#/definitions/a~1b",
         "definitions": {"a/b": {"type": "integer"}}},
    ):  # fmt: skip
        found = changes(read({"type": "string"}), read(schema, {"other.json": used}), find)
        assert [rule for rule, _ in found] == ["TYPE_CHANGED"], schema


WRONG: list[tuple[str, str]] = [
    ("[]", "an object, true or false"),
    ('{"type": "strnig"}', "no type"),
    ('{"type": []}', "no type at all"),
    ('{"minLength": -1}', "0 or more"),
    ('{"required": [1]}', "a list of names"),
    ('{"properties": []}', "an object"),
    ('{"allOf": []}', "at least one"),
    ('{"properties": {"a": {"type": 7}}}', "no type"),
    ('{"$ref": "#/definitions/none"}', "leads nowhere"),
    ('{"$ref": "http://example.com/x.json"}', "nothing is fetched"),
    ('{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}', "itself"),
    ('{"multipleOf": 0}', "above 0"),
    ('{"not":' * 10_000 + "{}" + "}" * 10_000, "300 levels"),
    ('{"default": NaN}', "no JSON"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_what_is_no_schema_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(InvalidSchemaError) as told:
        check_all(JsonSchema(text))
    assert why in f"{told.value.message} {told.value.detail}"


def test_a_comparison_that_would_take_for_ever_is_refused() -> None:
    # Each level doubles the work of a comparison without memory; with memory it is small.
    def nest(leaf: str) -> Any:
        definitions = {"d0": {"type": leaf}}
        for number in range(1, 20):
            definitions[f"d{number}"] = {
                "oneOf": [{"$ref": f"#/definitions/d{number - 1}"}, {"items": {"$ref": f"#/definitions/d{number - 1}"}}]
            }  # fmt: skip
        return {"definitions": definitions, "$ref": "#/definitions/d19"}

    assert stops(nest("integer"), nest("string"))


_small: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.sampled_from(
            [
                {},
                {"type": "string"},
                {"type": "integer"},
                {"type": "number"},
                {"type": "null"},
                {"enum": [1, "a"]},
                {"enum": [1]},
                {"type": "string", "maxLength": 1},
                {"type": "integer", "minimum": 1},
                {"type": ["integer", "null"]},
            ]
        ),
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda props, required, closed: {
                "type": "object",
                "properties": props,
                "required": sorted(required & props.keys()),
                **(CLOSED if closed else {}),
            },
            st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            st.sets(st.sampled_from("ab")),
            st.booleans(),
        ),
        st.builds(lambda one: {"type": "array", "items": one}, inner),
        st.builds(lambda *many: {"anyOf": list(many)}, inner, inner),
    ),
    max_leaves=5,
)
_instances: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, 0, 1, 2.5, "", "a", "ab", True]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(_small, _small, _instances)
def test_what_one_let_through_the_other_does_too(writer: Any, reader: Any, value: Any) -> None:
    for before, after in ((writer, reader), (writer, {"anyOf": [reader, writer]})):
        if jsonschema.Draft7Validator(before).is_valid(value) and not stops(before, after):
            assert jsonschema.Draft7Validator(after).is_valid(value)
