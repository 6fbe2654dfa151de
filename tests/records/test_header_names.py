"""Names of headers that are no UTF-8: whoever shows them shows something, and raises nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import orjson
import pyarrow as pa

from tailrace.cli.topic_data import as_document
from tailrace.console.records import as_records
from tailrace.pipelines.engine.dead_record import DeadRecord
from tailrace.pipelines.reading.decode import dead_letter
from tailrace.pipelines.reading.forms import Piece
from tailrace.records.batch import Record
from tailrace.records.decode import decode_headers
from tailrace.records.decode_columns import RecordColumns
from tailrace.records.encode import encode_headers

RAW = b"\x04\x04\xffn\x02v\x06\xc3\xa9!\x01"  # a name that begins with the byte FF; é!, null
HEADERS = decode_headers(RAW)
SHOWN = ["\ufffdn", "é!"]


def test_names_are_kept_as_they_were_sent() -> None:
    assert bytes(encode_headers(HEADERS)) == RAW


def test_the_command_line_prints_them() -> None:
    document = orjson.loads(orjson.dumps(as_document("t", 0, Record(0, 1, b"k", b"v", HEADERS))))
    assert document["headers"] == [[SHOWN[0], "v"], [SHOWN[1], None]]


def test_the_console_shows_them() -> None:
    chunk = SimpleNamespace(
        partition=0, offsets=[0], timestamps=[1], keys=[b"k"], values=[b"v"], headers=[HEADERS]
    )
    (record,) = orjson.loads(orjson.dumps(list(as_records(chunk))))
    assert record["headers"] == {SHOWN[0]: "v", SHOWN[1]: None}


def test_a_dead_letter_holds_them() -> None:
    letter = orjson.loads(dead_letter(DeadRecord("t", 0, 0, "why", b"k", b"v", HEADERS)))
    assert [name for name, _ in letter["headers"]] == SHOWN


def test_a_stream_reads_them() -> None:
    numbers = np.zeros(1, np.int64)
    columns = RecordColumns(
        numbers, numbers, pa.array([b"k"], pa.binary()), pa.array([b"v"], pa.binary()), [HEADERS]
    )
    (found,) = Piece("t", 0, columns).headers().to_pylist()
    assert [header["key"] for header in found] == SHOWN
