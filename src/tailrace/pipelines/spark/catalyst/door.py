"""The JVM that answers for Spark: found, or started.

It listens on a Unix socket in a directory that only its user may enter, named by the version of
Spark and the text of its program: another version never answers. Whoever finds nobody there starts
it, one at a time (`lock`). Its file `pid` says which process it is; one that no longer answers is
killed by it. Left alone it ends by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

from tailrace.clock import SYSTEM
from tailrace.errors import ComponentMissingError
from tailrace.pipelines.errors import SparkUnavailableError
from tailrace.pipelines.spark import java

SUPPORTED = "4.3."  # versions of Spark: `Catalyst.java` calls what is inside of it
IDLE_SECONDS = 20.0
START_SECONDS = 180.0  # on a machine that is busy with other things
SOURCE = Path(__file__).with_name("Catalyst.java")
JVM = (
    "-Dio.netty.tryReflectionSetAccessible=true", "-Duser.timezone=UTC",
    "-Xss4m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError",
)  # fmt: skip
_started_here: list[subprocess.Popen[bytes]] = []  # one that nobody remembers is not waited for
_LONGEST_PATH = 100  # of a socket's name, on every system
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
    "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch",
    "sun.nio.cs", "sun.security.action", "sun.util.calendar",
)  # fmt: skip


def spark_version() -> str:
    return version("pyspark")


def program() -> str:
    """Which Spark answers, and by which program."""
    told = SOURCE.read_bytes() + spark_version().encode()
    return hashlib.blake2b(told, digest_size=6).hexdigest()


def connect() -> socket.socket:
    """A connection to the JVM, which is started if nobody answers."""
    place = directory()
    found = _connected(place / "socket")
    if found is not None:
        return found
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _connected(place / "socket")
        return found if found is not None else _started(place)


def end() -> None:
    """Kill the JVM, if it runs: it does not answer."""
    place = directory()
    pid = 0
    with contextlib.suppress(OSError, ValueError):
        pid = int((place / "pid").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes() if Path("/proc/self").exists() else b""
        if not words or str(place).encode() in words:  # another process may have its number now
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        (place / "socket").unlink()
    for process in _started_here:
        if process.pid == pid:
            process.wait()


def directory() -> Path:
    """Where it listens: of this user alone, or an error."""
    name = f"tailrace-spark-{os.geteuid()}-{program()}"
    place = Path(tempfile.gettempdir()) / name
    if len(os.fsencode(place)) > _LONGEST_PATH - len("/socket"):
        place = Path("/tmp") / name
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SparkUnavailableError(
            f"{place} is not a directory of this user alone",
            detail="Whoever can enter it could answer in Spark's place.",
            hint="remove it",
        )
    return place


def _connected(path: Path) -> socket.socket | None:
    found = socket.socket(socket.AF_UNIX)
    try:
        found.connect(str(path))
    except OSError:
        found.close()
        return None
    return found


def _started(place: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        (place / "socket").unlink()
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            _command(place), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place,
            start_new_session=True,
        )  # fmt: skip
    (place / "pid").write_text(str(process.pid))
    _started_here[:] = [process, *(one for one in _started_here if one.poll() is None)]
    until = SYSTEM.monotonic() + START_SECONDS
    while process.poll() is None and SYSTEM.monotonic() < until:
        found = _connected(place / "socket")
        if found is not None:
            return found
        SYSTEM.sleep(0.02)
    process.kill()
    process.wait()
    lines = (place / "log").read_text(errors="replace").strip().splitlines()
    raise SparkUnavailableError(
        "Spark's expressions did not start",
        detail="\n".join(lines[:3]) or f"no answer within {START_SECONDS:g} s",
        hint=f"look into {place / 'log'}; PySpark {spark_version()} must be one that is supported",
    )


def jars_of(module: Path) -> Path:
    """Spark's jars beside its Python module, which Spark's workers import from an archive:
    `pyspark/python/lib/pyspark.zip/pyspark/__init__.py`."""
    homes = [*module.parents, *(Path(home) for home in [os.environ.get("SPARK_HOME")] if home)]
    return next(
        (home / "jars" for home in homes if (home / "jars").is_dir()), module.parent / "jars"
    )


def _command(place: Path) -> list[str]:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise ComponentMissingError(
            "PySpark is not installed", hint="pip install 'tailrace[spark]'"
        )
    if not spark_version().startswith(SUPPORTED):
        raise SparkUnavailableError(
            f"expressions of views need PySpark {SUPPORTED}x, not {spark_version()}",
            detail="They are computed by what Spark does not promise to keep.",
            hint=f"pip install 'pyspark=={SUPPORTED}*'",
        )
    jars = jars_of(Path(spark.origin)) / "*"
    source = place / SOURCE.name
    shutil.copyfile(SOURCE, source)  # the package may lie in an archive or be replaced
    return [
        str(java.find().home / "bin" / "java"),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *JVM, "-cp", str(jars),
        "org.codehaus.janino.SimpleCompiler", str(source), "Catalyst",
        str(place / "socket"), str(int(IDLE_SECONDS * 1000)),
    ]  # fmt: skip
