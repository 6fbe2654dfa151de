"""Collated texts: what may take them, and every letter's key against Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.functions.collated import lower_case
from tailrace.pipelines.errors import NotIncrementalError, SqlTypeError
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KNOWN = table("t", "id BIGINT, s STRING", ["id"])


def memory(sql: str) -> MemoryTables:
    return MemoryTables(compile_views([ViewDefinition("v", sql)], [KNOWN]))


def test_a_join_by_a_collation_follows_its_tables() -> None:
    tables = memory(
        "SELECT a.id, b.id AS j FROM t a JOIN t b ON a.s = b.s COLLATE UTF8_LCASE AND a.id < b.id"
    )
    for id, s in ((1, "Straße"), (2, "STRAßE"), (3, "strasse")):
        tables.upsert("t", {"id": id, "s": s})
    tables.tick()
    assert [(row["id"], row["j"]) for row in tables.rows("v")] == [(1, 2)]
    tables.upsert("t", {"id": 1, "s": "STRASSE"})
    tables.tick()
    assert [(row["id"], row["j"]) for row in tables.rows("v")] == [(1, 3)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, s COLLATE UTF8_LCASE AS x FROM t",
        "SELECT upper(s COLLATE UTF8_LCASE) = 'A' AS x FROM t",
        "SELECT DISTINCT s COLLATE UTF8_LCASE AS x FROM t",
        "SELECT count(*) AS c FROM t GROUP BY s COLLATE UTF8_LCASE",
        "SELECT max(s COLLATE UTF8_LCASE) AS x FROM t",
        "SELECT id FROM t WHERE s COLLATE UTF8_LCASE LIKE 'a%'",
        "SELECT id FROM t WHERE s COLLATE UTF8_LCASE IN (SELECT s FROM t)",
        "SELECT CAST(s COLLATE UTF8_LCASE AS STRING) = 'a' AS x FROM t",
        "SELECT s || 'x' COLLATE UTF8_LCASE = 'ax' AS x FROM t",
    ],
)
def test_what_may_not_take_a_collated_text_is_refused_at_its_place(sql: str) -> None:
    with pytest.raises(NotIncrementalError, match="compared, ordered and partitioned by") as caught:
        memory(sql)
    assert "^" in caught.value.detail


@pytest.mark.parametrize("name", ["UNICODE", "UNICODE_CI", "de_AI", "NOPE"])
def test_a_collation_of_icu_is_refused_by_name(name: str) -> None:
    with pytest.raises(NotIncrementalError, match=f"the collation {name} is not known"):
        memory(f"SELECT id FROM t WHERE s COLLATE {name} = 'a'")


def test_a_type_with_a_collation_is_refused() -> None:
    with pytest.raises(SqlTypeError):
        memory("SELECT CAST(s AS STRING COLLATE UTF8_LCASE) = 'a' AS x FROM t")


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_every_letter_is_lowered_as_in_spark(spark: SparkSession) -> None:
    letter = "decode(unhex(lpad(hex(id), 8, '0')), 'UTF-32')"
    changed = spark.sql(
        f"SELECT id, {letter} AS a FROM range(1, 1114112)"
        f" WHERE (id < 55296 OR id > 57343) AND lower({letter}) <> {letter}"
    ).collect()
    codes = [code for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    ours = {code: lower_case(chr(code)) for code in codes if lower_case(chr(code)) != chr(code)}
    final_sigma = {0x3C2}  # no capital, and yet equal to one
    assert {row["id"] for row in changed} | final_sigma == ours.keys()
    pairs = [(chr(code), key) for code, key in ours.items()]
    frame = spark.createDataFrame(pairs, "a STRING, b STRING")
    assert frame.where("a COLLATE UTF8_LCASE = b").count() == len(pairs)
