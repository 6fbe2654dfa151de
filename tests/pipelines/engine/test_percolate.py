"""Stored queries against their naive twin: queries × documents × changes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailrace as tr
from tailrace.analyzers import words_of
from tailrace.pipelines.declare import Percolation
from tailrace.pipelines.engine.operators import percolate
from tailrace.pipelines.engine.percolate.batch import Documents, compiled
from tailrace.pipelines.engine.percolate.fields import Fields
from tailrace.pipelines.engine.percolate.language import QueryFault, parse_query
from tailrace.pipelines.engine.percolate.queries import QuerySet
from tailrace.testing.percolations import MemoryPercolation, matches, plain_words, written

COLUMNS = "id INT, title STRING, body STRING, price DECIMAL(9,2), country STRING, n INT, x DOUBLE"
TEXTS = ("title", "body")
WORDS = ["red", "blue", "boat", "boats", "Boot", "house", "r2d2", "été"]
COUNTRIES = ["DE", "FR", "New York", "D*"]


def declared(**more: Any) -> Percolation:
    arguments: dict[str, Any] = {
        "text": list(TEXTS), "fields": ["price", "country", "n", "x"], "carry": ["owner"],
    }  # fmt: skip
    return tr.percolate(
        "alerts", tr.topic("listings", schema=COLUMNS),
        queries=tr.topic(
            "searches", schema="id INT, query STRING, owner STRING, once BOOLEAN, most INT", key="id"
        ),
        id="id", query="query", **{**arguments, **more},
    )  # fmt: skip


def words_in(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(texts, min_size=1, max_size=3)


word = st.sampled_from(WORDS)
column = st.sampled_from([None, *TEXTS])
number = st.integers(-3, 3)
leaf = st.one_of(
    st.tuples(st.just("word"), column, word),
    st.tuples(st.just("phrase"), column, words_in(word) | st.just(["red", "boat"])),
    st.tuples(st.just("wild"), column, st.sampled_from(["bo*", "b?at", "*o*t", "?ed", "r2*", "*s"])),
    st.tuples(st.just("wild"), st.just("country"), st.sampled_from(["D*", "?R", "*Y*k", "d*"])),
    st.tuples(st.just("equal"), st.just("country"), st.sampled_from(COUNTRIES)),
    st.tuples(st.just("equal"), st.sampled_from(["n", "price", "x"]), number),
    st.tuples(
        st.just("range"), st.sampled_from(["n", "price", "x"]),
        st.none() | number | st.just(Decimal("0.5")), st.none() | number, st.booleans(), st.booleans(),
    ),
    st.tuples(
        st.just("range"), st.just("country"), st.none() | st.sampled_from(COUNTRIES),
        st.none() | st.sampled_from(COUNTRIES), st.booleans(), st.booleans(),
    ),
    st.tuples(st.just("present"), st.sampled_from(["country", "n", "x"])),
    st.just(("all",)),
)  # fmt: skip
query = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.tuples(st.just("and"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("or"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("not"), inner),
        st.tuples(
            st.just("list"),
            st.lists(st.tuples(st.sampled_from(["", "+", "-"]), inner), min_size=1, max_size=4),
        ),
    ),
    max_leaves=6,
)
text = st.none() | st.lists(word | st.just("red boat"), max_size=6).map(" ".join)
document = st.fixed_dictionaries(
    {
        "title": text, "body": text,
        "price": st.none() | number.map(Decimal) | st.just(Decimal("0.5")),
        "country": st.none() | st.sampled_from(COUNTRIES), "n": st.none() | number,
        "x": st.none() | number.map(float) | st.just(float("nan")),
    }
)  # fmt: skip
change = st.tuples(st.integers(0, 5), st.none() | query)
tick = st.tuples(st.lists(change, max_size=4), st.lists(document, max_size=5), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(tick, min_size=1, max_size=5), st.sampled_from([1, 3]))
def test_every_pair_is_told_once_whatever_changes(ticks: list[Any], shards: int) -> None:
    alerts = MemoryPercolation(declared(), shards=shards)
    kept: dict[int, tuple[Any, int, str]] = {}
    for number, (changes, documents, doubtful) in enumerate(ticks, 1):
        for identity, one in changes:
            if one is None:
                alerts.remove(identity)
            else:
                alerts.put({"id": identity, "query": written(one), "owner": f"o{number}"})
        rows = [{**row, "id": at} for at, row in enumerate(documents)]
        now = dict(changes)  # the last of a tick counts
        for identity, one in now.items():
            if one is None:
                kept.pop(identity, None)
            else:
                former = kept.get(identity)
                same = former is not None and written(former[0]) == written(one)
                kept[identity] = (one, former[1] if same and former else number, f"o{number}")
        if doubtful:  # an attempt that is thrown away
            alerts.tick(rows, keep=False)
        told = alerts.tick(rows)
        expected = [
            (identity, version, owner, row["id"])
            for row in rows
            for identity, (one, version, owner) in sorted(kept.items())
            if matches(one, row, TEXTS)
        ]
        found = [(t["query_id"], t["query_version"], t["owner"], t["event"]["id"]) for t in told]
        assert sorted(found) == sorted(expected)
        assert not alerts.dead


@settings(max_examples=60, deadline=None)
@given(st.lists(query, min_size=1, max_size=30), st.lists(document, min_size=1, max_size=20))
def test_candidates_hold_all_that_match(queries: list[Any], documents: list[Any]) -> None:
    fields = Fields(
        tuple((name, "") for name in TEXTS),
        (("price", pa.decimal128(9, 2)), ("country", pa.string()), ("n", pa.int32()), ("x", pa.float64())),
    )  # fmt: skip
    stored = QuerySet(fields)
    for at, one in enumerate(queries):
        stored.put(b"%d" % at, written(one))
    columns = {name: [row[name] for row in documents] for name in fields.names}
    columns["price"] = [None if v is None else int(v * 100) for v in columns["price"]]
    for _ in range(2):  # anchors move after the first
        found = {m.key: m.documents for m in stored.match(Documents(fields, columns))}
        for at, one in enumerate(queries):
            bits = sum(matches(one, row, TEXTS) << n for n, row in enumerate(documents))
            assert found.get(b"%d" % at, 0) == bits, written(one)
    for at in range(len(queries)):
        stored.remove(b"%d" % at)
    assert not stored._leaves
    assert not stored._at
    assert not stored._always


def test_a_process_that_is_behind_or_ahead_of_a_state_catches_up() -> None:
    one, other = MemoryPercolation(declared()), MemoryPercolation(declared())
    row = {"id": 1, "title": "red boat"}
    for number in range(5):  # one operator, two histories: they take turns in one process
        one.put({"id": number, "query": "red"})
        other.put({"id": number, "query": "blue" if number else "boat"})
        assert [told["query_id"] for told in one.tick([row])] == list(range(number + 1))
        assert [told["query_id"] for told in other.tick([row])] == [0]
    percolate.stored_queries.cache_clear()
    assert len(one.tick([row])) == 5


def test_a_set_follows_the_noted_changes_without_reading_all() -> None:
    alerts = MemoryPercolation(declared())
    alerts.put({"id": 1, "query": "red"})
    alerts.put({"id": 2, "query": "blue"})
    alerts.tick([{"id": 1, "title": "red"}])
    for text_of_two in ("red", "boat"):
        alerts.put({"id": 2, "query": text_of_two})
        alerts.tick()
    state = alerts.states.of(0, alerts.compiled.percolate.id)
    scans: list[bytes] = []
    whole = type(state).scan
    state.scan = lambda prefix=b"", after=b"": scans.append(prefix) or whole(state, prefix, after)  # type: ignore[method-assign, func-returns-value]
    told = alerts.tick([{"id": 2, "title": "red boat"}])
    assert [(one["query_id"], one["query_version"]) for one in told] == [(1, 1), (2, 3)]
    assert scans == []


def test_what_is_told_has_the_event_whole_and_what_the_query_carries() -> None:
    alerts = MemoryPercolation(declared())
    alerts.put({"id": 3, "query": "price:9.50", "owner": 'a "b"'})
    row = {"id": 1, "title": 'x "y"', "price": Decimal("9.50"), "x": 0.5}
    assert alerts.tick([row]) == [
        {
            "op": "match", "query_id": 3, "query_version": 1, "owner": 'a "b"',
            "event": {
                "id": 1, "title": 'x "y"', "body": None, "price": "9.50", "country": None,
                "n": None, "x": 0.5,
            },
        }
    ]  # fmt: skip


def test_a_query_that_cannot_be_read_is_a_dead_letter_and_the_others_go_on() -> None:
    alerts = MemoryPercolation(declared(per_hour="most"), shards=2)
    alerts.put({"id": 1, "query": "red AND"})
    alerts.put({"id": 2, "query": "red"})
    alerts.put({"id": 3, "query": None})
    alerts.put({"id": 4, "query": "red", "most": -1})
    assert [told["query_id"] for told in alerts.tick([{"id": 1, "title": "red"}])] == [2]
    reasons = {one.offset: one.reason for one in alerts.dead}
    assert reasons == {
        1: "stored query 1 cannot be read: something to look for is missing, at character 8",
        3: "stored query 3 cannot be read: it is NULL",
        4: "stored query 4 cannot be read: -1 an hour is not between 0 and 10,000",
    }
    letter = next(one for one in alerts.dead if one.offset == 1)
    assert (letter.topic, letter.key, letter.value) == ("searches", b'{"id":1}', b"red AND")
    alerts.put({"id": 1, "query": "red"})  # mended
    alerts.put({"id": 2, "query": "("})  # spoilt: it is told no more
    assert [told["query_id"] for told in alerts.tick([{"id": 2, "title": "red"}])] == [1]
    assert len(alerts.dead) == 4


def test_once_and_so_often_an_hour() -> None:
    alerts = MemoryPercolation(declared(once="once", per_hour="most"), shards=3)
    alerts.put({"id": 1, "query": "red", "once": True})
    alerts.put({"id": 2, "query": "red", "most": 2})
    alerts.put({"id": 3, "query": "red", "once": False})
    alerts.put({"id": 4, "query": "red", "most": 0})

    def told(count: int) -> list[tuple[int, int]]:
        found = alerts.tick([{"id": at, "title": "red"} for at in range(count)])
        return sorted((one["query_id"], one["event"]["id"]) for one in found)

    assert told(3) == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    alerts.now_ms = 3_599_999
    assert told(1) == [(3, 0)]
    alerts.now_ms = 3_600_000
    assert told(1) == [(2, 0), (3, 0)]
    alerts.put({"id": 1, "query": "red boat", "once": True})  # another text: another query
    assert told(1) == [(1, 0), (2, 0), (3, 0)]
    alerts.remove(1)
    alerts.remove(2)
    alerts.tick()
    alerts.put({"id": 1, "query": "red boat", "once": True})
    alerts.put({"id": 2, "query": "red", "most": 1})
    assert told(1) == [(1, 0), (2, 0), (3, 0)]


FIELDS = Fields(
    (("title", "en"), ("body", "")),
    (
        ("price", pa.decimal128(10, 2)), ("country", pa.string()), ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()), ("n", pa.int64()), ("ok", pa.bool_()), ("f", pa.float32()),
    ),
)  # fmt: skip
MOMENT = datetime.datetime(2026, 7, 15, 12, tzinfo=datetime.UTC)
DOCUMENT: dict[str, object] = {
    "title": "Running shoes: the best of 2026", "body": "A state-of-the-art shoe, 3.14 in all",
    "price": 1050, "country": "New York", "at": int(MOMENT.timestamp() * 1e6),
    "day": (MOMENT.date() - datetime.date(1970, 1, 1)).days, "n": 10, "ok": True,
    "f": 0.10000000149011612,
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run", True), ("title:runs", True), ("body:shoes", False), ("shoes", True),
        ('"running shoe"', True), ('"shoes running"', False), ('"shoes the best"', True),
        ("state-of-the-art", True), ("stat-of-the-art", False), ("3.14", True), ("3.15", False),
        ("SHOE", True), ("body:art AND NOT title:art", True), ("nothing shoe", True),
        ("+nothing shoe", False), ("shoe -best", False), ("-nothing", True), ("NOT nothing", True),
        ("(nothing OR best) AND 2026", True), ("bes*", True), ("b?st", True), ("?est", True),
        ("bst*", False), ("body:*rt", True), ("*", True), ("*:*", True), ("country:*", True),
        ('country:"New York"', True), ("country:New\\ York", True), ("country:new*", False),
        ("country:New*", True), ("country:(Berlin OR New*)", True), ("price:10.5", True),
        ("price:10.505", False), ("price:>10.505", False), ("price:<10.505", True),
        ("price:[10 TO 11]", True), ("price:{10.5 TO 11]", False), ("price:[* TO 10.5}", False),
        ("price:>=10.5", True), ("price:>10.5", False), ("price:<=10.50", True), ("n:1e1", True),
        ("at:2026-07-15T12:00", True), ('at:"2026-07-15T14:00:00+02:00"', True),
        ("at:>2026-07-15", True), ("at:<2026-07-15", False), ("day:2026-07-15", True),
        ("day:[2026-07-01 TO 2026-07-31]", True), ("ok:true", True), ("ok:FALSE", False),
        ("f:0.1", True), ("f:<0.1", False), ("TITLE:best", True), ("a AND b OR best", True),
        ("best OR a AND b", True), ("(best OR a) AND b", False), ("--best", True), ("-(x y)", True),
        ("-(a best)", False), ("+(a best) +2026", True), ("NOT NOT best", True),
    ],
)  # fmt: skip
def test_the_language_means_what_its_reference_says(words: str, expected: bool) -> None:
    stored = QuerySet(FIELDS)
    stored.put(b"q", words)
    columns = {name: [DOCUMENT[name]] for name in FIELDS.names}
    assert [m.documents for m in stored.match(Documents(FIELDS, columns))] == [1] * expected
    # NULL matches nothing but NOT.
    empty = {name: [None] for name in FIELDS.names}
    found = [m.documents for m in stored.match(Documents(FIELDS, empty))]
    assert bool(found) == words.startswith(("-n", "NOT n", "*", "-(")), words


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "nothing to look for, at character 1"), ("  ", "nothing to look for, at character 1"),
        ("(a", '"(" is not closed, at character 1'), ("a)", '")" closes nothing, at character 2'),
        ("()", "an empty group, at character 2"), ('"a', "a quote is not closed, at character 1"),
        ("a AND", "something to look for is missing, at character 6"),
        ("AND a", '"AND" stands between nothing, at character 1'),
        ("a OR OR b", '"OR" stands between nothing, at character 6'),
        ("a - b", '"-" belongs to nothing, at character 3'),
        ("!!!", "'!!!' has no letters or digits, at character 1"),
        ("foo~", '"~" has no meaning here: put a backslash before it, at character 4'),
        ('"a b"~2', '"~" behind a phrase has no meaning here, at character 6'),
        ("tite:a", "no column 'tite' (did you mean 'title'?; quote a colon in text), at character 1"),
        ("title:", "no value behind 'title':, at character 7"),
        ("price:x", "price: 'x' is no number, at character 7"),
        ("price:1*", "'price' holds no text: wildcards mean nothing, at character 7"),
        ("price:[1 2]", 'a range is [a TO b]: "TO" is missing, at character 10'),
        ("price:[1 TO 2", "a range is not closed, at character 7"),
        ("price:>", "a bound is missing, at character 8"),
        ("title:[a TO b]", "'title' is searched by words: ranges are for fields=, at character 7"),
        ("day:2026-13-01", "day: '2026-13-01' is no date, at character 5"),
        ("ok:1", "ok: '1' is neither true nor false, at character 4"),
        ("f*o-b", "'f*o-b': only letters and digits stand beside wildcards, at character 1"),
        ("x" * 40, "words of 40 bytes and more are not searched, at character 1"),
        ("a\\", "a backslash at the end, at character 2"),
        ("(" * 200, "groups are nested too deeply, at character 102"),
        ("n:1e999", "n: '1e999' is no number that can be compared, at character 3"),
    ],
)  # fmt: skip
def test_a_query_that_means_nothing_says_why_and_where(words: str, reason: str) -> None:
    with pytest.raises(QueryFault) as raised:
        parse_query(words, FIELDS)
    assert str(raised.value) == reason


def test_bare_words_can_mean_all_of_them() -> None:
    alerts = MemoryPercolation(declared(operator="and"))
    alerts.put({"id": 1, "query": "red boat"})
    rows = [{"id": 1, "title": "red"}, {"id": 2, "title": "red", "body": "boat"}]
    assert [told["event"]["id"] for told in alerts.tick(rows)] == [2]


def test_the_words_of_a_text_are_those_of_the_search_sink() -> None:
    import tantivy

    plain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    plain = plain.filter(tantivy.Filter.remove_long(40)).filter(tantivy.Filter.lowercase())
    analyze = plain.build().analyze
    for text in ("A b " + "c" * 39, "x" * 40 + " y", "é" * 20 + " z", "漢" * 13 + " 漢字", "a_b"):
        assert [one for one in words_of("")(text) if one != "\x01"] == analyze(text)
    assert words_of("en")("running " + "x" * 50 + " shoes") == ["run", "\x01", "shoe"]
    assert words_of("")("Été, ÉTÉ") == plain_words("Été, ÉTÉ")


def test_a_pattern_that_could_take_for_ever_does_not() -> None:
    pattern = ("*", *(part for _ in range(20) for part in ("=a", "*")), "=b")
    assert not compiled(pattern)("a" * 5_000)
    assert compiled(pattern)("a" * 5_000 + "b")


def test_a_phrase_alone_matches_where_its_words_stand_together() -> None:
    stored = QuerySet(Fields((("title", ""),), (("country", pa.string()),)))
    for number, words in enumerate(('"red boat"', "country:[A TO C]", "country:B*", "red-boat")):
        stored.put(b"%d" % number, words)
    columns = {"title": ["a red boat", "boat red", None], "country": ["D", "B", None]}
    found = {
        match.key: match.documents for match in stored.match(Documents(stored.fields, columns))
    }
    assert found == {b"0": 1, b"1": 2, b"2": 2, b"3": 1}


def test_many_queries_are_not_looked_at() -> None:
    stored = QuerySet(Fields((("title", ""),), ()))
    for number in range(1_000):
        stored.put(b"%d" % number, f"red AND rare{number}")
    columns = {"title": ["red boat", "red rare7"]}
    for _ in range(2):
        found = [match.key for match in stored.match(Documents(stored.fields, columns))]
        assert found == [b"7"]
    before = stored.candidates
    list(stored.match(Documents(stored.fields, columns)))
    assert stored.candidates - before == 1


def test_what_is_told_is_json_that_reads_back() -> None:
    alerts = MemoryPercolation(declared())
    alerts.put({"id": 3, "query": "a", "owner": "\u2028\n"})
    told = alerts.tick([{"id": 1, "title": "a", "x": float("inf")}])[0]
    assert orjson.loads(orjson.dumps(told))["event"]["x"] == "Infinity"
