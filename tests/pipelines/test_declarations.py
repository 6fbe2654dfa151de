"""Declarations that cannot mean anything are refused where they stand, with the way out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tailrace as tr
from tailrace.errors import TailraceError
from tailrace.pipelines.errors import DeclarationError
from tailrace.pipelines.topic_schema import parse_schema
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
