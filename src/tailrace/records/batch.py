"""Record batches, format 2: everything about them under one name.

header    the 61 bytes in front, and what may be wrong with a batch
encode    batches from records or columns
decode    records from batches
markers   the control batches that end transactions
"""

from __future__ import annotations

from tailrace.records.decode import (
    Headers,
    RawRecord,
    Record,
    decode_headers,
    decode_raw,
    decode_records,
    records_block,
)
from tailrace.records.encode import (
    assemble,
    encode_batch,
    encode_columns,
    encode_headers,
    encode_raw,
    set_append_time,
)
from tailrace.records.header import (
    HEADER_BYTES,
    BatchHeader,
    Buffer,
    advance_sequence,
    check_batch,
    iterate_batches,
    read_header,
)
from tailrace.records.markers import Marker, decode_marker, encode_marker

__all__ = [
    "HEADER_BYTES",
    "BatchHeader",
    "Buffer",
    "Headers",
    "Marker",
    "RawRecord",
    "Record",
    "advance_sequence",
    "assemble",
    "check_batch",
    "decode_headers",
    "decode_marker",
    "decode_raw",
    "decode_records",
    "encode_batch",
    "encode_columns",
    "encode_headers",
    "encode_marker",
    "encode_raw",
    "iterate_batches",
    "read_header",
    "records_block",
    "set_append_time",
]
