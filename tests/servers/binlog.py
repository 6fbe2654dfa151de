"""MariaDB and MySQL servers that write a binlog, and their databases as the contracts of
sources want them.

MariaDB comes from the machine's packages. MySQL is taken from the mirror that the machine's
own apt uses, unpacked into the cache directory, and runs through its own loader.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from servers.capture import Running
from servers.processes import Server, cache_directory, on_free_ports
from tailrace.sources import MySQL
from tailrace.sources.control import ask_for_snapshot
from tailrace.sources.mysql.settings import MySQLSettings
from tailrace.testing.source_log import SharedLog

SMALL_MYSQL = MySQLSettings(
    chunk_rows=100, part_rows=200, spill_rows=50, idle_cut_seconds=0.05, look_seconds=0.3,
    heartbeat_seconds=0.2,
)  # fmt: skip
SETTINGS = [
    "--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL", "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0",
    "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=64M", "--max-connections=100",
    "--default-time-zone=+05:45",  # nothing that is captured depends on it
]  # fmt: skip


class BinlogServer:
    """One server; user root without a password. `mariadb` or MySQL."""

    def __init__(
        self, directory: Path, *, mariadb: bool, number: int = 1, more: Sequence[str] = ()
    ) -> None:
        self.mariadb = mariadb
        self._directory = directory
        self._number = number
        self._more = list(more)
        self._data = directory / "data"
        self._user = ["--user=root"] if os.geteuid() == 0 else []
        if mariadb:
            self._program = [str(mariadb_program())]
            install = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
            assert install is not None
            subprocess.run(
                [
                    install, "--no-defaults", f"--datadir={self._data}",
                    "--auth-root-authentication-method=normal", "--skip-test-db", *self._user,
                ],
                check=True, capture_output=True,
            )  # fmt: skip
        else:
            self._program = mysql_program()
            subprocess.run(
                [
                    *self._program, "--no-defaults", "--initialize-insecure",
                    f"--datadir={self._data}", "--secure-file-priv=NULL", *self._user,
                ],
                check=True, capture_output=True,
            )  # fmt: skip
        on_free_ports(self._begin)

    def _begin(self, ports: list[int]) -> None:
        (self.port,) = ports
        self.start()

    def start(self) -> None:
        kind = [] if self.mariadb else [
            "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--mysqlx=OFF",
            "--secure-file-priv=NULL"
        ]  # fmt: skip
        self._server = Server(
            [
                *self._program, "--no-defaults", f"--datadir={self._data}", f"--port={self.port}",
                f"--socket={self._directory / 'socket'}", f"--server-id={self._number}",
                *SETTINGS, *kind, *self._more, *self._user,
            ],
            self._directory / "server.log",
        )  # fmt: skip
        self._server.wait_until(lambda: self._server.listens(self.port))

    def stop(self) -> None:
        self._server.stop()

    def connect(self, database: str | None = None) -> Any:
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database=database, autocommit=True,
            charset="utf8mb4", init_command="SET sql_mode = '', time_zone = '+00:00'",
        )  # fmt: skip

    def execute(self, statement: str, database: str | None = None) -> Any:
        with closing(self.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def create_database(self, name: str) -> str:
        self.execute(f"CREATE DATABASE `{name}`")
        return self.dsn(name)

    def dsn(self, database: str) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{database}"


def mariadb_program() -> str | None:
    return shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")


def mysql_program() -> list[str]:
    """MySQL's server with the loader it was built for; downloads it once."""
    root = cache_directory() / "mysql-server"
    if not (root / "usr/sbin/mysqld").exists():
        _unpack(root)
    libraries = root / "usr/lib/x86_64-linux-gnu"
    return [
        str(libraries / "ld-linux-x86-64.so.2"), "--library-path",
        f"{libraries}:{root / 'usr/lib/mysql/private'}", str(root / "usr/sbin/mysqld"),
    ]  # fmt: skip


def _unpack(root: Path) -> None:
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)"], capture_output=True, text=True
    )
    sites = [line for line in told.stdout.splitlines() if line.startswith("http")]
    site = next((one for one in sites if "security" not in one), None)
    if site is None:
        pytest.skip("needs MySQL: this machine's apt names no mirror")
    try:
        with urlopen(f"{site}/dists/sid/main/binary-amd64/Packages.xz", timeout=60) as answer:
            index = lzma.decompress(answer.read()).decode()
    except OSError as error:
        pytest.skip(f"needs MySQL: the mirror does not answer ({error})")
    packages: dict[str, dict[str, str]] = {}
    provided: dict[str, str] = {}
    for stanza in index.split("\n\n"):
        lines = [line.split(": ", 1) for line in stanza.split("\n") if ": " in line]
        entry = dict(line for line in lines if not line[0].startswith(" "))
        if "Package" in entry:
            packages[entry["Package"]] = entry
            for one in entry.get("Provides", "").split(","):
                provided.setdefault(one.strip().split(" ")[0], entry["Package"])
    wanted, taken = ["mysql-server-core"], set()
    with tempfile.TemporaryDirectory(dir=root.parent) as directory:
        made = Path(directory) / "root"
        made.mkdir()
        while wanted:
            name = wanted.pop()
            name = name if name in packages else provided.get(name, name)
            if name in taken or name not in packages:
                continue
            taken.add(name)
            entry = packages[name]
            depends = f"{entry.get('Depends', '')},{entry.get('Pre-Depends', '')}".split(",")
            for one in depends:
                first = one.split("|")[0].strip().split(" ")[0].split(":")[0]
                if first.startswith(("lib", "mysql")):
                    wanted.append(first)
            package = Path(directory) / "package.deb"
            with urlopen(f"{site}/{entry['Filename']}", timeout=120) as answer:
                package.write_bytes(answer.read())
            subprocess.run(["dpkg-deb", "-x", str(package), str(made)], check=True)
        shutil.rmtree(root, ignore_errors=True)
        made.rename(root)


def start_binlog_server(*, mariadb: bool) -> Iterator[BinlogServer]:
    """Yield a running server; skips where the machine has none."""
    pytest.importorskip("pymysql")
    if mariadb and mariadb_program() is None:
        pytest.skip("needs mariadbd (Debian: apt install mariadb-server)")
    with tempfile.TemporaryDirectory(prefix="tailrace-binlog-") as directory:
        server = BinlogServer(Path(directory), mariadb=mariadb)
        yield server
        server.stop()


def _quoted(statement: str) -> str:
    """The contracts have a table `lines`, which is a word of MySQL's own."""
    return re.sub(r"\blines\b", "`lines`", statement)


class MySQLCase:
    """A database of a server as the contracts of sources want it."""

    def __init__(
        self, server: BinlogServer, name: str, shared: SharedLog, directory: Path, *tables: str,
        create: bool = True,
        **settings: Any,
    ) -> None:  # fmt: skip
        self.server, self.schema, self.shared, self.directory = server, name, shared, directory
        self.address = server.dsn(name)
        self._parameters = {"tables": tables or ("items",), **settings}
        self.source = MySQL("shop", self.address, **self._parameters)
        if create:
            server.execute(f"CREATE DATABASE IF NOT EXISTS `{name}`")
        self.connection = server.connect(name)

    def execute(self, *statements: str) -> None:
        with self.connection.cursor() as cursor:
            for statement in statements:
                for single in statement.split("; "):
                    cursor.execute(_quoted(single))

    def alter(self, statement: str) -> None:
        self.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(_quoted(query))
            return list(cursor.fetchall())

    def columns(self, table: str) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(_quoted(f"SELECT * FROM {table} LIMIT 0"))
            return [column[0] for column in cursor.description]

    def position(self) -> str:
        from tailrace.sources.position import position

        return position(self.connection, "shop")

    def capture(self, *, fail_after: int | None = None, **changed: Any) -> Running:
        source = MySQL("shop", self.address, **{**self._parameters, **changed})
        return Running(source, self.shared, self.directory, SMALL_MYSQL, fail_after)

    @contextmanager
    def beside(self) -> Iterator[MySQLCase]:
        """The same database over a connection of its own."""
        other = MySQLCase(self.server, self.schema, self.shared, self.directory)
        with closing(other.connection):
            yield other

    def keyless(self, table: str) -> None:
        """The binlog tells all there is."""

    def empty(self, table: str) -> None:
        self.execute(f"TRUNCATE TABLE {table}")

    def snapshot(self, table: str) -> None:
        ask_for_snapshot(self.source, table, None)

    def drop_key(self, table: str) -> None:
        self.execute(f"ALTER TABLE {table} DROP PRIMARY KEY, MODIFY id INTEGER NULL")

    def add_key(self, table: str, column: str) -> None:
        self.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({column})")

    def close(self) -> None:
        self.connection.close()
        self.server.execute(f"DROP DATABASE `{self.schema}`")
