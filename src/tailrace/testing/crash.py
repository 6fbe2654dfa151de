"""Killing a piece of work at every step it takes.

`kill_at_line` forks, runs the work in the child and sends it SIGKILL when it is about to
execute the n-th line of the files under test: no `finally`, no `atexit`, no flush. With
n = 1, 2, 3 … every step of a piece of code dies once.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from tailrace.clock import SYSTEM


def kill_at_line(
    work: Callable[[], object], files: Sequence[str], line: int, *, seconds: float = 15
) -> bool:
    """Run `work` in a child that dies at its `line`-th line in `files`.

    `files` are parts of file names. True: killed; False: the work ended before. An
    exception in the child is printed and raised here as AssertionError. A fork of a
    process with threads can inherit a lock that nobody will release: a child that is not
    done after `seconds` is killed where it is, which is a kill like any other.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
        child = os.fork()
    if child == 0:
        _work_and_die(work, files, line)
    status = _wait(child, seconds)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            raise AssertionError(f"child died of signal {os.WTERMSIG(status)}")
        return True
    if os.WEXITSTATUS(status) != 0:
        raise AssertionError("the work failed in the child, see above")
    return False


def _wait(child: int, seconds: float) -> int:
    deadline = SYSTEM.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if SYSTEM.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        SYSTEM.sleep(0.002)


def _work_and_die(work: Callable[[], object], files: Sequence[str], line: int) -> None:
    left = line

    def in_scope(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return in_scope

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        if any(part in frame.f_code.co_filename for part in files):
            return in_scope(frame, event, argument)
        return None

    try:
        sys.settrace(tracer)
        work()
        sys.settrace(None)
        os._exit(0)
    except BaseException:
        sys.settrace(None)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def count_lines(work: Callable[[], object], files: Sequence[str]) -> int:
    """How many lines of `files` the work executes, found by halving: ends dead or not."""
    low, high = 0, 64
    while kill_at_line(work, files, high):
        low, high = high, high * 4
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        if kill_at_line(work, files, middle):
            low = middle
        else:
            high = middle
    return low
