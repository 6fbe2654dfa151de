"""Resident tasks: Spark tasks that stay, and take the work of small ticks.

An empty Spark job costs more processor time than all that a small tick does. So one job runs for
as long as the session does; its single task connects to a Unix socket of the driver and is
given ticks there, one after the other. The operators of all views go to it once, not with every
tick. After a tick is committed it is told so, and brings the caches to it in the pause.

    driver ─► task     learn: a graph under a number │ tick: the rest of a `Work` │ catch up: versions
    task ─► driver     to a tick: its answers, one message each, and an empty one; else nothing
    message            length (8 bytes, big-endian), pickle

A task commits nothing. One that dies closes its socket: it is replaced, and the tick runs again in
another; if that dies too, the tick is a Spark job of its own, which says what is wrong. Spark starts the
worker, keeps it and ends it with the session; the task ends when the driver closes the socket.

The socket lies in a directory that only this user can enter, and only until the task has connected: among
Spark's scratch files, or in the temporary directory where their path is too long.
Resident tasks hold slots of Spark's for good, so only sessions that have slots to spare have any
(`session.start` says so in their settings): those of this machine.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import secrets
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.clock import SYSTEM
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.spark.importable import Freshness
from tailrace.pipelines.spark.session import LONGEST_SOCKET_DIRECTORY, RESIDENT_TASKS
from tailrace.pipelines.state.collector import settle
from tailrace.pipelines.state.memory import give_back
from tailrace.pipelines.state.store import Version
from tailrace.pipelines.ticks.cache_warming import bring_to
from tailrace.pipelines.ticks.job import Answer, Work, guarded, numbers

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

JOB_GROUP = "tailrace resident tasks"
START_SECONDS = 60.0  # until a task must have connected; else Spark has no room for it
IDLE_SECONDS = 60.0  # after which tasks beyond the first end
_ATTEMPTS = 2
_GRAPHS = 16  # that a task remembers
_MUCH_RECORDS = 20_000  # after so many memory is given back
_LENGTH = struct.Struct(">Q")
_NO_GRAPH = Graph({}, (), {})


class ResidentTaskEnded(Exception):
    """The other end of the socket is closed."""


@dataclass(frozen=True, slots=True)
class Learn:
    """The operators of ticks to come, under a number; they are bytes until the project's files
    are known to be as new as they are."""

    number: int
    graph: bytes
    forget: int | None = None


@dataclass(frozen=True, slots=True)
class RunTick:
    """A tick, its graph by number."""

    graph: int
    work: Work


@dataclass(frozen=True, slots=True)
class CatchUp:
    """A tick is committed: bring the caches to what it left."""

    state: str
    cache: str
    limit: int | None
    versions: Mapping[int, Version]


def _send(connection: socket.socket, message: bytes) -> None:
    try:
        connection.sendall(_LENGTH.pack(len(message)))
        connection.sendall(message)
    except OSError as closed:
        raise ResidentTaskEnded from closed


def _receive(connection: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return bytes(_exactly(connection, length))


def _exactly(connection: socket.socket, length: int) -> bytearray:
    found = bytearray(length)
    rest = memoryview(found)
    while rest:
        try:
            count = connection.recv_into(rest)
        except OSError as closed:
            raise ResidentTaskEnded from closed
        if not count:
            raise ResidentTaskEnded
        rest = rest[count:]
    return found


def serve(path: str, token: bytes) -> None:
    """The task: do what comes over the socket until it is closed."""
    graphs: dict[int, Graph] = {}
    fresh = Freshness()
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(ResidentTaskEnded):
        try:
            connection.connect(path)
        except OSError:
            return  # the driver waits no longer
        _send(connection, token + str(os.getpid()).encode())
        while True:
            asked = pickle.loads(_receive(connection))
            match asked:
                case Learn(number, graph, forget):
                    fresh.renew()
                    graphs.pop(-1 if forget is None else forget, None)
                    graphs[number] = pickle.loads(graph)
                case RunTick(number, work):
                    for answer in guarded(replace(work, graph=graphs[number])):
                        _send(connection, pickle.dumps(answer, protocol=5))
                    _send(connection, b"")
                    settle()
                    if sum(r.end - r.start for r in work.ranges) > _MUCH_RECORDS:
                        give_back()
                case CatchUp(state, cache, limit, versions):
                    bring_to(state, Path(cache), limit, versions)


@dataclass(slots=True, eq=False)
class ResidentTask:
    """The driver's end of one resident task."""

    connection: socket.socket
    pid: int  # of the process that the task is in
    projects: set[str] = field(default_factory=set)  # by their state: whose caches it has open
    used_at: float = 0.0
    _graphs: dict[int, Graph] = field(default_factory=dict)  # that it knows
    _next: int = 0

    @classmethod
    def start(cls, context: SparkContext, number: int) -> ResidentTask | None:
        """Start one; None if Spark has no room for it, or no more."""
        directory = tempfile.mkdtemp(prefix="task-", dir=_scratch(context))
        try:
            path, token = f"{directory}/task", secrets.token_bytes(32)
            with socket.socket(socket.AF_UNIX) as listener:
                try:
                    listener.bind(path)
                except OSError as problem:  # TMPDIR is longer than a socket's name may be
                    log.debug("no socket for a resident task", extra={"reason": str(problem)})
                    return None
                listener.listen(1)
                job = _Job(context, number, path, token)
                connection = job.connected(listener)
            if connection is None:
                return None
            with contextlib.suppress(ResidentTaskEnded):
                hello = _receive(connection)
                if secrets.compare_digest(hello[: len(token)], token):
                    return cls(connection, int(hello[len(token) :]))
            _close(connection)
            return None
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def begin(self, work: Work) -> None:
        """Hand it a tick."""
        number = next((n for n, graph in self._graphs.items() if graph is work.graph), None)
        if number is None:
            number, self._next = self._next, self._next + 1
            forget = next(iter(self._graphs)) if len(self._graphs) >= _GRAPHS else None
            if forget is not None:
                del self._graphs[forget]
            self._graphs[number] = work.graph
            self._ask(Learn(number, pickle.dumps(work.graph), forget))
        self.projects.add(work.state)
        self._ask(RunTick(number, replace(work, graph=_NO_GRAPH)))

    def answers(self) -> Iterator[Answer]:
        """What it answers to that tick."""
        while message := _receive(self.connection):
            answer: Answer = pickle.loads(message)
            yield answer

    def catch_up(self, asked: CatchUp) -> None:
        self._ask(asked)

    def _ask(self, asked: Learn | RunTick | CatchUp) -> None:
        _send(self.connection, pickle.dumps(asked, protocol=5))

    def close(self) -> None:
        """Let it end."""
        _close(self.connection)


def _scratch(context: SparkContext) -> str | None:
    """Where Spark keeps what nobody needs after it, if the name of a socket may be so long."""
    found = context.getConf().get("spark.local.dir") or ""
    short = os.path.isdir(found) and len(os.fsencode(found)) <= LONGEST_SOCKET_DIRECTORY
    return found if short else None


class _Job:
    """The job that a resident task is, in a thread of its own; when it ends the socket is closed."""

    def __init__(self, context: SparkContext, number: int, path: str, token: bytes) -> None:
        self._ended = threading.Event()
        self._connection: socket.socket | None = None

        def task(_: Iterable[int]) -> Iterator[int]:
            serve(path, token)
            return iter(())

        def run() -> None:
            try:
                context.setJobGroup(JOB_GROUP, f"small ticks of views: resident task {number + 1}")
                numbers(context, 1).mapPartitions(task).collect()
            except Exception as problem:  # whoever uses the task finds its socket closed
                log.debug("resident task ended", extra={"reason": str(problem)[:500]})
            finally:
                self._ended.set()
                if self._connection is not None:
                    _close(self._connection)

        threading.Thread(target=run, name=f"resident-task-{number}", daemon=True).start()

    def connected(self, listener: socket.socket) -> socket.socket | None:
        """The socket to the task; None if Spark has no room for it, or no more."""
        listener.settimeout(0.1)
        until = SYSTEM.monotonic() + START_SECONDS
        while SYSTEM.monotonic() < until and not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                connection.settimeout(None)
                self._connection = connection
                return connection
        return None


def _close(connection: socket.socket) -> None:
    # Another thread may wait for it: closing alone would not wake that.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class ResidentTasks:
    """The resident tasks of a Spark session. Safe for threads."""

    def __init__(self, context: SparkContext, most: int) -> None:
        self._context = context
        self._most = most
        self._free: list[ResidentTask] = []  # the one used last at the end
        self._taken = 0
        self._started = 0
        self._lock = threading.Lock()

    def run(self, works: Sequence[Work]) -> list[Answer] | None:
        """The answers to a tick in so many parts; None where it must be a job of its own."""
        for _ in range(_ATTEMPTS):
            taken = self._take(works)
            if taken is None:
                return None
            kept: list[ResidentTask] = []
            try:
                for task, work in zip(taken, works, strict=True):
                    task.begin(work)
                answers = [answer for task in taken for answer in task.answers()]
                kept = taken
                return answers
            except ResidentTaskEnded:
                number = works[0].context.number
                log.warning(
                    "a resident task ended in a tick, which runs again",
                    extra={"tick": number, "pids": [task.pid for task in taken]},
                )
            finally:
                # What others have still to say belongs to a tick that did not happen.
                for task in taken:
                    if task not in kept:
                        task.close()
                self._put_back(kept, len(taken))
        return None

    def catch_up(self, asked: CatchUp) -> bool:
        """Have a task bring caches to what a committed tick left; False if none is free that has
        them open."""
        with self._lock:
            task = next((t for t in reversed(self._free) if asked.state in t.projects), None)
            if task is None:
                return False
            try:
                task.catch_up(asked)
            except ResidentTaskEnded:
                self._free.remove(task)
                task.close()
                return False
            return True

    def close(self) -> None:
        """Let all of them end that are free."""
        with self._lock:
            for task in self._free:
                task.close()
            self._free.clear()

    def _take(self, works: Sequence[Work]) -> list[ResidentTask] | None:
        """As many tasks as there are works, started if need be."""
        count, state = len(works), works[0].state
        with self._lock:
            if self._taken + count > self._most:
                return None
            self._taken += count
            # Whoever knows the project first, then whoever worked last.
            self._free.sort(key=lambda task: (state in task.projects, task.used_at))
            found = [self._free.pop() for _ in range(min(count, len(self._free)))]
        while len(found) < count:
            task = ResidentTask.start(self._context, self._started)
            self._started += 1
            if task is None:
                self._put_back(found, count)
                return None
            found.append(task)
        return found

    def _put_back(self, tasks: Sequence[ResidentTask], count: int) -> None:
        """`count` tasks were taken; `tasks` are those that go on."""
        now = SYSTEM.monotonic()
        with self._lock:
            self._taken -= count
            for task in tasks:
                task.used_at = now
            self._free += tasks
            newest = max((task.used_at for task in self._free), default=now)
            for task in [*self._free]:
                if task.used_at < now - IDLE_SECONDS and task.used_at < newest:
                    self._free.remove(task)
                    task.close()


_sessions: dict[SparkContext, ResidentTasks] = {}
_sessions_lock = threading.Lock()


def of(context: SparkContext) -> ResidentTasks:
    """The resident tasks of a session."""
    with _sessions_lock:
        if context not in _sessions:
            most = int(context.getConf().get(RESIDENT_TASKS, "0") or 0)
            _sessions[context] = ResidentTasks(context, most)
        return _sessions[context]


def close(context: SparkContext) -> None:
    """Let the resident tasks of a session end, before it does."""
    with _sessions_lock:
        found = _sessions.pop(context, None)
    if found is not None:
        found.close()
