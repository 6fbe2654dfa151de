"""The format of state files, and the chain they form.

    magic      8 bytes  b"TRSTATE1"
    length     u32, big-endian, of the header
    header     JSON: shard, tick, level, previous, snapshot, output, depth, dropped, base, merges
    body       Arrow IPC stream (LZ4) of (key binary, value binary); a null value deletes;
               each batch names its operator in its metadata, its keys are sorted

`previous` is the version of the shard this tick began from, the same in all files the
tick wrote for it (CUT_OFF: none that anybody may go on from); several levels of one tick touch different operators, so their files
apply in any order. A snapshot holds the whole shard as it was at `previous`, or before it was cut off; a merged
file holds all changes from the version `base` to `previous`, so that a host that is many
ticks behind reads few files. `depth` counts versions since the last snapshot, and `merges`
lists the merged files of the chain: the depths they lead to and from. `output` is a digest of the rows the task emitted: it makes the hash in the name one of delta and
output together, so that two runs of a task with different answers have two names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson
import pyarrow as pa

from tailrace.pipelines.errors import StateVersionError
from tailrace.pipelines.state.files import Draft, Sink, StateFiles
from tailrace.pipelines.state.store import Version

MAGIC = b"TRSTATE1"
BATCH_ROWS = 50_000
CUT_OFF = "0-cut-off"
_HEAD_BYTES = 8_192
_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary())])
# A delta has a small batch per operator: handing its two buffers to other threads for (un)packing
# takes several times what it saves.
_WRITE = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)

Merge: TypeAlias = "tuple[int, int, str]"  # the depth it leads to, the one it leads from, its name
Chunk: TypeAlias = "tuple[str, list[bytes], list[bytes | None]]"


@dataclass(frozen=True, slots=True)
class Header:
    """What a state file says about itself."""

    shard: int
    tick: int
    level: int
    previous: Version
    snapshot: bool = False
    output: str = ""
    depth: int = 1
    dropped: tuple[str, ...] = ()
    base: Version | None = None
    merges: tuple[Merge, ...] = ()

    @property
    def merged(self) -> bool:
        return self.base is not None

    @property
    def stem(self) -> str:
        return f"{self.tick:010d}-{self.level}"

    @property
    def suffix(self) -> str:
        return ".snapshot" if self.snapshot else ".merged" if self.merged else ".delta"


def write(
    files: StateFiles, header: Header, chunks: Iterable[Chunk], drafts: list[Draft] | None = None
) -> str:
    """Write one state file; returns its name. See `StateFiles.put` for `drafts`."""

    def fill(sink: Sink) -> None:
        text = orjson.dumps(
            {
                "shard": header.shard,
                "tick": header.tick,
                "level": header.level,
                "previous": header.previous,
                "snapshot": header.snapshot,
                "output": header.output,
                "depth": header.depth,
                "dropped": header.dropped,
                "base": header.base,
                "merges": header.merges,
            }
        )
        sink.write(MAGIC + struct.pack(">I", len(text)) + text)
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, _SCHEMA, options=_WRITE) as writer:
            for operator, keys, values in chunks:
                batch = pa.record_batch(
                    [pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=_SCHEMA
                )
                writer.write_batch(batch, custom_metadata={"operator": operator})
        sink.write(memoryview(buffer.getvalue()))  # type: ignore[arg-type]

    return files.put(header.shard, header.stem, header.suffix, fill, drafts)


def read_header(files: StateFiles, shard: int, name: str) -> Header:
    """The header alone, without reading the rest of a large file."""
    head = files.head(shard, name, _HEAD_BYTES)
    _check_magic(head, shard, name)
    (length,) = struct.unpack_from(">I", head, 8)
    if 12 + length > len(head):
        head = files.head(shard, name, 12 + length)
    return _header(head[12 : 12 + length])


def read(files: StateFiles, shard: int, name: str) -> tuple[Header, Iterator[Chunk]]:
    """A whole file: its header and its changes, in batches of one operator each."""
    data = files.get(shard, name)
    _check_magic(data, shard, name)
    (length,) = struct.unpack_from(">I", data, 8)
    return _header(data[12 : 12 + length]), _chunks(memoryview(data)[12 + length :])


def _chunks(body: memoryview) -> Iterator[Chunk]:
    with pa.ipc.open_stream(body, options=_READ) as reader:
        while True:
            try:
                batch, metadata = reader.read_next_batch_with_custom_metadata()
            except StopIteration:
                return
            operator = metadata[b"operator"].decode()
            yield operator, batch.column(0).to_pylist(), batch.column(1).to_pylist()


def _check_magic(data: bytes, shard: int, name: str) -> None:
    if data[:8] != MAGIC:
        raise StateVersionError(
            f'state file "{name}" of shard {shard} has an unknown format',
            detail=f"it begins with {data[:8]!r}, this version reads {MAGIC!r}",
            hint="run the version that wrote it, or rebuild the views",
        )


def read_merges(listed: Iterable[Sequence[Any]] | None) -> tuple[Merge, ...]:
    """Merges as JSON gives them."""
    return tuple((int(end), int(base), str(name)) for end, base, name in listed or ())


def _header(text: bytes) -> Header:
    fields = orjson.loads(text)
    fields["previous"] = tuple(fields["previous"])
    fields["dropped"] = tuple(fields["dropped"])
    fields["base"] = None if fields.get("base") is None else tuple(fields["base"])
    fields["merges"] = read_merges(fields.get("merges"))
    return Header(**fields)
