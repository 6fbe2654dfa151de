"""The processes that a user named, and that alone may be hurt.

A process is one of the log's if it accepted a connection that we opened to the address which
the log gives for that broker: the kernel's tables of connections say so. It is held by a
descriptor of the kernel's, so a number that another process gets later is never hurt. Needs
Linux: /proc and pidfds.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.clock import SYSTEM, Clock
from tailrace.errors import UsageError
from tailrace.verify.errors import NotTheLogsError, VerifyError

Address = tuple[str, int]
ESTABLISHED = "01"
START_SECONDS = 120.0
STOP_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class NodeName:
    """`--node ID=pid:N,start:COMMAND`."""

    id: int
    pid: int
    start: str | None = None


def parse_node(text: str) -> NodeName:
    """Raises UsageError."""
    name, equals, rest = text.partition("=")
    first, _, start = rest.partition(",start:")
    kind, colon, number = first.partition(":")
    if not equals or not name.isdigit() or kind != "pid" or not colon or not number.isdigit():
        raise UsageError(
            f"a node is ID=pid:NUMBER,start:COMMAND, not {text!r}",
            hint="for example --node '1=pid:4711,start:systemctl start kafka'",
        )
    return NodeName(int(name), int(number), start or None)


class Node:
    """One process of the log. `hurt` methods are for one thread; `restore` undoes what is left."""

    def __init__(
        self,
        id: int,
        pid: int,
        address: Address,
        start: str | Sequence[str] | None = None,
        *,
        output: Path | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """Raises NotTheLogsError unless the process serves `address`."""
        self.id = id
        self.address = address
        self.start_command = start
        self.throw_away = False  # nobody misses it after the run
        self._output = output
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self._paused = False
        self._gone = False
        self.pid = -1
        self._descriptor = -1
        self._hold(pid)
        try:
            self._must_be_the_logs()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"node {self.id} (process {self.pid})"

    @property
    def up(self) -> bool:
        """It runs and is not paused, as far as we made it so."""
        return not self._gone and not self._paused

    # Hurting -------------------------------------------------------------------

    def pause(self) -> None:
        self._paused = True  # first, so that whatever comes now undoes it
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self._paused = False

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self._gone = True
        self._signal(signal.SIGKILL)
        self._wait_until_gone(STOP_SECONDS)

    def terminate(self) -> None:
        """Ask it to end, and wait until it is gone."""
        self._gone = True
        self._signal(signal.SIGTERM)
        self._wait_until_gone(STOP_SECONDS)

    def start(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Start it again and wait until it answers. Raises VerifyError."""
        assert self.start_command is not None
        self.launch()
        until = self._clock.monotonic() + START_SECONDS
        while self._clock.monotonic() < until:
            found = serving(self.address)
            if found is not None:
                self._hold(found)
                self._gone = False
                return
            if stopping():
                return
            self._clock.sleep(0.05)
        raise VerifyError(
            f"node {self.id} did not come back",
            detail=f"nothing answers at {_text(self.address)} after {START_SECONDS:g} s",
            hint=f"start it by hand: {self.start_command}",
        )

    def launch(self) -> None:
        """Run the command that starts it; does not wait."""
        assert self.start_command is not None
        if self._child is not None and self._child.poll() is None:
            return  # a start is on its way
        output = open(self._output, "ab") if self._output else subprocess.DEVNULL  # noqa: SIM115
        try:
            self._child = subprocess.Popen(
                self.start_command,
                shell=isinstance(self.start_command, str),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            if not isinstance(output, int):
                output.close()
        self._gone = True

    def restore(self) -> str | None:
        """Undo what is left of a fault; what a person has to do, if that cannot be done."""
        if self._paused:
            with contextlib.suppress(OSError):
                self.resume()
        if not self._gone or self.throw_away:
            return None
        if self.start_command is None:
            return f"node {self.id} is stopped: start it again"
        try:
            if serving(self.address) is None:
                self.start()
            return None
        except (VerifyError, OSError) as error:
            return f"node {self.id} is not back: {error}"

    def own(self, process: subprocess.Popen[bytes]) -> None:
        """It is a child of ours, of a log that is thrown away."""
        self._child = process
        self.throw_away = True

    def close(self) -> None:
        """Let go of it; it goes on."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._child is not None:
            self._child.poll()

    def end(self) -> None:
        """For a throw-away node: kill -9, whatever its state."""
        with contextlib.suppress(OSError):
            self._signal(signal.SIGKILL)
        if self._child is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self.close()

    # Inside --------------------------------------------------------------------

    def _hold(self, pid: int) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        try:
            self._descriptor = os.pidfd_open(pid)
        except OSError as error:
            raise NotTheLogsError(
                f"node {self.id}: there is no process {pid} that we may hurt",
                detail=error.strerror or str(error),
            ) from error
        self.pid = pid

    def _must_be_the_logs(self) -> None:
        found = serving(self.address)
        if self.pid == os.getpid():
            raise NotTheLogsError(f"node {self.id}: process {self.pid} is this very command")
        if found != self.pid:
            other = "no process that we can see" if found is None else f"process {found}"
            raise NotTheLogsError(
                f"node {self.id}: process {self.pid} does not serve this log",
                detail=f"{other} answers at {_text(self.address)}, the address of broker {self.id}",
                hint="name the process of that broker; nothing was hurt",
            )

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def _wait_until_gone(self, seconds: float) -> None:
        readable, _, _ = select.select([self._descriptor], [], [], seconds)
        if not readable:
            raise VerifyError(f"node {self.id} did not end within {seconds:g} s")
        if self._child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(5)
                self._child = None


def serving(address: Address, seconds: float = 2.0) -> int | None:
    """The process that accepts connections to `address`, if it is one that we can look into."""
    try:
        connection = socket.create_connection(address, timeout=1.0)
    except OSError:
        return None
    with connection:
        ours, theirs = connection.getsockname()[1], connection.getpeername()[1]
        until = SYSTEM.monotonic() + seconds
        while True:
            inodes = _inodes(local=theirs, remote=ours)
            found = _owner(inodes) if inodes else None
            if found is not None or SYSTEM.monotonic() > until:
                return found
            SYSTEM.sleep(0.02)  # it was not accepted yet


def _inodes(*, local: int, remote: int) -> set[str]:
    """The sockets of this machine that are the other end of a connection between two ports."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            cells = line.split()
            here, there = cells[1].rpartition(":")[2], cells[2].rpartition(":")[2]
            if int(here, 16) == local and int(there, 16) == remote and cells[3] == ESTABLISHED:
                found.add(f"socket:[{cells[9]}]")
    return found - {"socket:[0]"}


def _owner(inodes: set[str]) -> int | None:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            for descriptor in os.listdir(f"/proc/{name}/fd"):
                if os.readlink(f"/proc/{name}/fd/{descriptor}") in inodes:
                    return int(name)
        except OSError:
            continue
    return None


def bound_to_us() -> list[str]:
    """A prefix by which the kernel ends a command when this thread ends, where there is one."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL"] if found else []


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
