"""The columns that rows carry beside their own, and the types of those that say where a row is from."""

from __future__ import annotations

import pyarrow as pa

WEIGHT = "__weight"
KEY = "__key"
DELETED = "__deleted"
SHARD = "__shard"
TIME = "__time"
MICROS = "__micros"
PARTITION = "__partition"
OFFSET = "__offset"
VERSIONED_AT = "__versioned_at"
COPIED = "__copied"

PLACED = pa.schema(
    [
        (TIME, pa.timestamp("us", tz="UTC")), (MICROS, pa.int64()),
        (PARTITION, pa.int64()), (OFFSET, pa.int64()),
    ]
)  # fmt: skip
