"""The Postgres that tests and the demo start lets nobody else in."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailrace.testing.postgres import PostgresServer, binaries


def test_its_directory_and_socket_are_private(postgres_server: Any) -> None:
    sockets = Path(postgres_server.dsn().split()[0].removeprefix("host="))
    assert sockets.stat().st_mode & 0o777 == 0o700
    assert postgres_server.directory.stat().st_mode & 0o777 == 0o700
    assert (sockets / f".s.PGSQL.{postgres_server.port}").stat().st_mode & 0o777 == 0o700


def test_it_trusts_nobody(postgres_server: Any) -> None:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        pytest.skip("a user without a name: only the directory keeps others out")
    assert "trust" not in (postgres_server.data / "pg_hba.conf").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_does_not_get_in_and_the_server_has_not_root_s_groups(
    postgres_server: Any, database: Any
) -> None:
    import shutil

    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is not None:
        # Even where the path could be walked: it is not.
        tried = subprocess.run(
            [python, "-c", "import os,sys; os.listdir(sys.argv[1])",
             postgres_server.dsn().split()[0].removeprefix("host=")],
            user=12345, group=12345, extra_groups=[], capture_output=True, cwd="/",
        )  # fmt: skip
        assert b"PermissionError" in tried.stderr
    database.run("CREATE TABLE said (line text)", "COPY said FROM PROGRAM 'id -G'")
    ((groups,),) = database.rows("SELECT line FROM said")
    assert "0" not in groups.split()


def test_over_tcp_it_wants_the_password(tmp_path: Path) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    binaries()
    with PostgresServer(port=port) as server:
        tcp = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(f"{tcp} password=wrong")
        psycopg.connect(f"{tcp} password={server.password}").close()
