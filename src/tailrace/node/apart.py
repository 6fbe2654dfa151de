"""Work done in a forked child, so that what it imports leaves with it.

A supervisor lives for months. Loading a project brings in Spark's classes, Arrow and
drivers that only its parts need; here it is loaded apart, and only the answer comes back.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from tailrace.errors import TailraceError
from tailrace.extras import component_missing
from tailrace.node.errors import NodeError

T = TypeVar("T")


def apart(work: Callable[[], T]) -> T:
    """The result of `work`, which must be picklable, or the TailraceError it raised.

    The caller has one thread: a fork copies no others.
    """
    return Apart(work).result()


class Apart(Generic[T]):
    """Work that has been begun in a fork, and goes on beside its caller."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._reading, writing = os.pipe()
        self._answer = b""
        self._ended = False
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._reading)
            _answer(work, writing)
        os.close(writing)

    def done(self, seconds: float = 0.0) -> bool:
        """Whether the answer is there, after waiting so long for it."""
        while not self._ended and select.select([self._reading], [], [], seconds)[0]:
            block = os.read(self._reading, 1 << 16)
            self._answer += block
            self._ended = not block
        return self._ended

    def result(self) -> T:
        """What came of it; waits for it. To be asked once."""
        while not self.done(3600.0):
            pass
        os.close(self._reading)
        _, status = os.waitpid(self._pid, 0)
        if not self._answer:
            raise NodeError(
                "the project could not be loaded",
                detail=f"its loader ended with status {os.waitstatus_to_exitcode(status)}",
                hint="a file of the project may have ended the process: look for exit() in it",
            )
        found = pickle.loads(self._answer)
        if isinstance(found, TailraceError):
            raise found
        return cast("T", found)

    def end(self) -> None:
        """Give the work up."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.close(self._reading)
        os.waitpid(self._pid, 0)


def _answer(work: Callable[[], object], writing: int) -> None:
    """In the child: send what came of it, and end without the parent's clean-up."""
    try:
        try:
            answer = pickle.dumps(work())
        except (TailraceError, ImportError) as error:
            told = error if isinstance(error, TailraceError) else component_missing(error)
            if told is None:
                raise
            told.__cause__ = told.__context__ = None  # may hold what cannot travel
            answer = pickle.dumps(told)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
