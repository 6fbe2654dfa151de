"""Work done in a forked child, so that what it imports leaves with it.

A supervisor lives for months. Loading a project brings in Spark's classes, Arrow and
drivers that only its parts need; here it is loaded apart, and only the answer comes back.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from typing import TypeVar, cast

from tailrace.errors import TailraceError
from tailrace.extras import component_missing
from tailrace.node.errors import NodeError

T = TypeVar("T")


def apart(work: Callable[[], T]) -> T:
    """The result of `work`, which must be picklable, or the TailraceError it raised.

    The caller has one thread: a fork copies no others.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _answer(work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if not answer:
        raise NodeError(
            "the project could not be loaded",
            detail=f"its loader ended with status {os.waitstatus_to_exitcode(status)}",
            hint="a file of the project may have ended the process: look for exit() in it",
        )
    found = pickle.loads(answer)
    if isinstance(found, TailraceError):
        raise found
    return cast("T", found)


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
