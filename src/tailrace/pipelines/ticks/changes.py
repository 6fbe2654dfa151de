"""The changelog records of a tick on their way into its transaction.

All carry the same headers, so they stay columns: partitions are chosen and batches written
without a loop over records. The driver is one process, and this is what it writes a second; so
tasks, which are several, choose the partitions where they can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tailrace.pipelines.engine.changelog import Piece
from tailrace.records.columns import partitioned
from tailrace.records.decode import Headers

if TYPE_CHECKING:
    from tailrace.client.writer import TransactionalWriter

FEW_CHANGES = 100  # fewer are sent one by one
_FEW_IN_A_PIECE = 5_000
_MOST_BYTES = 256 << 20


def arranged(piece: Piece, partitions: int) -> Piece:
    """Changelog records by the partition of their keys."""
    keys, values, counts = partitioned(piece.keys, piece.values, partitions)
    return Piece(keys, values, tuple(counts))


def send_changes(
    writer: TransactionalWriter, topic: str, pieces: Sequence[Piece], headers: Headers
) -> int:
    """Keep changelog records for the log, by the partition of their keys; how many."""
    count = sum(len(piece.keys) for piece in pieces)
    if count < FEW_CHANGES:
        for piece in pieces:
            writer.send_columns(topic, None, piece.keys, piece.values, same_headers=headers)
        return count
    partitions = writer.partitions_of(topic)
    for piece in _together(pieces):
        if len(piece.counts) != partitions:
            piece = arranged(piece, partitions)
        first = 0
        for partition, own in enumerate(piece.counts):
            keys, values = piece.keys.slice(first, own), piece.values.slice(first, own)
            writer.send_columns(topic, partition, keys, values, same_headers=headers)
            first += own
    return count


def _together(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Pieces that are worth a batch a partition; many small ones become one."""
    count = sum(len(piece.keys) for piece in pieces)
    if len(pieces) == 1 or count > _FEW_IN_A_PIECE * len(pieces):
        return pieces
    if sum(piece.keys.nbytes + piece.values.nbytes for piece in pieces) > _MOST_BYTES:
        return pieces
    keys, values = [piece.keys for piece in pieces], [piece.values for piece in pieces]
    return [Piece(pa.concat_arrays(keys), pa.concat_arrays(values))]
