"""The changelog records of a tick on their way into its transaction.

All carry the same headers, so they stay columns: partitions are chosen and batches written
without a loop over records. The driver is one process, and this is what it writes a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tailrace.client.writer import TransactionalWriter
from tailrace.records.columns import by_partition
from tailrace.records.decode import Headers

_FEW_CHANGES = 100  # fewer are sent one by one


def send_changes(
    writer: TransactionalWriter,
    topic: str,
    keys: Sequence[bytes],
    values: Sequence[bytes | None],
    headers: Headers,
) -> None:
    """Keep changelog records for the log, by the partition of their keys."""
    if len(keys) < _FEW_CHANGES:
        writer.send_columns(topic, None, keys, values, same_headers=headers)
        return
    columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary())
    for partition, own, theirs in by_partition(*columns, writer.partitions_of(topic)):
        writer.send_columns(topic, partition, own, theirs, same_headers=headers)
