"""Spark's own code for expressions: types, errors, a JVM that hangs or dies, who may ask it."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.pipelines.errors import EvaluationError, SparkUnavailableError, SqlTypeError
from tailrace.pipelines.spark.catalyst import client, door
from tailrace.pipelines.spark.catalyst.client import type_of, values_of
from tailrace.pipelines.spark.catalyst.kept_types import KeptTypes
from tailrace.testing.ticks import MemoryTables, table

NUMBERS = pa.array([6, None, 3], pa.int64())


@pytest.fixture
def own_jvm() -> Iterator[None]:
    """A JVM of this test alone, and of its successors."""
    client.close()
    with tempfile.TemporaryDirectory(prefix="tr-") as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", place)
        yield
        client.close()
        door.end()


def test_several_expressions_are_one_request() -> None:
    found = values_of(["12 DIV `a0`", "nullif(`a0`, `a1`)"], [NUMBERS, pa.array([6, 1, 2])], 3)
    assert [array.to_pylist() for array in found] == [[2, None, 4], [None, None, 3]]
    assert values_of(["1 + 1"], [], 4)[0].to_pylist() == [2] * 4
    many = pa.array(range(50_000))
    assert values_of(["a0 + 1"], [many], len(many))[0].to_pylist()[-1] == 50_000


def test_types_and_errors_are_sparks() -> None:
    assert type_of("map(`a0`, array(`a1`))", [pa.string(), pa.decimal128(4, 2)]) == pa.map_(
        pa.string(), pa.list_(pa.decimal128(4, 2))
    )
    with pytest.raises(SqlTypeError, match="DATATYPE_MISMATCH"):
        type_of("soundex(`a0`) + array(1)", [pa.string()])
    with pytest.raises(SqlTypeError, match="answer each time"):
        type_of("rand() + `a0`", [pa.float64()])
    with pytest.raises(EvaluationError, match="DIVIDE_BY_ZERO"):
        values_of(["1 DIV `a0`"], [pa.array([1, 0])], 2)


def test_an_expression_that_threw_gives_nothing_of_it_to_the_next_rows() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    for text in ("map_concat(`a0`, `a1`)", "transform_keys(map_concat(`a0`, `a1`), (k, v) -> v)"):
        twice = [pa.array([[("first", 1)]], kind)] * 2
        with pytest.raises(EvaluationError, match="DUPLICATED_MAP_KEY"):
            values_of([text], twice, 1)
        found = values_of([text], [pa.array([[], None], kind), pa.array([[], []], kind)], 2)[0]
        assert found.to_pylist() == [[], None]
        with pytest.raises(EvaluationError, match="DUPLICATED_MAP_KEY"):
            values_of([text], twice, 1)


def test_a_view_says_who_evaluates_and_a_row_that_throws_is_its_own_error() -> None:
    known = table("t", "id BIGINT, s STRING", ["id"])
    sql = "SELECT id, xpath_int(s, 'a') AS n FROM t"
    graph = compile_views([ViewDefinition("v", sql), ViewDefinition("w", "SELECT id, upper(s) AS u FROM t")], [known])  # fmt: skip
    assert "evaluated by spark: xpath_int(`s`, 'a')" in explain(graph, "v")
    assert "spark:" not in explain(graph, "w")
    assert "evaluated by arrow" in explain(graph, "w")
    memory = MemoryTables(graph)
    memory.upsert("t", {"id": 1, "s": "<a>7</a>"})
    memory.tick()
    assert memory.rows("v") == [{"id": 1, "n": 7}]
    memory.upsert("t", {"id": 2, "s": "no document"})
    with pytest.raises(EvaluationError):
        memory.tick()


@pytest.mark.timeout(600)
def test_a_jvm_that_is_killed_or_hangs_is_replaced(own_jvm: None) -> None:
    assert values_of(["`a0` + 1"], [NUMBERS], 3)[0].to_pylist() == [7, None, 4]
    os.kill(int((door.directory() / "pid").read_text()), signal.SIGKILL)
    assert values_of(["`a0` + 1"], [NUMBERS], 3)[0].to_pylist() == [7, None, 4]
    slow = pa.array(["a" * 60 + "!"])
    values_of(["regexp_like(`a0`, 'b')"], [slow], 1)
    hung = door._started_here[0]
    with pytest.raises(EvaluationError, match="did not answer within 1 s"):
        values_of([r"regexp_like(`a0`, '^(a|aa)+\\1x$')"], [slow], 1, patience=1)
    assert hung.poll() is not None  # and the next request finds nobody, as above


@pytest.mark.timeout(600)
def test_a_jvm_that_dies_in_the_middle_of_a_request_is_asked_again(own_jvm: None) -> None:
    text, many = "sha2(sha2(sha2(CAST(`a0` AS STRING), 512), 512), 512)", pa.array(range(60_000))
    first = values_of([text], [many], len(many))[0]
    pid = int((door.directory() / "pid").read_text())
    death = threading.Timer(0.05, os.kill, (pid, signal.SIGKILL))
    death.start()
    assert values_of([text], [many], len(many))[0].equals(first)
    death.join()


def test_another_version_of_spark_is_refused_with_those_that_are_supported(
    own_jvm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "spark_version", lambda: "4.4.0")
    with pytest.raises(SparkUnavailableError, match=r"4\.3\.x, not 4\.4\.0"):
        door.connect()


def test_a_request_of_thirty_columns_is_one_answer() -> None:
    columns = [pa.array([number, None, -number]) for number in range(30)]
    texts = [f"bin(`a{number}`)" for number in range(30)]
    found = values_of(texts, columns, 3)
    assert [one.to_pylist()[:2] for one in found] == [[format(n, "b"), None] for n in range(30)]


def test_what_depends_on_the_day_is_refused() -> None:
    for text in (
        "CAST(TIME '12:00' AS TIMESTAMP)",
        "date_add(current_date(), 1)",
        "make_date(1, 1, 1) + now()",
    ):
        with pytest.raises(SqlTypeError):
            type_of(text, [])


def test_a_directory_that_others_may_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = door.directory()
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o755)
    if place.is_relative_to(tmp_path):
        with pytest.raises(SparkUnavailableError, match="this user alone"):
            door.directory()


def test_what_spark_said_of_a_type_is_kept(tmp_path: Path) -> None:
    kept, schema = KeptTypes(tmp_path / "types"), pa.schema([("a0", pa.string())])
    assert kept.get("f(a0)", schema) is None
    kept.put("f(a0)", schema, "string")
    assert kept.get("f(a0)", schema) == "string"
    assert kept.get("f(a0)", pa.schema([("a0", pa.int64())])) is None
    for path in (tmp_path / "types").iterdir():
        path.write_bytes(b"{")
    assert kept.get("f(a0)", schema) is None


def test_the_jars_are_found_from_the_archive_that_workers_import(tmp_path: Path) -> None:
    home = tmp_path / "pyspark"
    (home / "jars").mkdir(parents=True)
    assert door.jars_of(home / "__init__.py") == home / "jars"
    archive = home / "python" / "lib" / "pyspark.zip" / "pyspark" / "__init__.py"
    assert door.jars_of(archive) == home / "jars"
