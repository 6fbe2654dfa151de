"""Asking Spark: which types expressions have, and their values for rows.

A request is answered within `ANSWER_SECONDS` or the JVM is killed and the request an error: the
view that asked fails, the others find a new JVM. One that dies on the way is started again and
asked again, three times. Columns are named `a0`, `a1`, … in the texts.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from tailrace.clock import SYSTEM
from tailrace.pipelines.errors import EvaluationError, NoAnswerError, SqlTypeError
from tailrace.pipelines.spark.catalyst import door
from tailrace.pipelines.spark.catalyst.functions import shown, told
from tailrace.pipelines.spark.catalyst.kept_types import KeptTypes
from tailrace.pipelines.spark.catalyst.schema import arrow_type, sent, sent_type
from tailrace.pipelines.values.function_references import JavaFunction

ANSWER_SECONDS = 120.0
SLICE_ROWS = 20_000
_LARGEST = 1 << 30
_PAUSES = (0.0, 0.3, 1.0, 3.0)  # seconds: a JVM that is being killed may still take a connection
_ROWS = "rows"  # a column that says how many rows there are, where no other does
_PLACE = re.compile(r"(; line \d+ pos \d+| \(line \d+, pos \d+\))$")
_guard = threading.Lock()
_free: list[tuple[int, socket.socket]] = []  # of this process, and those it was forked with


class _Lost(Exception):
    """The JVM has gone."""


def column(number: int) -> str:
    """The name of an argument in a text."""
    return f"`a{number}`"


def type_of(
    text: str, kinds: Sequence[pa.DataType], functions: Sequence[JavaFunction] = ()
) -> pa.DataType:
    """The type of an expression of columns of these types; SqlTypeError in Spark's words."""
    try:
        return arrow_type(told_type(text, kinds, functions))
    except ValueError as problem:
        raise SqlTypeError(
            str(problem), hint="cast it to another type inside the call"
        ) from problem


def told_type(
    text: str, kinds: Sequence[pa.DataType], functions: Sequence[JavaFunction] = ()
) -> Any:
    """The same in the words of Spark's JSON."""
    kept = KeptTypes.here()
    schema = _schema(kinds)
    found = kept.get(text, schema)
    if found is None:
        status, content = _ask("types", [text], schema.empty_table(), functions)
        if status:
            raise SqlTypeError(shown(_message(content), functions), hint="Spark says so")
        found = orjson.loads(content)[0]
        kept.put(text, schema, found)
    return found


def functions() -> list[str]:
    """The names of all functions that Spark has."""
    kept = KeptTypes.here()
    found = kept.get("", _schema([]))
    if found is None:
        _, content = _ask("functions", [], _schema([]).empty_table())
        found = sorted(orjson.loads(content))
        kept.put("", _schema([]), found)
    return [str(name) for name in found]


def values_of(
    texts: Sequence[str],
    arrays: Sequence[pa.Array],
    count: int,
    functions: Sequence[JavaFunction] = (),
    *,
    patience: float = ANSWER_SECONDS,
) -> list[pa.Array]:
    """The values of expressions of columns, `count` rows of each."""
    columns = [*map(sent, arrays), pa.repeat(pa.scalar(0, pa.int8()), count)]
    table = pa.Table.from_arrays(columns, schema=_schema([array.type for array in arrays]))
    answers: dict[str, pa.Array] = {}
    for timely in (False, True):
        asked = [text for text in dict.fromkeys(texts) if _has_times(text) == timely]
        if not asked:
            continue
        status, content = _ask("values", asked, table, functions, patience)
        if status:
            hint = "correct the row" if functions else "see Spark's manual on the function"
            raise EvaluationError(shown(_message(content), functions), hint=hint)
        with pa.ipc.open_stream(content) as stream:
            found = stream.read_all().combine_chunks()
        answers |= {text: _only(found.column(place)) for place, text in enumerate(asked)}
    return [answers[text] for text in texts]


def _has_times(text: str) -> bool:
    """Whether the type TIME is in it. Spark hides it, and what a text is taken for depends on
    whether it is hidden."""
    return _TIMES.search(text) is not None


_TIMES = re.compile(r"\bTIME\b|\btime_|\b(try_)?(to|make)_time\b", re.IGNORECASE)


def _only(found: pa.ChunkedArray) -> pa.Array:
    return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def _schema(kinds: Sequence[pa.DataType]) -> pa.Schema:
    names = [*(f"a{number}" for number in range(len(kinds))), _ROWS]
    return pa.schema(list(zip(names, [*map(sent_type, kinds), pa.int8()], strict=True)))


def _message(content: bytes) -> str:
    """Spark's words without its picture of a text that nobody has written."""
    problem: dict[str, Any] = orjson.loads(content)
    words = str(problem["message"]).split("\n== SQL")[0].split(";\n'")[0].strip()
    return _PLACE.sub("", words)  # of the text, which nobody has written


def _ask(
    what: str,
    texts: list[str],
    table: pa.Table,
    functions: Sequence[JavaFunction] = (),
    patience: float = ANSWER_SECONDS,
) -> tuple[int, bytes]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=SLICE_ROWS)
    columns = sink.getvalue()
    asked = {"do": what, "texts": texts, "times": any(map(_has_times, texts))}
    header = orjson.dumps(asked | {"functions": told(functions)})
    if len(columns) > _LARGEST:
        raise EvaluationError(
            f"{len(columns)} bytes are more than Spark is given at once",
            hint="a smaller `tick.limit` makes smaller ticks",
        )
    for attempt in range(len(_PAUSES)):
        SYSTEM.sleep(_PAUSES[attempt])
        peer = _taken()
        try:
            found = _answer(peer, header, columns, patience)
        except TimeoutError as slow:
            peer.close()
            close()
            door.end()
            raise NoAnswerError(
                f"Spark did not answer within {patience:g} s",
                detail=f"It was asked for {', '.join(texts)}.",
                hint="the view is tried again after a pause; look at the rows it reads",
            ) from slow
        except (OSError, _Lost) as gone:
            peer.close()
            close()  # whoever else waits for it has lost it, too
            if attempt == len(_PAUSES) - 1:
                raise NoAnswerError(
                    "Spark's expressions ended in the middle of a request",
                    detail=f"It was asked for {', '.join(texts)}.",
                    hint="the view is tried again after a pause",
                ) from gone
        else:
            with _guard:
                _free.append((os.getpid(), peer))
            return found
    raise AssertionError("unreachable")


def _answer(
    peer: socket.socket, header: bytes, columns: pa.Buffer, patience: float
) -> tuple[int, bytes]:
    peer.settimeout(patience)
    peer.sendall(struct.pack(">I", len(header)) + header + struct.pack(">I", columns.size))
    peer.sendall(columns)
    status, size = struct.unpack(">BI", _read(peer, 5))
    return status, bytes(_read(peer, size))


def _read(peer: socket.socket, size: int) -> bytearray:
    content = bytearray(size)
    view = memoryview(content)
    while view.nbytes:
        count = peer.recv_into(view)
        if not count:
            raise _Lost
        view = view[count:]
    return content


def _taken() -> socket.socket:
    """A connection for one request: one that nobody uses, or another. The JVM keeps what it has
    prepared by connection, so they are kept for all threads of a process."""
    with _guard:
        while _free:
            pid, known = _free.pop()
            if pid == os.getpid():
                return known
            known.close()  # of the process that this one was forked from
    return door.connect()


def close() -> None:
    """Close the connections that nobody uses."""
    with _guard:
        while _free:
            _free.pop()[1].close()
