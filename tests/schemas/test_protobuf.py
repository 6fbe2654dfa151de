"""Protobuf files: one text of each, descriptors, and what reads what."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import (
    api_pb2,
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
)
from hypothesis import given
from hypothesis import strategies as st

from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.protobuf import Types, canonical, normal, parse_file
from tailrace.schemas.protobuf_compatibility import changes, differences
from tailrace.schemas.protobuf_descriptors import from_base64, looks_encoded, to_base64

WHOLE = """\
syntax = "proto3";
package a.b;

import "google/protobuf/timestamp.proto";
import public "google/protobuf/empty.proto";

option java_package = "x.y";

message M {
  option deprecated = true;
  reserved 4, 5 to 9, 100 to max;
  reserved "foo", "bar";
  optional string x = 1 [deprecated = true, json_name = "ex"];
  map<string, Inner> m = 2;
  repeated .google.protobuf.Timestamp t = 3;
  oneof o {
    int32 a = 10;
    string b = 11;
  }

  message Inner {
    E e = 1;

    enum E {
      A = 0;
      B = 1;
    }
  }
}

service S {
  rpc Ask (M) returns (stream M.Inner);
}
"""


def read(text: str, references: dict[str, str] | None = None) -> Types:
    return Types(parse_file(text), references)


def test_a_file_has_one_text() -> None:
    assert canonical(parse_file(WHOLE)) == WHOLE
    loose = WHOLE.replace("\n\n", "\n// a comment\n").replace(" = ", "=").replace("  ", "\t")
    assert canonical(parse_file(loose)) == WHOLE


def test_proto2_has_groups_extensions_and_defaults() -> None:
    text = (
        'syntax = "proto2";\n\nmessage M {\n  extensions 100 to 199;\n'
        "  optional int32 a = 1 [default = 7];\n  repeated group G = 2 {\n"
        "    required string s = 1;\n  }\n}\n\nextend M {\n  optional string more = 100;\n}\n"
    )
    assert canonical(parse_file(text)) == text
    assert canonical(from_base64(to_base64(read(text)))).replace(".M", "M") == text


def test_a_descriptor_and_a_text_are_the_same_schema() -> None:
    again = from_base64(to_base64(read(WHOLE)))
    assert normal(Types(again)) == normal(read(WHOLE)) != WHOLE
    for module in (timestamp_pb2, struct_pb2, type_pb2, api_pb2):
        coded = base64.b64encode(module.DESCRIPTOR.serialized_pb).decode()
        assert looks_encoded(coded)
        text = canonical(from_base64(coded))
        written = to_base64(read(text), module.DESCRIPTOR.name)
        assert canonical(from_base64(written)) == text
    assert not looks_encoded(WHOLE)


def test_a_written_descriptor_makes_a_usable_message() -> None:
    coded = to_base64(read('syntax="proto3"; message M { map<string, int64> m = 1; }'), "m.proto")
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(coded))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))
    assert dict(kind.FromString(kind(m={"a": 1}).SerializeToString()).m) == {"a": 1}


WRONG: list[tuple[str, str]] = [
    ("nonsense", "begins no declaration"),
    ('syntax = "proto4";', "proto2 or proto3"),
    ("message M {", "a name is missing"),
    ('syntax="proto3"; message M { string a = 0; }', "cannot be the number"),
    ('syntax="proto3"; message M { string a = 19500; }', "cannot be the number"),
    ('syntax="proto3"; message M { string a = 1; int32 b = 1; }', "the number 1 twice"),
    ('syntax="proto3"; message M { string a = 1; int32 a = 2; }', "two fields"),
    ('syntax="proto3"; message M { Missing a = 1; }', "is not declared"),
    ('syntax="proto3"; message M { required string a = 1; }', "no required"),
    ("message M { string a = 1; }", "needs optional"),
    ('syntax="proto3"; message M { reserved 1; string a = 1; }', "reserved"),
    ('syntax="proto3"; message M { map<double, string> a = 1; }', "key of a map"),
    ('syntax="proto3"; enum E { A = 1; }', "must be 0"),
    ('syntax="proto3"; import "none.proto";', "no reference"),
    ('syntax="proto3"; message M {} message M {}', "declared twice"),
    ("message M {" * 1000, "nested more than"),
    ("\x00", "means nothing"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_what_is_no_file_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(InvalidSchemaError) as told:
        read(text)
    assert why in f"{told.value.message} {told.value.detail}"


def test_a_descriptor_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="neither the text"):
        from_base64("AAAA")


def message(fields: str, rest: str = "") -> str:
    return f'syntax = "proto3"; package p; message M {{ {fields} }} {rest}'


# before, after, the rules that stop a reader with the file after
CASES: list[tuple[str, str, list[str]]] = [
    (message("string a = 1;"), message("string b = 1;"), []),
    (message("string a = 1;"), message("bytes a = 1;"), []),
    (message("string a = 1;"), message("int32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    (message("int32 a = 1;"), message("uint64 a = 1;"), []),
    (message("int32 a = 1;"), message("sint32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    (message("int32 a = 1;"), message("E a = 1;", "enum E { X = 0; }"), []),
    (message("string a = 1;"), message("string a = 1; int32 b = 2;"), []),
    (message("string a = 1; int32 b = 2;"), message("string a = 1;"), []),
    (message("optional int32 a = 1;"), message("repeated int32 a = 1;"),
     ["FIELD_NUMERIC_LABEL_CHANGED"]),
    (message("optional string a = 1;"), message("repeated string a = 1;"), []),
    (message("", "message N {}"), message(""), ["MESSAGE_REMOVED"]),
    (message("", "enum E { X = 0; }"), message(""), []),
    (message("string a = 1;"), message("string a = 1;").replace("package p", "package q"),
     ["PACKAGE_CHANGED"]),
    (message("N a = 1;", "message N { string s = 1; }"),
     message("N a = 1;", "message N { int32 s = 1; }"),
     ["FIELD_NAMED_TYPE_CHANGED", "FIELD_SCALAR_KIND_CHANGED"]),
    (message("string a = 1;"), message("N a = 1;", "message N {}"), ["FIELD_KIND_CHANGED"]),
    (message("map<string, int32> a = 1;"), message("map<string, string> a = 1;"),
     ["FIELD_SCALAR_KIND_CHANGED"]),
    (message("string a = 1; string b = 2;"), message("oneof o { string a = 1; string b = 2; }"),
     ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"]),
    (message("string a = 1;"), message("oneof o { string a = 1; string b = 2; }"), []),
    (message("oneof o { string a = 1; string b = 2; }"), message("oneof o { string a = 1; }"),
     ["ONEOF_FIELD_REMOVED"]),
    (message("oneof o { string a = 1; string b = 2; }"), message("string a = 1; string b = 2;"), []),
    (message("M a = 1; string b = 2;"), message("M a = 1; int32 b = 2;"),
     ["FIELD_SCALAR_KIND_CHANGED"]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "rules"), CASES)
def test_a_reader_is_stopped_by_these_rules(before: str, after: str, rules: list[str]) -> None:
    found = differences(read(after), read(before))
    assert sorted(one.rule for one in found) == rules
    assert all(one.hint and "[" not in one.text for one in found)


def test_a_message_moved_to_an_import_is_compared_there() -> None:
    inside = message("N a = 1;", "message N { string s = 1; }")
    outside = 'syntax="proto3"; package p; import "n.proto"; message M { N a = 1; }'
    used = {"n.proto": 'syntax="proto3"; package p; message N { int32 s = 1; }'}
    rules = [rule for rule, _ in changes(read(inside), read(outside, used))]
    assert "FIELD_SCALAR_KIND_CHANGED" in rules


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.sampled_from(["string", "int32", "double", "M"])),
        unique_by=lambda one: one[0],
        max_size=6,
    )
)
def test_any_file_comes_back_from_its_text_and_its_descriptor(
    fields: list[tuple[int, str]],
) -> None:
    text = message(" ".join(f"{kind} f{tag} = {tag};" for tag, kind in fields))
    form = canonical(parse_file(text))
    assert canonical(parse_file(form)) == form
    assert changes(read(form), Types(from_base64(to_base64(read(form))))) == []
