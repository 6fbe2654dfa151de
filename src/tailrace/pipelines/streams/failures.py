"""Why a stream failed, in our four parts, and where in the user's files.

What goes wrong in a Python worker reaches the driver as the text of a traceback inside
other texts. Our own errors are read back out of it; the innermost frame in a file that is
neither Spark's nor ours is the user's line.
"""

from __future__ import annotations

import re
import traceback

from tailrace.client.errors import ClientError
from tailrace.pipelines.declare import Place, Stream
from tailrace.pipelines.errors import (
    CheckpointError,
    DataLostError,
    DeclarationError,
    PipelineError,
    StreamChangedError,
    StreamInterruptedError,
    StreamStuckError,
    UndecodableRecordError,
    UserFunctionError,
)
from tailrace.pipelines.streams.checkpoint import disk_full

_OURS: tuple[type[PipelineError], ...] = (
    DataLostError,
    StreamChangedError,
    UndecodableRecordError,
    DeclarationError,
    StreamStuckError,
)
_KNOWN = re.compile(rf"({'|'.join(kind.__name__ for kind in _OURS)}): (.+)")
_NOTE = re.compile(r"^\s*(detail|hint): (.+)$", re.MULTILINE)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
# The frames of a Java trace, and what it leaves out of them.
_JAVA_FRAME = re.compile(r"^(at [\w.$<>/]+\(.*\)|\.\.\. \d+ (more|elided))$")
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)$", re.M)
_FOREIGN = ("/site-packages/", "/pyspark/", "/tailrace/", "<frozen", "<string>", "/lib/python")
_FULL_DISK = ("No space left on device", "Disk quota exceeded")
# Spark's words for state or offsets that do not fit the query, and for damaged files.
_CHECKPOINT = (
    "STATE_STORE", "STATE_SCHEMA", "STREAMING_STATEFUL_OPERATOR", "CHECKPOINT", "metadata file",
    "Log file was malformed", "malformed log file", "sources in the checkpoint", "offset log",
)  # fmt: skip
_PASSING = (
    "BrokerUnavailableError", "RequestTimeoutError", "ProducerFencedError", "KafkaException",
    "Python worker exited", "Python worker failed to connect back", "ExecutorLostFailure",
    "EOFException", "Connection reset", "Connection refused", "Broken pipe", "Socket closed",
    "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
)  # fmt: skip


def described(stream: Stream, problem: BaseException) -> PipelineError:
    """The error of a stream's query as one of ours."""
    if isinstance(problem, PipelineError):
        return problem
    text = str(problem)
    if matched := _KNOWN.search(text):
        kind = next(kind for kind in _OURS if kind.__name__ == matched[1])
        notes = dict(_NOTE.findall(text[matched.end() : matched.end() + 2000]))
        detail = notes.get("detail", f'stream "{stream.name}"').strip()
        return kind(matched[2].strip(), detail=detail, hint=notes.get("hint", "").strip())
    if any(words in text for words in _FULL_DISK):
        return disk_full(stream.name, _line_with(text, _FULL_DISK))
    if user_place(problem) is None and any(words in text for words in _CHECKPOINT):
        return CheckpointError(
            f'stream "{stream.name}" cannot go on from its checkpoint',
            detail=_line_with(text, _CHECKPOINT),
            hint="change the function back, or `tailrace pipeline reset "
            f"{stream.name}` to begin anew",
        )
    if passes(problem):
        return StreamInterruptedError(
            f'stream "{stream.name}" was interrupted: {last_words(problem)}',
            detail="a broker or a worker was gone, or too slow to answer",
            hint="it is started again by itself; if it stays, look at the machine and the log",
        )
    return user_error(stream, problem)


def passes(problem: BaseException) -> bool:
    """Whether a failure may be over by the next attempt: a broker or a worker that is gone."""
    return isinstance(problem, ClientError | OSError) or any(
        words in str(problem) for words in _PASSING
    )


def crashed(problem: BaseException) -> bool:
    """Whether a Python worker has ended under its task: killed, or by what it was given."""
    return "Python worker exited" in str(problem)


def of_the_code(problem: BaseException) -> bool:
    """Whether a function failed for what it is, not for the record it was given."""
    return last_words(problem).startswith(("ModuleNotFoundError", "ImportError", "NameError"))


def user_error(stream: Stream, problem: BaseException) -> UserFunctionError:
    """An exception from a user's function, with the place in the user's file."""
    place = user_place(problem) or stream.declared_at
    name = type(problem).__name__
    if name in ("PythonException", "StreamingQueryException"):
        name = ""  # its last line names the user's own exception
    return UserFunctionError(
        f'stream "{stream.name}" failed: {name + ": " if name else ""}{last_words(problem)}',
        detail=f"at {place}",
        hint="correct the function; the stream goes on from its last complete batch",
    )


def last_words(problem: BaseException) -> str:
    """What an exception says at last; of a Python traceback inside it, the exception."""
    text = str(problem).split("\n=== Streaming Query ===")[0]
    found: list[str] = _EXCEPTION.findall(text)
    own = [line for line in found if not line.startswith(("org.", "java.", "py4j."))]
    if "Traceback (most recent call last)" in text and own:
        return own[-1].strip()
    if passing := _line_with(text, _PASSING):
        word = next(word for word in _PASSING if word in passing)
        return passing[passing.index(word) :][:200]
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    lines = [line for line in lines if not _JAVA_FRAME.match(line)]
    if not lines:
        return ""
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return lines[-1].removeprefix("Caused by: ").removeprefix(": ")
    return lines[0] if "JVM stacktrace" in text or "SQLSTATE" in lines[0] else lines[-1]


def user_place(problem: BaseException) -> Place | None:
    """The innermost place in a file of the user's, in the traceback or in its text."""
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if not any(part in frame.filename for part in _FOREIGN):
            return Place(frame.filename, frame.lineno or 0)
    for file, line in reversed(_FRAME.findall(str(problem))):
        if not any(part in file for part in _FOREIGN):
            return Place(file, int(line))
    return None


def _line_with(text: str, words: tuple[str, ...]) -> str:
    return next((l.strip() for l in text.splitlines() if any(w in l for w in words)), "")[:500]  # noqa: E741
