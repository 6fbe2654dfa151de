"""A process that answers questions in SQL, so that none can hurt the console.

`python -m tailrace.console.answering DIRECTORY BYTES`, with the views' directory. A question comes
on stdin as a 4-byte length and JSON; the answer goes to stdout as an 8-byte length, one
letter and the rest: `+`, the position, a line feed and the page as JSON, or `-` and the four
parts of an error. The process has a limit of memory, and ends itself when a question takes
much longer than it may: some of what DuckDB does cannot be interrupted. It ends with its
stdin, and after an answer for which there was no memory.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from tailrace.errors import TailraceError
from tailrace.serving.errors import QueryError, QueryTooLargeError
from tailrace.serving.query import ANSWER_SECONDS
from tailrace.serving.reader import Page, Views

MEMORY_BYTES = 2 << 30
ANSWER_BYTES = 64 << 20
GRACE_SECONDS = 2


def answer(views: Views, question: dict[str, Any]) -> Page:
    """The page that a question asks for."""
    if "sql" in question:
        return views.sql(question["sql"], limit=question["limit"], most_bytes=ANSWER_BYTES)
    return views.rows(
        question["name"],
        where=question["where"],
        limit=question["limit"],
        after=question["after"],
        most_bytes=ANSWER_BYTES,
    )


def encode(page: Page) -> bytes:
    """A page as JSON, with decimals and times as text."""
    document = {"rows": page.rows, "next": page.next, "position": page.position}
    return orjson.dumps(document, default=str, option=orjson.OPT_NON_STR_KEYS)


def serve(views: Views, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer one question after the other."""
    while len(head := questions.read(4)) == 4:
        question = orjson.loads(questions.read(int.from_bytes(head)))
        signal.alarm(int(ANSWER_SECONDS) + GRACE_SECONDS)
        spent = False
        try:
            page = answer(views, question)
            said = b"+" + page.position.encode() + b"\n" + encode(page)
        except TailraceError as error:
            said = b"-" + orjson.dumps(error.as_dict())
        except Exception as error:
            spent = _out_of_memory(error)
            told = too_large() if spent else _cannot_be_shown(error)
            said = b"-" + orjson.dumps(told.as_dict())
        signal.alarm(0)
        answers.write(len(said).to_bytes(8) + said)
        answers.flush()
        if spent:
            return
        page, said = None, b""  # type: ignore[assignment]  # an answer may be large


def too_large() -> QueryTooLargeError:
    """The error of a question for which there was not enough memory."""
    return QueryTooLargeError(
        "the question needs more memory than it may take",
        hint="ask for less, or put the answer into a view of its own",
    )


def _cannot_be_shown(error: Exception) -> QueryError:
    return QueryError(
        "the answer cannot be shown",
        detail=f"{type(error).__name__}: {error}",
        hint="cast what lies beyond Python's values, such as a year past 9999, to a text",
    )


def _out_of_memory(error: BaseException) -> bool:
    import pyarrow as pa

    return isinstance(error, MemoryError | pa.ArrowMemoryError)


def limit_memory(most: int) -> None:
    """Let this process have `most` bytes beside what it has; the views' files, which are
    mapped and shared, do not count."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        held = pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        held = 512 << 20
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + most
    if hard == resource.RLIM_INFINITY or wanted < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))


def main() -> None:
    import duckdb  # noqa: F401  # its part of the memory is not the question's
    import pyarrow  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group
    views = Views(Path(sys.argv[1]))
    limit_memory(int(sys.argv[2]))
    with contextlib.suppress(BrokenPipeError):
        serve(views, sys.stdin.buffer, sys.stdout.buffer)
    os._exit(0)


if __name__ == "__main__":
    main()
