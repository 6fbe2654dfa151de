"""A MariaDB server for tests: one a session, one database a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.certificates import self_signed
from servers.processes import Server, on_free_ports


class MariaDBServer:
    """Started by the constructor; user root without password, over TCP."""

    def __init__(self, directory: Path, program: str) -> None:
        self._directory = directory
        self._program = program
        self._data = directory / "data"
        install = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
        assert install is not None
        subprocess.run(
            [
                install, "--no-defaults", f"--datadir={self._data}", "--auth-root-authentication-method=normal",
                "--skip-test-db", *self._user(),
            ],
            check=True, capture_output=True,
        )  # fmt: skip
        on_free_ports(self._begin)

    def _begin(self, ports: list[int]) -> None:
        (self.port,) = ports
        self.start()

    def _user(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def start(self) -> None:
        self._server = Server(
            [
                self._program, "--no-defaults", f"--datadir={self._data}", f"--port={self.port}",
                "--bind-address=127.0.0.1", f"--socket={self._directory / 'socket'}",
                "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M",
                "--character-set-server=utf8mb4", f"--ssl-cert={self_signed()}/localhost.pem",
                f"--ssl-key={self_signed()}/localhost.key", *self._user(),
            ],
            self._directory / "mariadb.log",
        )  # fmt: skip
        self._server.wait_until(lambda: self._server.listens(self.port))

    def stop(self) -> None:
        self._server.stop()

    def dsn(self, database: str) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str | None = None) -> Any:
        import pymysql

        connection = pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database=database, autocommit=True
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        finally:
            connection.close()

    def create_database(self, name: str) -> str:
        self.execute(f"CREATE DATABASE `{name}`")
        return self.dsn(name)


def start_mariadb() -> Iterator[MariaDBServer]:
    """Yield a running server; skips where the machine has none."""
    program = (
        shutil.which("mariadbd")
        or shutil.which("mysqld")
        or shutil.which("mariadbd", path="/usr/sbin")
    )
    if program is None:
        pytest.skip("needs mariadbd (Debian: apt install mariadb-server)")
    pytest.importorskip("pymysql")
    with tempfile.TemporaryDirectory(prefix="tailrace-mariadb-") as directory:
        server = MariaDBServer(Path(directory), program)
        yield server
        server.stop()
