"""What a view says of AES, ranges and errors on purpose that it does not take."""

from __future__ import annotations

import sys

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.errors import EvaluationError, NotIncrementalError, SqlTypeError
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
    with pytest.raises(EvaluationError, match="empty initialization vector"):
        tables.tick()


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
    with pytest.raises(SqlTypeError, match=r"(?i)geometry") as caught:
        memory(sql)
    assert "^" in caught.value.detail


def test_an_srid_that_is_not_known_is_refused() -> None:
    with pytest.raises(SqlTypeError, match="12345"):
        memory("SELECT id, st_srid(st_geomfromwkb(unhex(s), 12345)) AS x FROM t")


def test_geometries_in_geometries_without_end_are_an_error_of_the_row(
    request: pytest.FixtureRequest,
) -> None:
    tables = memory("SELECT id, st_asbinary(st_geomfromwkb(unhex(s))) AS x FROM t")
    tables.upsert("t", {"id": 1, "n": 1, "s": "010700000001000000" * 5_000})
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 20_000)  # as some library may have done
    request.addfinalizer(lambda: sys.setrecursionlimit(limit))
    with pytest.raises(EvaluationError, match="WKB_PARSE_ERROR"):
        tables.tick()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("coalesce(n, CAST(s AS INT))", [5, 7, None]),
        ("coalesce(n, CAST(s AS INT), factorial(CAST(id AS INT)))", [5, 7, 6]),
        ("nvl(n, 14 DIV (id - 1))", [5, 14, 7]),
        ("coalesce(struct(n), from_json(s, 'n INT', map('mode', 'FAILFAST'))).n", [5, None, None]),
        ("n IN (5, CAST(s AS INT))", [True, None, None]),
        ("hex(s) IN ('78', bin(14 DIV (id - 1)))", [True, False, None]),
        ("id IN (1, CAST(s AS INT), 3, factorial(CAST(s AS INT)))", [True, False, True]),
    ],
)
def test_what_is_chosen_from_in_turn_is_computed_for_the_rows_that_need_it(
    call: str, expected: list[object]
) -> None:
    tables = memory(f"SELECT id, {call} AS x FROM t")
    for row in [(1, 5, "x"), (2, None, "7"), (3, None, None)]:
        tables.upsert("t", dict(zip(("id", "n", "s"), row, strict=True)))
    tables.tick()
    assert [row["x"] for row in tables.rows("v")] == expected


def test_the_last_day_of_the_last_month() -> None:
    tables = memory(
        "SELECT id, last_day(DATE '9999-12-01') AS x, last_day(DATE '2100-02-01') AS y FROM t"
    )
    tables.upsert("t", {"id": 1})
    tables.tick()
    assert [str(value) for value in tables.rows("v")[0].values()] == [
        "1",
        "9999-12-31",
        "2100-02-28",
    ]
