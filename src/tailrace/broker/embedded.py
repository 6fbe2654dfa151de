"""A broker inside a program: on a thread of this process, or in a child process.

    with BrokerThread("data/") as broker:
        connect(broker.address)

The thread is there in milliseconds and shares this process's time; the child process
is for loads and for being killed.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tailrace.broker.errors import StartError
from tailrace.broker.server import Broker
from tailrace.broker.settings import BrokerSettings
from tailrace.clock import SYSTEM, Clock
from tailrace.log.files import FILES, Files


class UnsyncedFiles(Files):
    """Files that are never synced: for logs that need not survive the machine."""

    __slots__ = ()

    sync_data = staticmethod(lambda number: None)

    def sync_directory(self, path: str | Path) -> None:
        """Nothing."""

    def sync_filesystem(self, path: str | Path, held: int | None = None) -> None:
        """Nothing."""


class BrokerThread:
    """A broker on a thread; `broker` is the broker itself.

    `durable=False` is for tests: nothing is ever synced, so neither a busy disk nor many
    topics make it slow.
    """

    def __init__(
        self,
        *directories: str | Path,
        host: str | None = "127.0.0.1",
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM,
        durable: bool = True,
    ) -> None:
        self.broker = Broker(
            directories,
            host=host,
            port=port,
            settings=BrokerSettings(settings),
            clock=clock,
            files=FILES if durable else UnsyncedFiles(),
        )
        self._thread = threading.Thread(target=self.broker.run, name="broker", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        host, port = self.broker.address
        return f"{host}:{port}"

    def stop(self) -> None:
        """Stop cleanly and wait for it; a second call does nothing."""
        if self._thread.is_alive():
            self.broker.stop()
            self._thread.join()

    def __enter__(self) -> BrokerThread:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class BrokerProcess:
    """A broker in a child process, started as `tailrace broker start` starts it."""

    def __init__(
        self,
        *directories: str | Path,
        listen: str = "127.0.0.1:0",
        settings: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        arguments = [*(command or (sys.executable, "-P", "-m", "tailrace", "broker", "start"))]
        for directory in directories:
            arguments += ["--data", str(directory)]
        arguments += ["--listen", listen]
        for name, value in (settings or {}).items():
            arguments += ["--set", f"{name}={value}"]
        self.process = subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(environment) if environment is not None else None,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            self.process.kill()
            _, words = self.process.communicate()
            raise StartError("the broker did not start", detail=(line + words).strip()[-2000:])
        self.address = line.removeprefix("listening on ").strip()
        assert self.process.stderr is not None
        self._words: list[str] = []
        self._listener = threading.Thread(
            target=self._words.extend, args=(self.process.stderr,), daemon=True
        )
        self._listener.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.process.kill()
        self._gone()

    def stop(self) -> int:
        """SIGTERM; the exit status. A second call does nothing more."""
        if self.process.poll() is None:
            self.process.terminate()
        return self._gone()

    def words(self) -> str:
        """What the broker wrote to stderr so far."""
        return "".join(self._words)

    def _gone(self) -> int:
        status = self.process.wait()
        self._listener.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return status

    def __enter__(self) -> BrokerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
