"""Postgres servers for tests: one per version and session, one database per test."""

from __future__ import annotations

import fcntl
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.archives import unpack
from servers.processes import cache_directory
from tailrace.errors import ComponentMissingError
from tailrace.node.processes import end_with_parent
from tailrace.testing.postgres import PostgresServer, binaries

__all__ = ["PostgresServer", "start_postgres"]

# Builds that run on any Linux, for versions the machine has none of.
ARTIFACT = "io.zonky.test.postgres:embedded-postgres-binaries-linux-{machine}:{release}"
RELEASES = {14: "14.19.0", 15: "15.14.0", 16: "16.10.0", 17: "17.6.0"}
MACHINES = {"x86_64": "amd64", "aarch64": "arm64v8"}


def start_postgres(version: int | None = None) -> Iterator[PostgresServer]:
    """Yield a running server; skips where the machine has none and can get none."""
    pytest.importorskip("psycopg")
    with tempfile.TemporaryDirectory(prefix="tailrace-pg-bin-") as scratch:
        try:
            try:
                found = binaries(version)
            except ComponentMissingError:
                found = fetched_binaries(version or 18, Path(scratch))
            server = PostgresServer(
                bin=found,
                settings={"max_prepared_transactions": "5"},
                start_with=end_with_parent(signal.SIGINT),  # also when a time-out ends the run
            )
        except ComponentMissingError as reason:
            pytest.skip(str(reason))
        yield server
        server.close()


def fetched_binaries(version: int, target: Path) -> Path:
    """The binaries of a major version, unpacked into `target`; the archive is fetched
    with Maven on first use and kept in the user's cache."""
    machine = MACHINES.get(platform.machine())
    if version not in RELEASES or machine is None:
        raise ComponentMissingError(f"no Postgres {version} for this machine")
    held = cache_directory() / "postgres"
    held.mkdir(parents=True, exist_ok=True)
    artifact = ARTIFACT.format(machine=machine, release=RELEASES[version])
    name, release = artifact.split(":")[1:]
    archive = held / f"{name}-{release}.jar"
    with (held / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes must not fetch at once
        if not archive.exists():
            maven = shutil.which("mvn")
            if maven is None:
                raise ComponentMissingError(
                    f"no Postgres {version}: Maven is not installed, and it is not in the cache"
                )
            run = subprocess.run(
                [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}",
                 f"-DoutputDirectory={held}"],
                capture_output=True, text=True,
            )  # fmt: skip
            if run.returncode or not archive.exists():
                raise ComponentMissingError(
                    f"no Postgres {version}: Maven could not fetch it", detail=run.stdout[-500:]
                )
    # The server runs as another user when we are root, and must get at its files.
    target.chmod(0o755)
    with zipfile.ZipFile(archive) as outer:
        inner = next(entry for entry in outer.namelist() if entry.endswith(".txz"))
        with outer.open(inner) as stream, tarfile.open(fileobj=stream, mode="r|xz") as files:
            unpack(files, target)
    return target / "bin"
