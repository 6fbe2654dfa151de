"""Starting real servers for tests, and being sure that none is left behind."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TypeVar

import psutil

T = TypeVar("T")

_given: set[int] = set()


def free_port() -> int:
    """A port nobody listens on at this moment, and that was not given out before.

    It lies below the range from which the kernel takes the ports of connections, which
    could else take it before the server does.
    """
    for _ in range(1000):
        port = random.SystemRandom().randrange(15_000, 32_000)
        if port in _given:
            continue
        if is_free(port):
            _given.add(port)
            return port
    raise RuntimeError("no free port found")


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def on_free_ports(start: Callable[[list[int]], T], count: int = 1, attempts: int = 5) -> T:
    """What `start` makes of `count` free ports.

    Until a server listens on them they are nobody's: where another process was faster, and the
    server ended for that reason, it is started again with others.
    """
    while True:
        ports = [free_port() for _ in range(count)]
        try:
            return start(ports)
        except RuntimeError as ended:
            attempts -= 1
            taken = "in use" in str(ended).lower() or not all(is_free(port) for port in ports)
            if not taken or not attempts:
                raise


def cache_directory() -> Path:
    """The user's cache directory for things tests download once."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(root) / "tailrace"
    path.mkdir(parents=True, exist_ok=True)
    return path


def bound_to_us() -> list[str]:
    """A prefix that lets the kernel end a command when this process ends, however it ends."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL"] if found else []


class Server:
    """One child process with its output in a file; killed with all its children on stop.

    An interrupted or killed test run takes it along, where the machine has setpriv.
    """

    def __init__(
        self,
        command: Sequence[str],
        log_path: Path,
        *,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.command = list(command)
        self.log_path = log_path
        self._log: IO[bytes] = log_path.open("ab")
        self.process = subprocess.Popen(
            [*bound_to_us(), *self.command],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )

    def wait_until(self, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Return once `ready()` holds; fail with the end of the log if the server dies."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"server ended at once: {self.tail()}")
            if ready():
                return
            time.sleep(0.05)
        raise RuntimeError(f"server not ready after {seconds} s: {self.tail()}")

    def listens(self, port: int) -> bool:
        """Whether it is this server, or a child of it, that takes connections there."""
        try:
            family = [psutil.Process(self.process.pid)]
            family += family[0].children(recursive=True)
        except psutil.Error:
            return False
        for one in family:
            try:
                found = one.net_connections("inet")
            except psutil.Error:
                continue
            if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in found):
                return True
        return False

    def tail(self) -> str:
        """The last lines of its output."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-30:])

    def stop(self, seconds: float = 15) -> None:
        """Ask it to end; then make it."""
        try:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGTERM)
                try:
                    self.process.wait(seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(self.process.pid, signal.SIGKILL)
                    self.process.wait()
        finally:
            self._log.close()

    def kill(self) -> None:
        """kill -9, children included."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False
