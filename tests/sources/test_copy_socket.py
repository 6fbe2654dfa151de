"""COPY read from the socket gives what libpq gives, errors and all."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tailrace.sources.postgres.copy_socket import CopyError, CopySocket


@pytest.fixture(params=[True, False], ids=["socket", "libpq"])
def copy(request: pytest.FixtureRequest, database: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if not request.param:
        # As under TLS: the bytes on the socket are not ours to read.
        monkeypatch.setattr(
            "tailrace.sources.postgres.copy_socket._uses_gssapi", lambda connection: True
        )
    made = CopySocket(database.connection.pgconn)
    yield made
    made.close()


def read(copy: CopySocket, query: str) -> bytes:
    copy.start(f"COPY ({query}) TO STDOUT".encode())
    return b"".join(copy.contents(1 << 16))


def test_everything_arrives_and_the_connection_can_be_used_again(database: Any, copy: Any) -> None:
    expected = "".join(f"{i}\t{'x' * (i % 50)}\n" for i in range(1, 20001)).encode()
    query = "SELECT i, repeat('x', i % 50) FROM generate_series(1, 20000) i"
    assert read(copy, query) == expected
    assert database.rows("SELECT 1") == [(1,)]
    assert read(copy, "SELECT 1 WHERE false") == b""
    assert len(read(copy, "SELECT repeat('y', 3000000)")) == 3_000_001


def test_an_error_at_the_beginning_or_in_the_middle_is_told(database: Any, copy: Any) -> None:
    with pytest.raises(CopyError, match="does not exist") as refused:
        read(copy, "SELECT * FROM nowhere")
    assert refused.value.state == "42P01"
    with pytest.raises(CopyError, match="division by zero") as broken:
        read(copy, "SELECT 1 / (5000 - i) FROM generate_series(1, 10000) i")
    assert broken.value.state == "22012"
    assert database.rows("SELECT 1") == [(1,)]


def test_notices_between_the_rows_are_passed_over(database: Any, copy: Any) -> None:
    database.run(
        "CREATE FUNCTION noisy(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
        "IF i % 100 = 0 THEN RAISE NOTICE 'at %', i; END IF; RETURN i; END $$"
    )
    found = read(copy, "SELECT noisy(i) FROM generate_series(0, 999) i")
    assert found == "".join(f"{i}\n" for i in range(1000)).encode()


def test_a_server_that_goes_away_is_noticed(database: Any, copy: Any) -> None:
    copy.start(
        b"COPY (SELECT i, pg_sleep(CASE WHEN i > 5000 THEN 60 ELSE 0 END) "
        b"FROM generate_series(1, 5001) i) TO STDOUT"
    )
    pid = database.connection.info.backend_pid
    with psycopg.connect(database.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
    with pytest.raises((CopyError, psycopg.OperationalError)):
        list(copy.contents())
    database.connection.close()
    database.__post_init__()


def test_lines_that_look_like_the_heads_of_messages(copy: Any) -> None:
    """Lengths that hold a line end before a "d", and lines that begin with one."""
    lengths = [5, 6, 7, 261, 262, 2655, 2656, 2657, 0x640A - 5, 0x640A - 4]
    values = ", ".join(f"('d' || repeat('d', {n}))" for n in lengths)
    found = read(copy, f"SELECT v FROM generate_series(1, 300), (VALUES {values}) AS t (v)")
    assert found == b"".join(b"d" * (n + 1) + b"\n" for n in lengths) * 300
