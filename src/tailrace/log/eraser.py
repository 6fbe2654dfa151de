"""Erasing records from one partition: what the child process does.

Writes every segment that holds one of them again, beside the old one as `<name>.cleaned`, and
touches nothing else. Batches keep their offsets, producers and times; an erased record keeps its
slot: offset, key, time. See `erasing` for what stands in it.

    python -m tailrace.log.eraser < job.json > result.json
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict

import orjson

from tailrace.log.child import end_with_parent
from tailrace.log.cleaned_segment import CleanedSegment
from tailrace.log.cleaner import Cleaner, rebuilt, walk
from tailrace.log.cleaning_job import CleanedGroup, CleaningJob
from tailrace.records.decode import Headers, decode_records, records_block
from tailrace.records.encode import encode_headers, encode_raw
from tailrace.records.erased_offsets import held
from tailrace.records.event_headers import ERASED, ERASED_TYPE, EVENT, META, VERSION
from tailrace.records.header import BatchHeader

_KEPT = ("id", "command", "name")
"""Of the meta data of an event: a repeat of its command must find that it was carried out."""


class Eraser(Cleaner):
    """One run over one partition."""

    def _note_keys(self) -> None:
        """No key is looked at."""

    def _mark_newest(self) -> None:
        """Nothing is newer than anything."""

    def _copy(self) -> None:
        """Write each segment by itself: its base offset stays that of its file."""
        self._ranges = [(first, last) for first, last in self.job.erased]
        for base, size in self.job.segments:
            out = CleanedSegment(
                self.job.directory, base, self.job.index_interval_bytes, self._files
            )
            changed = False
            try:
                for header, batch in self._batches(base, size):
                    kept = self._without(header, batch)
                    changed = changed or kept is not batch
                    out.write(kept)
                    self._throttle(len(kept))
                self._finish(out, CleanedGroup([base], base, 0), changed)
            finally:
                out.close()

    def _without(self, header: BatchHeader, batch: memoryview) -> bytes | bytearray | memoryview:
        """The batch with slots where records are erased; itself if it has none of them."""
        if header.control or not held(self._ranges, header.base_offset, header.last_offset):
            return batch
        return rebuilt(
            header,
            b"".join(self._records(header, batch)),
            header.record_count,
            header.base_timestamp,
            header.max_timestamp,
            header.attributes,
        )

    def _records(self, header: BatchHeader, batch: memoryview) -> Iterator[bytes]:
        block = records_block(batch, header)
        whole = decode_records(batch)
        for record, place in zip(whole, walk(batch, header), strict=True):
            offset, delta, _, _, start, end = place
            self.result.records_read += 1
            if not held(self._ranges, offset, offset):
                self.result.records_kept += 1
                yield bytes(block[start:end])
                continue
            value, headers = slot(record.headers)
            yield encode_raw(
                offset - header.base_offset, delta, record.key, value, encode_headers(headers)
            )


def slot(headers: Headers) -> tuple[bytes | None, Headers]:
    """Value and headers of what an erased record leaves."""
    if len(headers) < 3 or tuple(name for name, _ in headers[:3]) != (EVENT, VERSION, META):
        return None, ((ERASED, b""),)
    told = {}
    try:
        meta = orjson.loads(headers[2][1] or b"")
        told = {name: meta[name] for name in _KEPT if name in meta}
    except (ValueError, TypeError):
        pass  # no event of ours: its number stays all the same
    kept = (EVENT, ERASED_TYPE.encode()), headers[1], (META, orjson.dumps(told))
    return b"{}", kept


def main() -> None:
    os.nice(10)
    end_with_parent()
    job = CleaningJob(**orjson.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(orjson.dumps(asdict(Eraser(job).run())))


if __name__ == "__main__":
    main()
