"""A time limit on the user's function while it builds its DataFrames."""

from __future__ import annotations

import ctypes
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TypeVar

from tailrace.pipelines.declare import Place, Stream
from tailrace.pipelines.errors import StreamStuckError

T = TypeVar("T")
BUILD_SECONDS = 120.0


class _TimeIsUp(BaseException):
    """Raised inside a function that does not return; not for the function to catch."""


def limited(work: Callable[[], T], stream: Stream) -> T:
    """`work()`, or StreamStuckError with the user's line when it takes too long.

    It stays in the calling thread, where Spark knows its session; a timer raises in that
    thread. A call that waits in C is ended when it comes back to Python.
    """
    seconds = BUILD_SECONDS if stream.timeout_ms is None else stream.timeout_ms / 1000
    caller = threading.get_ident()
    guard, seen = threading.Lock(), list[Place | None]()
    finished = False

    def time_is_up() -> None:
        with guard:
            if not finished:
                seen.append(_where(caller, stream))
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(caller), ctypes.py_object(_TimeIsUp)
                )

    timer = threading.Timer(seconds, time_is_up)
    timer.daemon = True
    timer.start()
    try:
        result = work()
        with guard:
            finished = True
        return result
    except _TimeIsUp:
        raise StreamStuckError(
            f'the function of stream "{stream.name}" has not returned after {seconds:g} s',
            detail=f"it was at {seen[0] or stream.declared_at}",
            hint="it only builds DataFrames: move work on rows into them",
        ) from None
    finally:
        with guard:
            finished = True
        timer.cancel()


def _where(thread: int, stream: Stream) -> Place | None:
    """The innermost line of the user's file that a thread is in."""
    own = stream.function.__code__.co_filename
    for summary in reversed(traceback.extract_stack(sys._current_frames().get(thread))):
        if summary.filename == own:
            return Place(summary.filename, summary.lineno or 0)
    return None
