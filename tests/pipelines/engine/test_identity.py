"""Every field of every operator and expression is part of what it is, or says that it is not."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import importlib
import math
import pkgutil
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace as tr
from pipelines.engine.test_state_forms import QUERIES, TABLES, graph_of
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.declared_patterns import compile_pattern, compile_patterns
from tailrace.pipelines.engine import expression, graph, operators
from tailrace.pipelines.engine.expression import Call, Column, Literal
from tailrace.pipelines.engine.graph import Graph, Node
from tailrace.pipelines.engine.identity import encode, identity_fields, not_identity
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.patterns import matcher, program, slots
from tailrace.pipelines.engine.percolate import fields
from tailrace.pipelines.ticks.legacy_names import legacy_names
from tailrace.pipelines.values.types import parse_type

FIELDS = Path(__file__).with_name("identity_fields.txt")
LEGACY = Path(__file__).with_name("legacy_names.txt")
MORE_QUERIES = [
    "SELECT k, explode(xs) AS x FROM s.a",
    "SELECT k FROM s.b UNION ALL SELECT 3",
    "SELECT a.at, w.start FROM s.a, LATERAL (SELECT date_trunc('hour', a.at) AS start) w",
    "SELECT id FROM s.a WHERE at > now() - INTERVAL '1' MONTH OR at > date_trunc('DAY', now())",
    "SELECT id FROM s.a WHERE (at > now() - INTERVAL '1' HOUR AND f > 0) OR k = 1",
    "SELECT k, count(*) FILTER (WHERE f > 0) n, listagg(s, ',') WITHIN GROUP (ORDER BY d DESC) l"
    " FROM s.a GROUP BY k",
    "SELECT id, sum(d) FILTER (WHERE f > 0) OVER (PARTITION BY k ORDER BY id"
    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS t FROM s.a",
    "SELECT n, m, q FROM s.a MATCH_RECOGNIZE (PARTITION BY k ORDER BY at MEASURES MATCH_NUMBER() AS n,"
    " FINAL max(A.k) AS m, PREV(LAST(A.k, 1), 2) + (SELECT max(k) FROM s.b) AS q"
    " ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO LAST A"
    " PATTERN (A B?) WITHIN INTERVAL '1' HOUR DEFINE A AS k > 0, B AS k > FIRST(A.k)) AS m",
    "SELECT id, m OVER w AS m FROM s.a WINDOW w AS (ORDER BY id MEASURES CLASSIFIER() AS m"
    " ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING SEEK PATTERN (A B) DEFINE A AS k > 0)",
]
# Dataclasses of the same modules that no operator holds.
NO_PARTS = {
    "TickContext", "Arrivals", "_Side", "_Version", "_Combined", "Summed",
    "Attempt", "_Place", "_First", "_Last", "_All", "_Sums", "_Compiler", "Theta", "Kll", "Tuples",
}  # fmt: skip


def classes() -> set[type]:
    """The dataclasses that graphs are made of."""
    names = [
        one.name for one in pkgutil.walk_packages(operators.__path__, f"{operators.__name__}.")
    ]
    return {
        kind
        for module in (
            graph,
            expression,
            fields,
            matcher,
            program,
            slots,
            *map(importlib.import_module, names),
        )
        for kind in vars(module).values()
        if isinstance(kind, type)
        and dataclasses.is_dataclass(kind)
        and kind.__module__ == module.__name__
        and kind.__name__ not in NO_PARTS
    }


def parts(value: object) -> Iterator[Any]:
    """All dataclasses in a structure."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from parts(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from parts(item)


def graphs() -> Iterable[Graph]:
    for sql in (*QUERIES.values(), *MORE_QUERIES):
        yield graph_of(sql)
    payments = tr.topic("payments", schema="card BIGINT, amount INT, at TIMESTAMP")
    pattern = tr.pattern(
        "p", payments, key="card", order_by="at", within="1 minute", gap="10 seconds", match="!b -> a -> b",
        define={"a": "amount < 2", "b": "amount > 1"}, timeouts=True, late="drop",
    )  # fmt: skip
    yield compile_pattern(pattern, {}, {}).graph
    searches = tr.topic("searches", schema="id INT, query STRING, once BOOLEAN", key="id")
    percolation = tr.percolate(
        "alerts", tr.topic("listings", schema="title STRING, price INT"), queries=searches, id="id",
        query="query", text={"title": "text:en"}, fields="price", once="once",
    )  # fmt: skip
    made, _ = compile_patterns([percolation], {})
    yield made["alerts"].graph


def others(value: Any) -> list[Any]:
    """Values that are not this one, though they may look like it."""
    match value:
        case None:
            return [0, False, "", (), "None"]
        case bool():
            return [not value, int(value), str(value)]
        case int():
            return [value + 1, -value - 1, float(value), str(value), decimal.Decimal(value)]
        case float():
            return [-value, value + 1.5, math.nan, str(value)]
        case str():
            return [value + "x", value + "\0", value.swapcase() + " ", value.encode(), (value,)]
        case decimal.Decimal():
            finite = [value.scaleb(1), int(value)] if value.is_finite() else [decimal.Decimal(0)]
            return [*finite, str(value)]
        case bytes():
            return [value + b"\0", value.decode("latin1")]
        case tuple():
            changed = [(*value, None), [*value], value[::-1] if value != value[::-1] else (value,)]
            for at, item in enumerate(value):
                changed += [(*value[:at], other, *value[at + 1 :]) for other in others(item)[:2]]
                changed.append((*value[:at], *value[at + 1 :]))
            return changed
        case pa.DataType():
            return [pa.list_(value), pa.string() if value != pa.string() else pa.large_string()]
        case pa.Schema():
            return [
                value.append(pa.field("more", pa.int64())),
                pa.schema([field.with_name(f"{field.name} ") for field in value] or [("a", NULL)]),
                *(value.set(0, value.field(0).with_nullable(False)) for _ in value.names[:1]),
            ]
        case Mapping():
            return [{**value, "more": 1}, dict(list(value.items())[1:]) if value else {"a": 0}]
        case datetime.datetime():
            return [value + datetime.timedelta(microseconds=1), value.replace(tzinfo=None)]
    if dataclasses.is_dataclass(value):
        return [other for _, _, other in changed_fields(value)][:3] or [None]
    raise AssertionError(f"no other value than {value!r} is known")


NULL = pa.null()


def changed_fields(value: Any) -> Iterator[tuple[dataclasses.Field[Any], bool, Any]]:
    """Copies of a dataclass with one field changed, and whether it is another thing then."""
    known = {name for name, _ in identity_fields(type(value))}
    for field in dataclasses.fields(value):
        for other in others(getattr(value, field.name)):
            copy = object.__new__(type(value))
            for each in dataclasses.fields(value):
                object.__setattr__(copy, each.name, getattr(value, each.name))
            object.__setattr__(copy, field.name, other)
            yield field, field.name in known, copy


def test_every_field_of_every_part_is_part_of_the_identity_or_declared_not_to_be() -> None:
    seen: dict[type, set[bytes]] = {}
    for made in graphs():
        for part in parts(made):
            seen.setdefault(type(part), set())
            written = encode(part)
            if written in seen[type(part)]:
                continue
            seen[type(part)].add(written)
            for field, counts, other in changed_fields(part):
                same = encode(other) == written
                assert same != counts, f"{type(part).__name__}.{field.name}: {other!r}"
    assert set(seen) == classes(), "a query that makes one of the new class belongs to MORE_QUERIES"


def test_what_is_left_out_says_why() -> None:
    left_out = {
        f"{kind.__name__}.{field.name}"
        for kind in classes()
        for field in dataclasses.fields(kind)
        if field.name not in dict(identity_fields(kind))
    }
    assert left_out == {
        "Between.from_what", "Between.to_what", "Node.identity", "Node.level", "Recompute.reason",
        "TableInput.reading",
        "TableInput.wire",
    }  # fmt: skip


def test_fields_are_named_and_default_as_they_were() -> None:
    """A field is left out of the bytes where it has its default: with another default, or under
    another name, state of one operator would be taken for that of another."""
    now = {
        f"{kind.__name__}.{name} {'' if default is None else default.hex()}".rstrip()
        for kind in classes()
        for name, default in identity_fields(kind)
    }
    known = set(FIELDS.read_text().splitlines())
    assert known <= now, "give the new one a name of its own, and leave the default as it was"
    assert now <= known, f"add to {FIELDS.name}, if the default means 'as before'"


def test_names_of_the_version_before_are_known() -> None:
    for name, sql in QUERIES.items():
        known = {
            line.removeprefix(f"{name}: ")
            for line in LEGACY.read_text().splitlines()
            if line.startswith(f"{name}: ")
        }
        assert known <= set(legacy_names(graph_of(sql).nodes).values()), name


def test_what_the_version_before_could_not_say_has_no_name_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = graph_of("SELECT upper(a.s) AS u, b.k FROM s.a JOIN s.b ON a.s = b.s")
    named = {node.operator.kind for node in made.nodes if node.id in legacy_names(made.nodes)}
    assert named == {"keyed", "bag", "join", "result"}
    monkeypatch.setitem(expression.MEANINGS, "upper", 2)
    assert {n.operator.kind for n in made.nodes if n.id in legacy_names(made.nodes)} == {
        "keyed", "bag", "join",
    }  # fmt: skip
    monkeypatch.undo()

    def named_by(kind: type) -> set[str]:
        nodes: list[Node] = []
        for node in made.nodes:
            operator: Any = node.operator
            if isinstance(operator, Join):
                values = {f.name: getattr(operator, f.name) for f in dataclasses.fields(operator)}
                operator = kind(**values)
            nodes.append(dataclasses.replace(node, operator=operator))
        return {node.operator.kind for node in nodes if node.id in legacy_names(nodes)}

    @dataclasses.dataclass(frozen=True)
    class Defaulted(Join):
        more: int = 1

    @dataclasses.dataclass(frozen=True)
    class Changed(Join):
        more: int = dataclasses.field(default=1, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "more", 2)

    Defaulted.__name__ = Changed.__name__ = "Join"
    assert named_by(Defaulted) == {"keyed", "bag", "join", "result"}
    assert named_by(Changed) == {"keyed", "bag"}


def test_a_function_that_gives_other_answers_names_other_operators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over, beside = "SELECT upper(s) AS u, k FROM s.b", "SELECT lower(s) AS u, k FROM s.b"
    before = [graph_of(sql).views["v"].node for sql in (over, beside)]
    monkeypatch.setitem(expression.MEANINGS, "upper", 2)
    after = [graph_of(sql).views["v"].node for sql in (over, beside)]
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_texts_for_people_name_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {sql: [node.id for node in graph_of(sql).nodes] for sql in QUERIES.values()}
    for kind in classes():
        for text in ("describe", "sql", "shown", "__str__", "__repr__"):
            if text in vars(kind):
                value: Any = property(lambda self: "") if text == "sql" else lambda *_: ""
                if isinstance(vars(kind)[text], property) or callable(vars(kind)[text]):
                    monkeypatch.setattr(kind, text, value)
    assert {sql: [node.id for node in graph_of(sql).nodes] for sql in before} == before


def test_equal_parts_of_two_views_are_one_operator() -> None:
    one = "SELECT k, count(*) n FROM s.a WHERE f > CAST('NaN' AS DOUBLE) GROUP BY k"
    views = [ViewDefinition("v", one), ViewDefinition("w", one.replace(" n ", "  m "))]
    kinds = [node.operator.kind for node in compile_views(views, TABLES).nodes]
    assert sorted(kinds) == ["group", "keyed", "result", "result"]


# The encoding ---------------------------------------------------------------------------------

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
    st.decimals(), st.dates(), st.datetimes(timezones=st.just(datetime.UTC) | st.none()),
    st.times(), st.timedeltas(),
)  # fmt: skip
TYPES = st.recursive(
    st.sampled_from(
        [
            parse_type(name)
            for name in (
                "VOID", "BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY",
                "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL", "TIME(0)", "TIME(3)", "TIME(6)",
                "VARIANT", "DECIMAL(10,2)", "DECIMAL(11,2)", "DECIMAL(10,1)",
            )
        ]
    ),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.lists(st.tuples(st.text("ab", max_size=2), inner), max_size=3).map(pa.struct),
    ),
    max_leaves=5,
)  # fmt: skip
VALUES = st.recursive(
    LEAVES | TYPES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(Literal, inner, TYPES),
        st.builds(Column, st.text(max_size=3), TYPES),
        st.builds(lambda f, a, t: Call(f, tuple(a), t), st.text(max_size=3), st.lists(inner, max_size=3), TYPES),
    ),
    max_leaves=8,
)  # fmt: skip


def alike(one: Any, other: Any) -> bool:
    """The naive twin: are these the same thing, type and all?"""
    if type(one) is not type(other):
        return False
    match one:
        case float():
            bits = [struct.pack(">d", value) for value in (one, other)]
            return bits[0] == bits[1] or (one != one and other != other)
        case decimal.Decimal():
            return bool(one.as_tuple() == other.as_tuple())
        case tuple() | list():
            return len(one) == len(other) and all(map(alike, one, other))
        case dict():
            return alike(list(one.items()), list(other.items()))
        case pa.DataType():
            return bool(one == other)
        case datetime.datetime():
            return bool(one == other and one.utcoffset() == other.utcoffset())
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(alike(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


@given(VALUES, VALUES)
def test_two_structures_have_the_same_bytes_only_if_they_are_the_same(one: Any, other: Any) -> None:
    assert (encode(one) == encode(other)) == alike(one, other)


@given(VALUES, VALUES)
def test_no_bytes_are_the_beginning_of_others(one: Any, other: Any) -> None:
    """So parts that stand one after the other cannot be cut in two ways."""
    short, long = sorted([encode(one), encode(other)], key=len)
    assert short == long or not long.startswith(short)


@given(VALUES)
def test_a_value_is_not_taken_for_one_that_looks_like_it(value: Any) -> None:
    try:
        known = others(value)
    except AssertionError:
        return
    for other in known:
        assert (encode(other) == encode(value)) == alike(other, value), (value, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0), (1, True), (1, 1.0), ("a", b"a"), (("a", "b"), ("a,b",)), ((), None),
        (("ab", "c"), ("a", "bc")), (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
        ((1, (2, 3)), ((1, 2), 3)), (datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1)),
        (pa.struct([("null", pa.null())]), pa.null()), (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")), ("s", pa.string()),
    ],
)  # fmt: skip
def test_what_looks_alike_differs(one: Any, other: Any) -> None:
    assert encode(one) != encode(other)


def test_every_nan_is_one_and_names_of_elements_do_not_count() -> None:
    negative = struct.unpack(">d", b"\xff\xf8\0\0\0\0\0\1")[0]
    assert encode(math.nan) == encode(negative)
    assert encode(pa.list_(pa.field("item", pa.int32()))) == encode(
        pa.list_(pa.field("x", pa.int32()))
    )


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 0, pa.scalar(1), int, 1j])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no canonical form"):
        encode((value,))


def test_a_field_that_is_left_out_leaves_the_rest() -> None:
    @dataclasses.dataclass(frozen=True)
    class Part:
        a: int
        text: str = dataclasses.field(default="", metadata=not_identity("for people"))

    assert encode(Part(1, "x")) == encode(Part(1, "y"))
    assert encode(Part(1)) != encode(Part(2))
