"""Murmur3 as Spark computes it, for count-min sketches."""

from __future__ import annotations

_MASK = (1 << 32) - 1


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _mix(seed: int, word: int) -> int:
    word = _rotate(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotate(seed ^ word, 13) * 5 + 0xE6546B64) & _MASK


def _finish(value: int, length: int) -> int:
    value ^= length
    value = (value ^ (value >> 16)) * 0x85EBCA6B & _MASK
    value = (value ^ (value >> 13)) * 0xC2B2AE35 & _MASK
    return value ^ (value >> 16)


def murmur(data: bytes, seed: int) -> int:
    """Murmur3 as Spark computes it: words of 4 bytes, then the rest byte by byte."""
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        seed = _mix(seed, int.from_bytes(data[at : at + 4], "little"))
    for byte in data[whole:]:
        seed = _mix(seed, (byte - 256 if byte > 127 else byte) & _MASK)
    return _finish(seed, len(data))
