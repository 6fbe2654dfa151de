"""The state of a registry from the records of its topic."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tailrace.schemas.model import Reference, Schema
from tailrace.schemas.subjects import (
    Subjects,
    Version,
    Written,
    clear_subject_record,
    config_record,
    context_record,
    delete_subject_record,
    mode_record,
    no_schema_record,
    noop_record,
    schema_record,
)


def fold(records: list[Written]) -> Subjects:
    subjects = Subjects()
    for key, value in records:
        subjects.apply(key, value)
    return subjects


def version(subject: str, number: int, identity: int, **more: object) -> Version:
    return Version(subject, number, identity, Schema(f'"s{identity}"'), **more)  # type: ignore[arg-type]


def test_records_are_those_of_confluents_registry() -> None:
    one = Version("a", 2, 7, Schema("{}", "JSON", (Reference("n", "s", 1),)))
    assert schema_record(one) == (
        b'{"keytype":"SCHEMA","subject":"a","version":2,"magic":1}',
        b'{"subject":"a","version":2,"id":7,"schemaType":"JSON",'
        b'"references":[{"name":"n","subject":"s","version":1}],"schema":"{}","deleted":false}',
    )
    assert delete_subject_record("a", 2) == (
        b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}',
        b'{"subject":"a","version":2}',
    )
    assert config_record(None, {"compatibilityLevel": "FULL"}) == (
        b'{"keytype":"CONFIG","magic":0}',
        b'{"compatibilityLevel":"FULL"}',
    )
    assert mode_record("a", "IMPORT")[1] == b'{"subject":"a","mode":"IMPORT"}'
    assert context_record(".x")[0] == (
        b'{"keytype":"CONTEXT","tenant":"default","context":".x","magic":0}'
    )


def test_records_of_older_registries_are_read() -> None:
    subjects = fold(
        [
            (b'{"keytype":"NOOP","magic":0}', None),
            (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}'),
            (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
             b'{"subject":"s","version":1,"id":1,"md5":"x","schema":"\\"int\\"","deleted":false}'),
            (b"garbage", b"garbage"),
            (b'{"keytype":"SOMETHING_NEW","magic":0}', b"{}"),
        ]
    )  # fmt: skip
    assert subjects.config_in_scope("s") == {"compatibilityLevel": "NONE"}
    assert subjects.version("s", -1) == Version("s", 1, 1, Schema('"int"'))
    assert subjects.unread == 2


def test_a_deleted_subject_keeps_its_ids_and_numbers() -> None:
    records = [schema_record(version("s", 1, 1)), schema_record(version("s", 2, 2))]
    subjects = fold([*records, delete_subject_record("s", 2)])
    assert subjects.names() == []
    assert subjects.names(deleted=True) == ["s"]
    assert subjects.by_id(2) is not None
    assert (subjects.next_version("s"), subjects.next_id(".")) == (3, 3)


def test_ids_and_numbers_do_not_come_back_after_a_deletion_for_good() -> None:
    records = [schema_record(version("s", 1, 1)), schema_record(version("s", 2, 2))]
    gone = [no_schema_record("s", 1), no_schema_record("s", 2), noop_record({".": 2}, {"s": 2})]
    subjects = fold([*records, *gone])
    assert subjects.by_id(1) is None
    compacted = fold([gone[-1]])
    for each in (subjects, compacted):
        assert (each.next_version("s"), each.next_id(".")) == (3, 3)


def test_each_context_counts_its_own_ids() -> None:
    subjects = fold(
        [
            context_record(".eu"),
            schema_record(version("s", 1, 1)),
            schema_record(version(":.eu:s", 1, 1)),
            schema_record(version(":.eu:t", 1, 5)),
        ]
    )
    assert (subjects.next_id("."), subjects.next_id(".eu")) == (2, 6)
    assert subjects.names(":.eu:") == [":.eu:s", ":.eu:t"]
    assert subjects.names(":*:") == [":.eu:s", ":.eu:t", "s"]
    assert subjects.names("") == ["s"]
    found = subjects.by_id(5, "t")
    assert found is not None
    assert found.subject == ":.eu:t"
    assert subjects.by_id(5) is None


def test_a_mode_is_that_of_the_subject_its_context_or_all() -> None:
    subjects = fold(
        [
            mode_record("s", "IMPORT"),
            mode_record(":.eu:", "READONLY"),
            mode_record(None, "READONLY"),
        ]
    )
    assert subjects.mode_in_scope("s") == "IMPORT"
    assert subjects.mode_in_scope("t") == "READONLY"
    assert subjects.mode_in_scope(":.eu:x") == "READONLY"
    assert subjects.mode_in_scope(":.us:x") == "READWRITE"
    subjects.apply(*mode_record(None, "READONLY_OVERRIDE"))
    assert subjects.mode_in_scope("s") == "READONLY_OVERRIDE"


def test_references_are_known_from_both_ends() -> None:
    user = Version("u", 1, 2, Schema("{}", "JSON", (Reference("n", "s", 1),)))
    subjects = fold([schema_record(version("s", 1, 1)), schema_record(user)])
    assert subjects.users("s", 1) == [user]
    subjects.apply(*no_schema_record("u", 1))
    assert subjects.users("s", 1) == []


_subject = st.sampled_from(["a", "b", ":.x:a"])
_record = st.one_of(
    st.builds(
        lambda s, v, i, d: schema_record(version(s, v, i, deleted=d)),
        _subject,
        st.integers(1, 3),
        st.integers(1, 3),
        st.booleans(),
    ),
    st.builds(no_schema_record, _subject, st.integers(1, 3)),
    st.builds(lambda s: config_record(s, {"compatibilityLevel": "NONE"}), _subject),
    st.builds(lambda s: config_record(s, None), _subject),
    st.builds(lambda s, m: mode_record(s, m), _subject, st.sampled_from(["IMPORT", None])),
    st.builds(clear_subject_record, st.none()),
    st.builds(context_record, st.just(".x")),
)


@given(st.lists(_record, max_size=30))
def test_a_plain_table_of_versions_says_the_same(records: list[Written]) -> None:
    """The twin keeps nothing but the last record of each key."""
    subjects = fold(records)
    kept: dict[tuple[str, int], dict[str, object]] = {}
    for key, value in records:
        read = json.loads(key)
        if read["keytype"] == "SCHEMA" and value is None:
            kept.pop((read["subject"], read["version"]), None)
        elif read["keytype"] == "SCHEMA":
            kept[read["subject"], read["version"]] = json.loads(value or b"")
        elif read["keytype"] == "CLEAR_SUBJECT":
            kept = {
                place: one
                for place, one in kept.items()
                if not (one["deleted"] and not place[0].startswith(":."))
            }
    names = sorted({subject for subject, _ in kept})
    assert subjects.names(deleted=True) == names
    for name in names:
        expected = sorted(number for subject, number in kept if subject == name)
        assert [one.version for one in subjects.versions(name, deleted=True)] == expected
    for (subject, number), value in kept.items():
        one = subjects.version(subject, number, deleted=True)
        assert one is not None
        assert (one.id, one.deleted) == (value["id"], value["deleted"])
        assert one in subjects.places(one, deleted=True)
