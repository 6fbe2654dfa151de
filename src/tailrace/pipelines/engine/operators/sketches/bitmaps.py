"""Bitmaps of 32,768 bits, by which distinct whole numbers are counted.

A number's bucket counts from 1 for positive ones and down from 0 for the others; its bit is
its place in the bucket. Bit n of a bitmap is bit n mod 8 of byte n div 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.pipelines.errors import EvaluationError

BITMAP_BYTES = 4096
_BITS = 8 * BITMAP_BYTES


def bitmap_of(positions: Iterable[int]) -> bytes:
    """The bitmap with these bits."""
    bitmap = bytearray(BITMAP_BYTES)
    for position in positions:
        if not 0 <= position < _BITS:
            raise EvaluationError(
                f"bit {position} does not fit into a bitmap of {_BITS} bits",
                hint="pass bitmap_bit_position(x), and group by bitmap_bucket_number(x)",
            )
        bitmap[position // 8] |= 1 << (position % 8)
    return bytes(bitmap)


def bitmap_joined(bitmaps: Sequence[bytes], every: bool) -> bytes:
    """The bits that all (`every`) or any of the bitmaps have; of none: no bits at all (every:
    all bits), as Spark begins."""
    joined = int.from_bytes((b"\xff" if every else b"\0") * BITMAP_BYTES, "little")
    for bitmap in bitmaps:
        padded = int.from_bytes(bitmap[:BITMAP_BYTES], "little")
        if every:
            joined &= padded
        else:
            joined |= padded
    return joined.to_bytes(BITMAP_BYTES, "little")
