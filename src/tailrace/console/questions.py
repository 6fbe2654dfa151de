"""Questions in SQL, answered by processes that can be killed.

Each of a few threads has a process of its own (`tailrace.console.answering`), started with
its first question. One that does not answer in time is killed, one that ends is replaced;
the console loses nothing but the answer. A question waits for a free process at most as long
as it may take.
"""

from __future__ import annotations

import asyncio
import logging
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from tailrace.clock import SYSTEM
from tailrace.console.answering import GRACE_SECONDS, MEMORY_BYTES, too_large
from tailrace.console.errors import TooManyQuestionsError
from tailrace.errors import TailraceError, UsageError
from tailrace.serving.errors import QueryTimeoutError, ViewsError
from tailrace.serving.query import ANSWER_SECONDS

log = logging.getLogger(__name__)

PROCESSES = 4
WAITING = 100


class Questions:
    """Asks of one views' directory. Owns the threads and their processes."""

    def __init__(
        self,
        directory: Path,
        *,
        seconds: float = ANSWER_SECONDS + GRACE_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._directory = directory
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._pool = ThreadPoolExecutor(PROCESSES, "question")
        self._own = threading.local()
        self._guard = threading.Lock()
        self._processes: set[_Answering] = set()
        self._asked = 0
        self._closed = False

    async def ask(self, question: dict[str, Any]) -> tuple[bytes, str]:
        """The page as JSON, and the position it is from; or the error it ended with."""
        if self._asked >= PROCESSES + WAITING:
            raise TooManyQuestionsError(
                f"{self._asked} questions wait for an answer already", hint="ask again later"
            )
        until = SYSTEM.monotonic() + self._seconds
        self._asked += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._answer, question, until)
        finally:
            self._asked -= 1

    def close(self) -> None:
        """End every process; nobody may ask any more."""
        with self._guard:
            self._closed = True
            processes = list(self._processes)
        for process in processes:
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _answer(self, question: dict[str, Any], until: float) -> tuple[bytes, str]:
        if SYSTEM.monotonic() > until:
            raise self._late()
        process: _Answering | None = getattr(self._own, "process", None)
        if process is None or process.ended:
            process = self._start()
        # A process that has just been started has its own time for that.
        until = SYSTEM.monotonic() + self._seconds
        try:
            said = process.ask(orjson.dumps(question), until)
        except TimeoutError:
            self._end(process)
            raise self._late() from None
        except (EOFError, OSError) as ended:
            status = self._end(process)
            log.warning("a question ended its process", extra={"status": status})
            raise too_large() from ended
        if said[:1] == b"+":
            position, _, page = said[1:].partition(b"\n")
            return page, position.decode()
        raise _error(orjson.loads(said[1:]))

    def _start(self) -> _Answering:
        with self._guard:
            if self._closed:
                raise QueryTimeoutError("the console is stopping")
            if (old := getattr(self._own, "process", None)) is not None:
                self._processes.discard(old)
            process = self._own.process = _Answering(self._directory, self._memory_bytes)
            self._processes.add(process)
        return process

    def _end(self, process: _Answering) -> int:
        with self._guard:
            self._processes.discard(process)
        return process.kill()

    def _late(self) -> QueryTimeoutError:
        return QueryTimeoutError(
            f"the question was not answered in {self._seconds:g} s",
            hint="ask for less, or put the answer into a view of its own",
        )


class _Answering:
    """One process."""

    def __init__(self, directory: Path, memory_bytes: int) -> None:
        module = "tailrace.console.answering"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(directory), str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, question: bytes, until: float) -> bytes:
        """What it says; TimeoutError, or EOFError if it ends instead."""
        assert self._process.stdin is not None
        self._process.stdin.write(len(question).to_bytes(4) + question)
        return self._read(int.from_bytes(self._read(8, until)), until)

    def _read(self, size: int, until: float) -> bytes:
        assert self._process.stdout is not None
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        data = bytearray()
        while len(data) < size:
            left = until - SYSTEM.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise TimeoutError
            block = self._process.stdout.read(min(size - len(data), 1 << 20))
            if not block:
                raise EOFError
            data += block
        return bytes(data)

    def kill(self) -> int:
        self._process.kill()
        status = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        return status


def _error(parts: dict[str, str]) -> TailraceError:
    """The error that a process reported, of the kind it was there."""
    kinds: list[type[TailraceError]] = [UsageError, *_kinds(ViewsError)]
    kind = next((one for one in kinds if one.code == parts["code"]), ViewsError)
    return kind(parts["error"], detail=parts["detail"], hint=parts["hint"])


def _kinds(kind: type[TailraceError]) -> Iterator[type[TailraceError]]:
    """A kind of error, and every kind below it."""
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
