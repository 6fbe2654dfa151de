"""Avro schemas: one text of each, and what reads what."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.schemas.avro import canonical, parse
from tailrace.schemas.avro_compatibility import differences
from tailrace.schemas.errors import InvalidSchemaError


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


# given, the one text of it
FORMS: list[tuple[str, str]] = [
    ('"string"', '"string"'),
    ("string", '"string"'),
    ('{"type": "string"}', '"string"'),
    ('{"type":"long","logicalType":"timestamp-millis"}',
     '{"type":"long","logicalType":"timestamp-millis"}'),
    ('{"fields": [], "type": "record", "name": "a.b.R", "doc": "d"}',
     '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[]}'),
    ('{"type":"record","name":"R","namespace":"n","fields":[{"type":"R","name":"next"}]}',
     '{"type":"record","name":"R","namespace":"n","fields":[{"name":"next","type":"R"}]}'),
    ('{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"],"default":null,'
     '"order":"ascending"}]}',
     '{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"],"default":null}]}'),
    ('{"type":"fixed","name":"F","size":4,"aliases":["b","a"],"x":1}',
     '{"type":"fixed","name":"F","size":4,"x":1,"aliases":["b","a"]}'),
]  # fmt: skip


@pytest.mark.parametrize(("given_text", "form"), FORMS)
def test_a_schema_has_one_text(given_text: str, form: str) -> None:
    assert canonical(parse(given_text)) == form
    assert canonical(parse(form)) == form


def test_the_normal_text_sorts_what_has_no_order() -> None:
    found = parse('{"type":"string","z":1,"a":2}')
    assert canonical(found, normal=True) == '{"type":"string","a":2,"z":1}'


WRONG: list[tuple[str, str]] = [
    ("{", "no JSON"),
    ("1", "a type is a name"),
    ('"strnig"', "not defined"),
    ('{"type":"record","name":"R"}', "needs its"),
    ('{"type":"record","name":"1R","fields":[]}', "is no name"),
    ('{"type":"enum","name":"E","symbols":["A","A"]}', "twice"),
    ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "not among"),
    ('{"type":"fixed","name":"F","size":-1}', "size"),
    ('["int",["null","long"]]', "a union directly in a union"),
    ('["int","int"]', "twice"),
    ('{"type":"array"}', "items"),
    (json.dumps(record(field("a", "int", default="x"))), "does not fit"),
    (json.dumps(record(field("a", "int", default=2**31))), "does not fit"),
    (json.dumps(record(field("a", "int"), field("a", "int"))), "there twice"),
    ('{"type":"record","name":"R","fields":[],"doc":"\\ud800"}', "surrogate"),
    ('{"type":"array","items":' * 10_000 + '"int"' + "}" * 10_000, "300 levels"),
    ("[" * 100_000, "300 levels"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_what_is_no_schema_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(InvalidSchemaError) as told:
        canonical(parse(text))
    assert why in f"{told.value.message} {told.value.detail}"


# reader, writer, the rules that stop the reader
PAIRS: list[tuple[Any, Any, list[str]]] = [
    ("long", "int", []),
    ("int", "long", ["TYPE_MISMATCH"]),
    ("double", "float", []),
    ("string", "bytes", []),
    ("bytes", "string", []),
    ("boolean", "int", ["TYPE_MISMATCH"]),
    (["null", "int"], "int", []),
    ("int", ["null", "int"], ["TYPE_MISMATCH"]),
    (["null", "string"], ["null", "int"], ["MISSING_UNION_BRANCH"]),
    (["null", "int"], "string", ["MISSING_UNION_BRANCH"]),
    (record(field("a", "int"), field("b", "int", default=1)), record(field("a", "int")), []),
    (record(field("a", "int"), field("b", "int")), record(field("a", "int")),
     ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
    (record(field("b", "int", aliases=["a"])), record(field("a", "int")), []),
    (record(), record(field("a", "int")), []),
    (record(name="S"), record(name="R"), ["NAME_MISMATCH"]),
    (record(namespace="x"), record(namespace="y"), []),
    (enum("A", "B"), enum("A"), []),
    (enum("A"), enum("A", "B"), ["MISSING_ENUM_SYMBOLS"]),
    (enum("A", default="A"), enum("A", "B"), []),
    ({"type": "fixed", "name": "F", "size": 3}, {"type": "fixed", "name": "F", "size": 4},
     ["FIXED_SIZE_MISMATCH"]),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, []),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, ["TYPE_MISMATCH"]),
    (record(field("n", ["null", "R"])), record(field("n", ["null", "R"])), []),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "writer", "rules"), PAIRS)
def test_a_reader_is_stopped_by_these_rules(reader: Any, writer: Any, rules: list[str]) -> None:
    found = differences(parse(json.dumps(reader)), parse(json.dumps(writer)))
    assert [one.rule for one in found] == rules
    assert all(one.path and one.hint for one in found)


def test_a_difference_is_told_with_its_path_and_a_way_out() -> None:
    reader = parse(json.dumps(record(field("a", "int"), field("b", "int"))))
    (one,) = differences(reader, parse(json.dumps(record(field("a", "int")))))
    assert one.tell("new", "old") == (
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path "
        "'/fields/1' in the new schema has no default value and is missing in the old schema', "
        "additionalInfo:'b', hint:'give \"b\" a default'}"
    )


def test_types_that_use_each_other_twice_are_compared_in_reasonable_time() -> None:
    def chain(last: str) -> str:
        kinds: Any = last
        for number in range(60):
            inner = record(field("a", kinds), field("b", f"R{number - 1}" if number else last),
                           name=f"R{number}")  # fmt: skip
            kinds = inner
        return json.dumps(kinds)

    found = differences(parse(chain("int")), parse(chain("string")))
    assert {one.rule for one in found} == {"TYPE_MISMATCH"}
    assert len(found) <= 4


def test_a_large_union_is_compared_in_reasonable_time() -> None:
    kinds = [record(field("x", "int"), name="R0")]
    kinds += [record(field("n", f"R{n - 1}"), name=f"R{n}") for n in range(1, 120)]
    found = parse(json.dumps(kinds))
    assert differences(found, parse(json.dumps(kinds))) == []
    kinds[0] = record(field("x", "string"), name="R0")
    assert {one.rule for one in differences(found, parse(json.dumps(kinds)))} == {
        "MISSING_UNION_BRANCH"
    }


def test_references_are_types_by_name() -> None:
    used = '{"type":"record","name":"Money","namespace":"shop","fields":[]}'
    text = (
        '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"m","type":"Money"}]}'
    )
    found = parse(text, {"shop.Money": used})
    assert canonical(found, {"shop.Money": used}) == text
    with pytest.raises(InvalidSchemaError, match="not valid") as told:
        parse(text)
    assert '"Money" is not defined' in told.value.detail


_leaf = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "string", "bytes"])
_kinds = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(lambda one: {"type": "array", "items": one}, inner),
        st.builds(lambda one: {"type": "map", "values": one}, inner),
        st.lists(_leaf, min_size=1, max_size=3, unique=True),
    ),
    max_leaves=4,
)


def _changed(kind: Any, data: st.DataObject) -> Any:
    """A schema near to this one, which may or may not read what it wrote."""
    if isinstance(kind, list):
        return [_changed(one, data) for one in kind[: data.draw(st.integers(1, len(kind)))]]
    if isinstance(kind, dict):
        inside = "items" if kind["type"] == "array" else "values"
        return {**kind, inside: _changed(kind[inside], data)}
    near = {"int": ["long", "double"], "long": ["float", "int"], "string": ["bytes"], "bytes": ["string"]}  # fmt: skip
    other = data.draw(st.sampled_from([kind, *near.get(kind, ["null"])]))
    return data.draw(st.sampled_from([other, other, ["null", other] if other != "null" else other]))


@given(_kinds, st.data())
def test_what_fits_is_really_read_by_a_library_of_others(writer: Any, data: st.DataObject) -> None:
    reader = _changed(writer, data)
    try:
        found = differences(parse(json.dumps(reader)), parse(json.dumps(writer)))
    except InvalidSchemaError:  # a union in a union, or of one type twice
        return
    if found:
        return
    value = data.draw(_values(writer))
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(writer), value)
    written.seek(0)
    fastavro.schemaless_reader(
        written, fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    )
    assert written.read() == b""


def _values(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, list):
        return st.one_of([_values(one) for one in kind])
    if isinstance(kind, dict) and kind["type"] == "array":
        return st.lists(_values(kind["items"]), max_size=2)
    if isinstance(kind, dict):
        return st.dictionaries(st.text(max_size=2), _values(kind["values"]), max_size=2)
    plain: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32),
        "double": st.floats(),
        # Bytes that are no text are read as text by a rule that Avro itself leaves open.
        "string": st.text(max_size=3),
        "bytes": st.text(max_size=3).map(str.encode),
    }
    return plain[kind]
