"""The codecs of record batches: none, gzip, snappy (xerial framing), lz4 (frames), zstd.

Decompression is bounded: a batch that would grow past `limit` bytes is refused before
that much memory is taken, whatever its header promises.
"""

from __future__ import annotations

import struct
import zlib

from tailrace.records.errors import CorruptBatchError, OversizedBatchError, UnsupportedCodecError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
DECOMPRESSED_LIMIT_BYTES = 256 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_LENGTH = struct.Struct(">i")
# Each costs a copy of what follows it; producers write one.
_GZIP_MEMBERS = 64


def codec_number(name: str) -> int:
    """The number batch attributes use for the codec called `name`."""
    try:
        return CODECS[name]
    except KeyError:
        raise UnsupportedCodecError(
            f'unknown compression "{name}"', hint=f"known: {', '.join(CODEC_NAMES)}"
        ) from None


def compress(codec: int, data: bytes | bytearray | memoryview) -> bytes:
    """`data` in the given codec, readable by every Kafka client."""
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush()
    import cramjam

    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, 3))
    if codec == LZ4:
        # Kafka's Java reader refuses frames whose blocks depend on each other.
        stream = cramjam.lz4.Compressor(block_linked=False)
        stream.compress(bytes(data))
        return bytes(stream.finish())
    if codec == SNAPPY:
        parts = [_XERIAL_HEADER]
        whole = memoryview(data)
        for start in range(0, len(whole), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(whole[start : start + _XERIAL_BLOCK_BYTES]))
            parts += (_LENGTH.pack(len(block)), block)
        return b"".join(parts)
    raise UnsupportedCodecError(f"compression codec {codec} does not exist")


def decompress(
    codec: int,
    data: bytes | bytearray | memoryview,
    limit: int = DECOMPRESSED_LIMIT_BYTES,
) -> bytes:
    """The bytes that were compressed; raises `CorruptBatchError` if they cannot be."""
    if codec == NONE:
        return bytes(data)
    try:
        if codec == GZIP:
            return _gunzip(data, limit)
        if codec == SNAPPY:
            return _unsnappy(bytes(data), limit)
        if codec in (LZ4, ZSTD):
            return _inflate(codec, bytes(data), limit)
    except (zlib.error, struct.error, ValueError, OSError) as error:
        raise CorruptBatchError(
            f"{CODEC_NAMES[codec]} data cannot be decompressed", detail=str(error)
        ) from error
    raise UnsupportedCodecError(f"compression codec {codec} does not exist")


def _too_large(limit: int) -> OversizedBatchError:
    return OversizedBatchError(f"a compressed batch would grow past {limit} bytes")


def _gunzip(data: bytes | bytearray | memoryview, limit: int) -> bytes:
    parts: list[bytes] = []
    waiting: bytes | bytearray | memoryview = data
    room = limit
    while waiting:
        if len(parts) == _GZIP_MEMBERS:
            raise CorruptBatchError(f"gzip data of more than {_GZIP_MEMBERS} members")
        unpacker = zlib.decompressobj(47)
        parts.append(unpacker.decompress(waiting, room + 1))
        if unpacker.unconsumed_tail or len(parts[-1]) > room:
            raise _too_large(limit)
        if not unpacker.eof:
            raise CorruptBatchError("gzip data ends too early")
        room -= len(parts[-1])
        waiting = unpacker.unused_data
    return b"".join(parts)


def _unsnappy(data: bytes, limit: int) -> bytes:
    import cramjam

    def block(raw: bytes, room: int) -> bytes:
        try:
            if cramjam.snappy.decompress_raw_len(raw) > room:
                raise _too_large(limit)
            return bytes(cramjam.snappy.decompress_raw(raw))
        except cramjam.DecompressionError as error:
            raise CorruptBatchError(
                "snappy data cannot be decompressed", detail=str(error)
            ) from error

    if not data.startswith(_XERIAL_MAGIC):
        return block(data, limit)
    parts: list[bytes] = []
    position, total = len(_XERIAL_HEADER), 0
    while position < len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += 4
        if length < 0 or position + length > len(data):
            raise CorruptBatchError("a snappy block is longer than its batch")
        parts.append(block(data[position : position + length], limit - total))
        total += len(parts[-1])
        position += length
    return b"".join(parts)


def _inflate(codec: int, data: bytes, limit: int) -> bytes:
    import cramjam

    library = cramjam.lz4 if codec == LZ4 else cramjam.zstd
    # Neither library can stop early, but both stop at the end of a given buffer.
    room = min(limit, max(64 * 1024, len(data) * 8))
    while True:
        buffer = bytearray(room)
        try:
            length = library.decompress_into(data, buffer)
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise CorruptBatchError(
                    f"{CODEC_NAMES[codec]} data cannot be decompressed", detail=str(error)
                ) from error
            if room >= limit:
                raise _too_large(limit) from None
            room = min(limit, room * 8)
            continue
        del buffer[length:]
        return bytes(buffer)
