"""Exceptions nobody foresaw, as errors of the views that meet them.

A record that decoding stumbles over, or an operator that raises what is none of our errors,
must not stop views that have nothing to do with it. Such an exception becomes an
`UnforeseenError`, a `ViewError`: the tick is then tried view by view, and those that fail
are left out (see `ticks.failed_views`). It says in one line what happened and where; the traceback
travels beside it.

Trouble of the machine (no memory, no disk, no connection) is not a view's: it passes.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tailrace.errors import TailraceError
from tailrace.pipelines.errors import UnforeseenError

if TYPE_CHECKING:
    from tailrace.pipelines.engine.graph import Node

_MACHINE = (OSError, MemoryError)
_SPARK = ("pyspark.", "py4j.")
_LONGEST = 300
_OURS = "/tailrace/"


def is_foreseen(problem: BaseException) -> bool:
    """Whether an exception is one of ours, or the machine's, and goes its own way."""
    return (
        isinstance(problem, (TailraceError, *_MACHINE))
        or not isinstance(problem, Exception)
        or type(problem).__module__.startswith(_SPARK)
    )


def unforeseen(problem: Exception, where: str) -> UnforeseenError:
    """An exception as an error in four parts; `where` says what was being done."""
    words = " ".join(f"{type(problem).__name__}: {problem}".split())
    error = UnforeseenError(
        words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…",
        detail=f"{where}{_place(problem)}",
        hint="what does not read this goes on; "
        "`tailrace pipeline status NAME --verbose` shows the traceback, for a report",
    )
    error.traceback = "".join(traceback.format_exception(problem))
    return error


def _place(problem: Exception) -> str:
    """The innermost line of ours, or of whoever's it is."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if _OURS in frame.filename]
    if not frames:
        return ""
    last = (ours or frames)[-1]
    return f"\nat {last.filename.rpartition(_OURS)[2]}:{last.lineno}"


def at_operator(node: Node) -> str:
    """Which operator it was."""
    try:
        what = " ".join(node.operator.describe().split())
    except Exception:  # whatever is wrong with it, the exception at hand is the news
        what = node.operator.kind
    return f"in operator {node.id}: {what if len(what) <= _LONGEST else what[:_LONGEST] + '…'}"


@contextlib.contextmanager
def located(where: Callable[[], str]) -> Iterator[None]:
    """What is raised inside and nobody foresaw becomes an error that says `where`."""
    try:
        yield
    except Exception as problem:
        if is_foreseen(problem):
            raise
        raise unforeseen(problem, where()) from problem
