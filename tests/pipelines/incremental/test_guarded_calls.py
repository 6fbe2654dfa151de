"""What a view says of AES, ranges and errors on purpose that it does not take."""

from __future__ import annotations

import sys

import pytest

from tailrace.pipelines.errors import EvaluationError, NotIncrementalError, SqlTypeError
from tailrace.pipelines.incremental.compile import ViewDefinition, compile_views
from tailrace.pipelines.incremental.library import guarded
from tailrace.testing.ticks import MemoryTables, table

KNOWN = table("t", "id BIGINT, n BIGINT, s STRING", ["id"])


def memory(sql: str) -> MemoryTables:
    return MemoryTables(compile_views([ViewDefinition("v", sql)], [KNOWN]))


@pytest.mark.parametrize("call", ["aes_encrypt(s, s)", "aes_encrypt(s, s, 'CBC', 'PKCS')"])
def test_aes_encrypt_that_draws_a_vector_is_refused(call: str) -> None:
    with pytest.raises(NotIncrementalError, match="another vector each time") as caught:
        memory(f"SELECT id, {call} AS x FROM t")
    assert "^" in caught.value.detail
    assert "fifth argument" in (caught.value.hint or "")


def test_an_empty_vector_in_a_row_is_an_error_of_that_row() -> None:
    tables = memory("SELECT id, aes_encrypt(s, repeat('k', 16), 'CBC', 'PKCS', s) AS x FROM t")
    tables.upsert("t", {"id": 1, "n": 1, "s": "sixteen letters."})
    tables.tick()
    tables.upsert("t", {"id": 2, "n": 1, "s": ""})
    with pytest.raises(EvaluationError, match="has 16 bytes, not 0"):
        tables.tick()


def test_without_the_package_aes_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "available", lambda: False)
    with pytest.raises(NotIncrementalError, match="needs the package cryptography"):
        memory("SELECT id, aes_decrypt(s, s) AS x FROM t")


def test_assert_true_says_what_is_not_true() -> None:
    tables = memory("SELECT id, n FROM t WHERE assert_true(n > 0) IS NULL")
    tables.upsert("t", {"id": 1, "n": 1, "s": ""})
    tables.tick()
    tables.upsert("t", {"id": 2, "n": 0, "s": ""})
    with pytest.raises(EvaluationError, match="'n > 0' is not true!"):
        tables.tick()


def test_a_range_counts_and_has_a_key() -> None:
    tables = memory(
        "SELECT r.id, count(t.id) AS c FROM range(3) r LEFT JOIN t ON t.n = r.id GROUP BY r.id"
    )
    tables.upsert("t", {"id": 1, "n": 2, "s": ""})
    tables.tick()
    assert sorted((row["id"], row["c"]) for row in tables.rows("v")) == [(0, 0), (1, 0), (2, 1)]
    tables.delete("t", {"id": 1})
    tables.tick()
    assert sorted((row["id"], row["c"]) for row in tables.rows("v")) == [(0, 0), (1, 0), (2, 0)]
    assert memory("SELECT * FROM range(3)").graph.views["v"].key == ("id",)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("range(n)", "does not exist"),
        ("range(10000000)", "10,000,000 rows"),
        ("nowhere(1)", "in FROM"),
    ],
)
def test_a_range_that_a_view_cannot_hold_is_refused(call: str, said: str) -> None:
    with pytest.raises(Exception, match=said) as caught:
        memory(f"SELECT * FROM {call}")
    assert "^" in caught.value.detail  # type: ignore[attr-defined]


def test_counter_diff_follows_late_rows() -> None:
    tables = memory("SELECT id, counter_diff(n) OVER (ORDER BY id) AS x FROM t")
    for id, n in ((1, 10), (3, 15), (4, 2)):
        tables.upsert("t", {"id": id, "n": n, "s": ""})
    tables.tick()
    assert {r["id"]: r["x"] for r in tables.rows("v")} == {1: None, 3: 5, 4: None}
    tables.upsert("t", {"id": 2, "n": 11, "s": ""})
    tables.delete("t", {"id": 4})
    tables.tick()
    assert {r["id"]: r["x"] for r in tables.rows("v")} == {1: None, 2: 1, 3: 4}


POINT = "st_geomfromwkb(unhex('0101000000000000000000F03F0000000000000040'))"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT id, {POINT} AS x FROM t",
        f"SELECT id FROM t WHERE {POINT} = {POINT}",
        f"SELECT st_asbinary(g) AS x FROM (SELECT {POINT} AS g FROM t)",
        f"SELECT count(*) AS c FROM t GROUP BY {POINT}",
        f"SELECT id FROM t ORDER BY {POINT} LIMIT 3",
        f"SELECT id, array({POINT}) AS x FROM t",
    ],
)
def test_a_geometry_stays_inside_an_expression(sql: str) -> None:
    with pytest.raises(SqlTypeError, match="st_asbinary, st_srid") as caught:
        memory(sql)
    assert "st_geomfromwkb" in caught.value.detail
    assert "^" in caught.value.detail


def test_the_srid_of_a_row_and_one_that_is_not_known_are_refused() -> None:
    with pytest.raises(NotIncrementalError, match="must be a constant"):
        memory("SELECT id, st_srid(st_geomfromwkb(unhex(s), CAST(n AS INT))) AS x FROM t")
    with pytest.raises(SqlTypeError, match="the SRID 12345 is not known"):
        memory("SELECT id, st_srid(st_geomfromwkb(unhex(s), 12345)) AS x FROM t")


def test_geometries_in_geometries_without_end_are_an_error_of_the_row(
    request: pytest.FixtureRequest,
) -> None:
    tables = memory("SELECT id, st_asbinary(st_geomfromwkb(unhex(s))) AS x FROM t")
    tables.upsert("t", {"id": 1, "n": 1, "s": "010700000001000000" * 5_000})
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 20_000)  # as some library may have done
    request.addfinalizer(lambda: sys.setrecursionlimit(limit))
    with pytest.raises(EvaluationError, match="too deep"):
        tables.tick()
