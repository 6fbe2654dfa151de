"""The changelog records of a tick on their way into its transaction.

All carry the same headers, so they stay columns: partitions are chosen and batches written
without a loop over records. The driver is one process, and this is what it writes a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.incremental.changelog import Piece
from tailrace.records.columns import by_partition
from tailrace.records.decode import Headers

_FEW_CHANGES = 100  # fewer are sent one by one
_FEW_IN_A_PIECE = 5_000
_MOST_BYTES = 256 << 20


def send_changes(
    writer: TransactionalWriter, topic: str, pieces: Sequence[Piece], headers: Headers
) -> int:
    """Keep changelog records for the log, by the partition of their keys; how many."""
    count = sum(len(keys) for keys, _ in pieces)
    if count < _FEW_CHANGES:
        for keys, values in pieces:
            writer.send_columns(topic, None, keys, values, same_headers=headers)
        return count
    for keys, values in _together(pieces):
        for partition, own, theirs in by_partition(keys, values, writer.partitions_of(topic)):
            writer.send_columns(topic, partition, own, theirs, same_headers=headers)
    return count


def _together(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Pieces that are worth a batch a partition; many small ones become one."""
    count = sum(len(keys) for keys, _ in pieces)
    if len(pieces) == 1 or count > _FEW_IN_A_PIECE * len(pieces):
        return pieces
    if sum(keys.nbytes + values.nbytes for keys, values in pieces) > _MOST_BYTES:
        return pieces
    keys, values = zip(*pieces, strict=True)
    return [(pa.concat_arrays(keys), pa.concat_arrays(values))]
