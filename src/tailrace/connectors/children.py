"""Processes of a worker: one for each task, one for each question to a connector's class.

A child has a socket of its own to the worker, of JSON lines, so that what a connector prints
disturbs nothing; it leads a process group, which is ended whole, so that what a connector forked
goes too. It dies with its worker: the socket's end tells it, and the kernel does.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson

from tailrace.clock import SYSTEM
from tailrace.connectors.errors import ConnectorEndedError, ConnectorError, ConnectorHangsError
from tailrace.errors import reported

_PR_SET_PDEATHSIG = 1
LONGEST_LINE_BYTES = 64 << 20


class Child:
    """A process running `python -m MODULE`, and the socket to it. For one thread, but `say`."""

    def __init__(self, module: str, spec: Mapping[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        self._saying = threading.Lock()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno() if _has_number(sys.stderr) else subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._sock = ours
        self._killed = False
        self._killing = threading.Lock()
        self.say(spec)

    def say(self, message: Mapping[str, Any]) -> None:
        with suppress(OSError), self._saying:
            self._sock.sendall(orjson.dumps(message) + b"\n")

    def hear(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        """Give every message on until the child has ended."""
        kept = bytearray()
        while True:
            try:
                received = self._sock.recv(256 * 1024)
            except OSError:
                return
            if not received:
                return
            kept += received
            while (end := kept.find(b"\n")) >= 0:
                line = bytes(kept[:end])
                del kept[: end + 1]
                with suppress(ValueError):
                    on_message(orjson.loads(line))
            if len(kept) > LONGEST_LINE_BYTES:
                return

    def hear_one(self, seconds: float) -> dict[str, Any] | None:
        """The first message; None if the child ended without one. Raises TimeoutError."""
        found: list[dict[str, Any]] = []
        kept = bytearray()
        until = SYSTEM.monotonic() + seconds
        while b"\n" not in kept:
            left = until - SYSTEM.monotonic()
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(left)
            received = self._sock.recv(256 * 1024)
            if not received:
                return None
            kept += received
        found.append(orjson.loads(bytes(kept).partition(b"\n")[0]))
        return found[0]

    def kill(self) -> None:
        """End it and whatever it forked, and wait for it."""
        with self._killing:
            if not self._killed:
                # Once only: later the number may be another's.
                self._killed = True
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.kill()
        self._sock.close()

    def wait(self, seconds: float) -> bool:
        """Whether it ends by itself in time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ending(self) -> str:
        """How it ended, for people."""
        status = self.process.returncode
        if status is None:
            return "it runs"
        if status < 0:
            return f"signal {signal.Signals(-status).name}"
        return f"status {status}"


def ask(question: Mapping[str, Any], what: str, seconds: float) -> dict[str, Any]:
    """Ask a connector's class something, in a process of its own. Raises what it raised."""
    child = Child("tailrace.connectors.asked", question)
    try:
        answer = child.hear_one(seconds)
        if answer is None:
            child.wait(5)
            raise ConnectorEndedError(
                f"the process that asked {what} ended: {child.ending()}",
                hint="the connector's own code ended it; what it printed is on the worker's standard error",
            )
    except TimeoutError:
        raise ConnectorHangsError(
            f"{what} did not answer in {seconds:g} s",
            detail="its process was ended",
            hint="methods of a connector other than those of its tasks should answer at once",
        ) from None
    except OSError as error:
        raise ConnectorEndedError(f"the process that asked {what} was lost", detail=str(error)) from error  # fmt: skip
    finally:
        child.close()
    if "error" in answer:
        raised = reported(answer["error"])
        raise raised if isinstance(raised, ConnectorError) else ConnectorError(str(raised))
    return answer


def as_parent(arguments: list[str]) -> tuple[socket.socket, dict[str, Any]]:
    """In the child: the socket to the worker and the first message. What is printed goes to the
    worker's standard error from here on."""
    number, parent = int(arguments[0]), int(arguments[1])
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=number)
    sock.set_inheritable(False)
    kept = bytearray()
    while b"\n" not in kept:
        received = sock.recv(256 * 1024)
        if not received:
            sys.exit(1)
        kept += received
    spec: dict[str, Any] = orjson.loads(bytes(kept).partition(b"\n")[0])
    return sock, spec


def pack_address(address: str) -> str:
    """An address with its security, for the private socket to a child."""
    return pickle.dumps(address).hex()


def unpack_address(text: str) -> str:
    found: str = pickle.loads(bytes.fromhex(text))
    return found


def _has_number(stream: Any) -> bool:
    try:
        stream.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True
