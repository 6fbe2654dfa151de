"""Declarations that cannot mean anything are refused where they stand, with the way out."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tailrace as tr
from tailrace import sinks, sources
from tailrace.errors import TailraceError
from tailrace.pipelines.errors import DeclarationError
from tailrace.pipelines.values.topic_schema import parse_schema
from tailrace.project import load
from tailrace.project.check import check
from tailrace.sources.declare import TableRef

SCHEMA = "user STRING, at TIMESTAMP, n INT"
AVRO = '{"type": "record", "name": "r", "fields": [{"name": "at", "type": "long"}]}'
ORDERS = TableRef("shop", "public", "orders")


@pytest.mark.parametrize(
    ("declare", "message", "hint"),
    [
        (lambda: tr.topic("t", SCHEMA, time="att"), "no column 'att' for time=", "did you mean 'at'?"),
        (lambda: tr.topic("t", SCHEMA, key="usr"), "no column 'usr' for key=", "did you mean 'user'?"),
        (lambda: tr.topic("t", SCHEMA, key=["n", "zzz"]), "no column 'zzz' for key=", "user, at, n"),
        (lambda: tr.topic("t", SCHEMA, time="n"), "is INT: not an event time", "n TIMESTAMP"),
        (lambda: tr.topic("t", time="at"), "no column 'at' for its event time", "schema="),
        (lambda: tr.topic("t", format="raw", time="at"), "no column 'at'", "schema="),
        (lambda: tr.topic("t", SCHEMA, metadata="user"), "a column 'user' already", "free"),
        (lambda: tr.topic("t", "a VARCHAR2, b INT"), "column 'a': unknown type 'VARCHAR2'", "STRING"),
        (lambda: tr.topic("t", "a STRIN"), "did you mean STRING?", "types:"),
        (lambda: tr.topic("t", "a INT, A STRING"), "'A' is there twice", "schema="),
        (lambda: tr.topic("t", "a INT,, b INT"), "names no column", "schema="),
        (lambda: tr.topic("t", "a"), "'a' is no column with its type", "schema="),
        (lambda: tr.topic("t", ""), "names no column", "schema="),
        (lambda: tr.topic("t", "a DECIMAL(99,2)"), "column 'a'", "schema="),
        (lambda: tr.topic("t", "{", format="avro"), "Avro schema of topic", "record"),
        (lambda: tr.topic("t", AVRO, format="avro", time="att"), "no column 'att'", "'at'"),
        (lambda: tr.topic("t", "a DECIMAL(3,5)"), "more digits behind the point", "schema="),
        (lambda: tr.topic("t", "a VARCHAR(0)"), "unknown type 'VARCHAR(0)'", "schema="),
        (lambda: tr.topic("t", SCHEMA, key=["n", "N"]), "key= names 'N' twice", "key="),
        (lambda: tr.topic("t", SCHEMA, key=["n", "n"]), "key= names 'n' twice", "key="),
        (lambda: tr.topic("t", "m MAP<STRING, INT>", key="m"), "is MAP<STRING, INT>: no key", "key="),
        (lambda: tr.topic("t", "m ARRAY<VARIANT>", key="m"), "no key", "key="),
        (lambda: tr.topic("t", key="id"), "no column 'id' for key=", "schema="),
        (lambda: tr.topic("t", SCHEMA, format="raw", key="n"), "no column 'n' for key=", "schema="),
        (lambda: tr.topic("t", SCHEMA, pattern="t.*", key="n"), "no such topic", "key="),
        (lambda: tr.topic("t", AVRO, format="avro", key="at"), "no such topic", "key="),
        (lambda: tr.topic("t", SCHEMA, wire="confluent"), "a form of Avro", "avro"),
        (lambda: tr.topic("t", AVRO, format="avro", registry="http://r"), "Confluent's format", "wire="),
        (lambda: tr.topic("t", SCHEMA, metadata=""), "metadata= is the name of a column", "metadata="),
        (lambda: tr.topic("t", SCHEMA, watermark="1 hour"), "watermark needs an event time", "time="),
        (lambda: tr.topic("t", SCHEMA, late_alarm=0.5), "late_alarm needs an event time", "time="),
        (lambda: tr.view("v", "SELECT 1", key=["a", "A"]), "names 'A' twice", "once"),
        (lambda: tr.view("v", "SELECT 1", indexes=["a", "a"]), "names 'a' twice", "once"),
        (lambda: tr.stream(tr.topic("t"), timeout="0 seconds"), "longer than nothing", "timeout="),
        (lambda: tr.stream(tr.topic("t"), format="raw", key="id"), "in the column key", "key="),
        (lambda: tr.stream(tr.topic("t"), key=["a", "a"]), "names 'a' twice", "key="),
        (lambda: tr.stream(tr.topic("t"), name="s", key={"x": "id"})(lambda x: x), "no output 'x'", "its outputs are s"),
        (lambda: tr.stream(tr.topic("t"), name="s")(lambda: None), "takes nothing, and the stream has 1 input", "one"),
        (lambda: tr.stream(ORDERS.changes("yesterday")), "cannot begin at 'yesterday'", "snapshot"),
        (lambda: tr.topic("t", SCHEMA, time="at", watermark="soon"), "watermark= 'soon' is not a duration", "seconds"),
        (lambda: tr.topic("t", SCHEMA, time="at", idle="?"), "idle= '?'", "seconds"),
        (lambda: tr.topic("t", SCHEMA, time="at", late_alarm=7), "late_alarm", "0.01"),
        (lambda: tr.stream(tr.topic("t"), trigger="1 secnd"), "trigger= '1 secnd'", "seconds"),
        (lambda: tr.stream(tr.topic("t"), limit=0), "limit", "limit="),
        (lambda: tr.stream(tr.topic("t"), retries=-1), "retries", "retries="),
        (lambda: tr.stream(ORDERS), "input 1 is a table", ".inserts()"),
        (lambda: tr.stream("orders"), "cannot read 'orders'", ".inserts()"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_declaration_is_said_with_its_place(
    declare: Callable[[], object], message: str, hint: str
) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()
    error = caught.value
    assert message in error.message
    assert "\n" not in error.message
    assert hint in error.hint + error.message
    assert re.search(r"test_declarations\.py:\d+", error.detail)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: sources.SQLite("s", "s.db", tables=["a"], history={"aa": "forever"}), "history= of source \"s\" names the table 'aa'"),
        (lambda: sources.SQLite("s", "s.db", tables=["a"], mask={"A": {"x": "null"}}), "mask= of source"),
        (lambda: sources.SQLite("s", "s.db", tables=["a"], columns={"a": []}), "says nothing about table 'a'"),
        (lambda: sources.SQLite("s", "s.db", tables=["a*"], exclude=["ab"], columns={"ab": ["x"]}), "'ab', which it"),
        (lambda: sources.SQLite("s", "s.db", partitions=1_000_000), "cannot have 1000000 partitions"),
        (lambda: sources.Postgres("s", "mysql://h/d"), "no Postgres address"),
        (lambda: sources.Postgres("s", "", where={"orders": ""}), "says nothing about table 'orders'"),
        (lambda: sources.Postgres("s", "", tables=["a.b"], where={"c.b": "x > 1"}), "where= of source"),
        (lambda: sources.Postgres("s", "", slot="Bad-Slot"), "name of a replication slot"),
        (lambda: sources.Postgres("s", "", publication=""), "publication without name"),
        (lambda: sources.Postgres("s", "", wal_warning="10 GiB", wal_critical="1 GiB"), "above its wal_critical"),
        (lambda: sources.Postgres("s", "", heartbeat="0 seconds"), "heartbeat of nothing"),
        (lambda: sources.Outbox(""), "table of an outbox is empty"),
        (lambda: sources.Outbox("o", topic="{kind}.events"), "cannot be the topic of an outbox"),
        (lambda: sources.MySQL("s", "postgres://h/d"), "no MySQL address"),
        (lambda: sinks.Postgres("mysql://h/d", table="t"), "must begin with postgres:// or postgresql://"),
        (lambda: sinks.MySQL("h", table="t"), "must begin with mysql://"),
        (lambda: sinks.SQLite("", table="t"), "path= is empty"),
        (lambda: sinks.Redis("http://h", "p"), "must begin with redis://"),
        (lambda: sinks.Elasticsearch("http://h", "a b"), "cannot be the name of an index"),
        (lambda: sinks.Elasticsearch("h:9200", "a"), "must begin with http://"),
        (lambda: sinks.Webhook("ftp://h"), "must begin with http://"),
        (lambda: sinks.Webhook("https://"), "must begin with http://"),
        (lambda: sinks.Email("h", "a@b"), "must begin with smtp://"),
        (lambda: sinks.Email("smtp://h", "a@b", body="{n"), "is no template"),
        (lambda: sinks.Search("i", {"n": "text:xx"}), "cannot be 'text:xx'"),
        (lambda: sinks.Search("i", {"n": "keyword:en"}), "cannot be 'keyword:en'"),
        (lambda: sinks.Delta("d", partition_by=("a", "a")), "names a column twice"),
        (lambda: sinks.Topic("a b"), "cannot be the name of a topic"),
        (lambda: sinks.Topic("__consumer_offsets"), "cannot be the name of a topic"),
        (lambda: sinks.Topic("t", bootstrap="nohost"), "is not an address"),
        (lambda: sinks.Function(lambda: None), "takes one Arrow table"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_source_or_a_sink_is_said(
    declare: Callable[[], object], message: str
) -> None:
    with pytest.raises(TailraceError) as caught:
        declare()
    assert message in caught.value.message


def test_what_is_said_about_a_table_may_name_it_in_any_way_that_captures_it() -> None:
    hidden = {"email": "sha256"}
    for tables in (["people"], ["public.*"], ["*.people"], ["public.people"], ["pe*"]):
        for name in ("people", "public.people"):
            sources.Postgres("s", "", tables=tables, mask={name: hidden})
    sources.Postgres("s", "", tables=["x"], outbox=sources.Outbox("box"), columns={"box": ["id"]})
    sources.MySQL("s", "mysql://h/d", tables=["d2.*"], history={"d2.t": "forever", "t": "1 day"})
    sources.SQLite("s", "s.db", tables=["a.b"], mask={"a.b": hidden})


def test_a_schema_may_be_written_as_in_spark() -> None:
    text = "id BIGINT NOT NULL, `a, b` STRING COMMENT 'x, y', d: DECIMAL(10, 2), s STRUCT<a: INT, b: ARRAY<STRING>>"
    assert parse_schema(text) == pa.schema(
        [
            ("id", pa.int64()),
            ("a, b", pa.string()),
            ("d", pa.decimal128(10, 2)),
            ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
        ]
    )


@pytest.mark.parametrize(
    "line",
    [
        'w = tr.windows.tumbling("one minute")',
        'w = tr.windows.hopping("1 minute", every="7 seconds")',
        'v = tr.windowed("v", "clicks", time="at", window=tr.windows.session("?"), select={"n": "count(*)"})',
        'v = tr.analytics.alert("v", "clicks", absent="a while", time="at")',
        'v = tr.analytics.compared("v", "w", columns="n", against="yesterday")',
        't = tr.topic("t", "a VARCHAR2")',
        'from tailrace import sources; s = sources.SQLite("s", "x.db", tables=["t"], poll="often")',
    ],
)
def test_a_mistake_in_a_file_of_the_project_names_file_and_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "main.py").write_text(f"import tailrace as tr\n\n{line}\n")
    with pytest.raises(TailraceError) as caught:
        load.load(tmp_path)
    assert "main.py:3" in caught.value.detail, caught.value.render()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('indexes=["naem"]', "no column 'naem' for indexes="),
        ('to=sinks.Search("i", fields={"naem": "text"})', "no column 'naem' for fields= of sink"),
        ('to=sinks.Delta("d", partition_by=("naem",))', "no column 'naem' for partition_by= of"),
        ('to=sinks.Delta("d", columns={"naem": "INT"})', "no column 'naem' for columns= of sink"),
        (
            'to=sinks.Email("smtp://h", "a@b", subject="{naem}!")',
            "no column 'naem' for the mail of",
        ),
        ('to=sinks.Email("smtp://h", "a@b", body="{row[naem]}")', "no column 'naem' for the mail"),
    ],
)
def test_columns_named_beside_the_sql_are_checked(more: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "main.py").write_text(
        "import tailrace as tr\nfrom tailrace import sinks\n"
        't = tr.topic("t", "id INT, name STRING", key="id")\n'
        f'v = tr.view("v", "SELECT id, name FROM t", key="id", {more})\n'
    )
    (wrong,) = [one.error for one in check(load.load(tmp_path)) if one.error is not None]
    assert message in wrong.message
    assert wrong.detail == "declared at pipelines/main.py:4"
    assert wrong.hint == "did you mean 'name'?"


def checked(home: Path, declared: str) -> list[TailraceError]:
    (home / "tailrace.toml").write_text('[project]\nname = "p"\n')
    (home / "pipelines").mkdir()
    with contextlib.closing(sqlite3.connect(home / "s.db")) as database:
        database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, email TEXT)")
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    (home / "pipelines" / "main.py").write_text(
        "import tailrace as tr\nfrom tailrace import sinks, sources\n"
        't = tr.topic("t", "id INT, name STRING", key="id")\n' + declared
    )
    try:
        return [one.error for one in check(load.load(home)) if one.error is not None]
    except TailraceError as error:
        return [error]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('s = sources.SQLite("s", "s.db", tables=["people"], mask={"people": {"emial": "null"}})', "mask= of source \"s\" names the column 'emial'"),
        ('s = sources.SQLite("s", "s.db", tables=["people"], columns={"people": ["emial"]})', "names the column 'emial'"),
        ('s = sources.SQLite("s", "s.db", tables=["people"]); f = tr.stream(s.table("orders").changes(), name="f")(lambda o: o)', "f reads s.orders, which nothing provides"),
        ('v = tr.view("v", "SELECT id FROM t", to="table")', "to= of 'v' names a str, which is no sink"),
        ('v = tr.view("v", "SELECT id FROM t", to=t)', "names a Topic 't', which is no sink"),
        ('v = tr.view("v", "SELECT id FROM t", to=[sinks.Delta("d"), sinks.Delta("d")])', "names the same delta sink twice"),
        ('v = tr.view("v", "SELECT id FROM t", to=[sinks.Delta("d", name="a"), sinks.Delta("e", name="a")])', "two sinks are called 'a'"),
        ('v = tr.view("v", "SELECT id FROM t", to=sinks.Delta("d", columns={"id": "NUMBER"}))', "'id': unknown type 'NUMBER'"),
        ('v = tr.view("v", "SELECT id FROM t", to=sinks.Topic("v"))', "topic 'v', which holds the rows of view v"),
        ('v = tr.view("v", "SELECT id FROM t", to=sinks.Topic("p.dead"))', "which holds the records that views"),
    ],
)  # fmt: skip
def test_what_parts_say_about_each_other_is_checked(
    declared: str, message: str, tmp_path: Path
) -> None:
    (wrong,) = checked(tmp_path, declared)
    assert message in wrong.message
    assert "main.py:4" in wrong.detail


def test_a_view_whose_sink_writes_what_it_reads_is_a_circle(tmp_path: Path) -> None:
    (wrong,) = checked(tmp_path, 'v = tr.view("v", "SELECT id FROM t", to=sinks.Topic("t"))')
    assert wrong.code == "cycle", wrong.render()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[topics.clicks]\npartitions = 0", "cannot have 0 partitions"),
        ("[topics.clicks]\npartitions = -3", "cannot have -3 partitions"),
        ('[topics.clicks]\npartitions = "many"', "cannot have 'many' partitions"),
        ("[topics.clicks]\npartitions = 2.5", "cannot have 2.5 partitions"),
        ("[topics.clicks]\npartitions = true", "cannot have True partitions"),
        ("[topics.clicks]\npartitions = 20_000", "cannot have 20000 partitions"),
        ('[topics."cli cks"]\npartitions = 1', "'cli cks' cannot be the name of a topic"),
        ("[topics.__consumer_offsets]\npartitions = 1", "cannot be the name of a topic"),
        ('[topics.e]\n"tailrace.events" = true\n"cleanup.policy" = "compact"', "would lose events"),
        ('[log]\nbootstrap = "kafka-1"', "log.bootstrap: 'kafka-1' is not an address"),
        ('[log]\nbroker."no.such" = 1', "no.such"),
        ('[log]\nbroker."log.retention.ms" = "x"', "log.retention.ms"),
        ('[spark]\nmaster = "yarnn"', "'yarnn' is no master of Spark"),
    ],
)
def test_what_the_project_file_sets_is_checked(settings: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text(f'[project]\nname = "p"\n{settings}\n')
    try:
        told = [one.error for one in check(load.load(tmp_path)) if one.error is not None]
    except TailraceError as error:
        told = [error]
    assert any(message in one.message for one in told), [one.render() for one in told]
