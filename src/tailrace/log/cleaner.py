"""Compaction of one partition: what the child process does.

Reads sealed segments, writes finished ones beside them as `<name>.cleaned`, and touches
nothing else. Two passes: the first notes the last offset of every key in the dirty part
(as far as the map's budget reaches), the second copies every segment up to there, leaving
out what a later record, a passed delete horizon or an abort has made void. Offsets stay.
The rules about tombstones, markers and producers' last batches are Kafka's.

    python -m tailrace.log.cleaner < job.json > result.json
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from tailrace.log.aborted_batches import AbortedBatches
from tailrace.log.child import end_with_parent
from tailrace.log.cleaned_segment import CleanedSegment
from tailrace.log.cleaning_job import CleanedGroup, CleaningJob, CleaningResult
from tailrace.log.files import FILES, Files
from tailrace.log.key_map import KeyMap
from tailrace.records.checksum import crc32c
from tailrace.records.compression import compress
from tailrace.records.decode import decode_raw, read_varint, records_block
from tailrace.records.encode import assemble, encode_raw
from tailrace.records.errors import InvalidRecordError
from tailrace.records.header import (
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
)

ENDINGS = ("log", "index", "timeindex", "txnindex")
_MOST_MARKS = 64 * 1024 * 1024


class _Damaged(Exception):
    def __init__(self, path: str, position: int, why: str) -> None:
        super().__init__(why)
        self.where: list[str | int] = [path, position, why]


class Cleaner:
    """One run over one partition."""

    def __init__(self, job: CleaningJob, files: Files = FILES) -> None:
        self.job = job
        self._files = files
        self.result = CleaningResult(job.first_dirty)
        self.keys = KeyMap(job.map_bytes)
        self._newest = bytearray()
        self._same: set[int] = set()
        self._started = time.monotonic()
        self._moved = 0

    def run(self) -> CleaningResult:
        """Clean; on damage nothing is left behind, on a full disk only what is finished.

        A disk filled by a compacted topic may have room for a segment and not for all: the
        segments finished so far go in place of theirs, and that makes room for the next.
        """
        try:
            self._note_keys()
            self._mark_newest()
            self._copy()
        except _Damaged as damaged:
            self.result.groups = []
            self._discard()
            self.result.damage = damaged.where
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self.result.groups = []
            self._discard()
            self._stop_early(error)
        except BaseException:
            self.result.groups = []
            self._discard()
            raise
        return self.result

    def _stop_early(self, error: OSError) -> None:
        """Answer for the segments that are finished, and no more."""
        done = {base for group in self.result.groups for base in group.old} | self._same
        left = next((base for base, _ in self.job.segments if base not in done), self.job.end)
        reached = min(self.result.cleaned_to, left)
        self.result.cleaned_to = max(self.job.first_dirty, reached)
        self.result.failure = str(error)

    # ── first pass ───────────────────────────────────────────────────────────────────

    def _note_keys(self) -> None:
        """Fill the map from the dirty part; `cleaned_to` is how far it reaches.

        Records from there on are not in the map, and all stay.
        """
        aborts = AbortedBatches(self.job.aborted)
        for base, size in self._segments_from(self.job.first_dirty):
            for header, batch in self._batches(base, size):
                if header.last_offset < self.job.first_dirty:
                    continue
                if header.control:
                    aborts.end(header)
                elif not aborts.discards(header):
                    full_at = self._note_batch(header, batch)
                    if full_at is not None:
                        self.result.cleaned_to = full_at
                        self.result.keys = self.keys.count
                        return
        self.result.cleaned_to = self.job.end
        self.result.keys = self.keys.count

    def _mark_newest(self) -> None:
        """Mark the newest offsets of the dirty part, one byte each.

        A record of that part stays if and only if it is marked, so the second pass need not
        look at its key again.
        """
        span = self.result.cleaned_to - self.job.first_dirty
        if 0 < span <= _MOST_MARKS:
            marks = bytearray(span)
            first_dirty = self.job.first_dirty
            for offset in self.keys.offsets():
                marks[offset - first_dirty] = 1
            self._newest = marks

    def _note_batch(self, header: BatchHeader, batch: memoryview) -> int | None:
        """Note a batch's keys; the offset at which the map was full, or None."""
        put, first_dirty = self.keys.put, self.job.first_dirty
        data = records_block(batch, header)
        base = header.base_offset
        position = 0
        try:
            for _ in range(header.record_count):
                # As `walk`, but only keys are looked at.
                start = position
                length = data[position]
                position += 1
                if length >= 128:
                    more = data[position]
                    if more < 128:
                        position += 1
                        length = (length + ((more - 1) << 7)) >> 1
                    else:
                        length, position = read_varint(data, start)
                else:
                    length >>= 1
                end = position + length
                position += 1
                while data[position] >= 128:
                    position += 1
                position += 1
                offset = data[position]
                position += 1
                if offset >= 128:
                    more = data[position]
                    if more < 128:
                        position += 1
                        offset = (offset + ((more - 1) << 7)) >> 1
                    else:
                        offset, position = read_varint(data, position - 1)
                else:
                    offset >>= 1
                length = data[position]
                if length < 128:
                    position += 1
                    length = (length >> 1) ^ -(length & 1)
                else:
                    length, position = read_varint(data, position)
                offset += base
                if length >= 0 and offset >= first_dirty and not put(data[position : position + length], offset):  # fmt: skip
                    return offset
                position = end
        except IndexError:
            raise InvalidRecordError("a record is cut") from None
        return None

    # ── second pass ──────────────────────────────────────────────────────────────────

    def _copy(self) -> None:
        """Copy every segment before `cleaned_to`; what stays of neighbours is put together.

        A segment of which everything stays keeps its file: its copy would only take space.
        """
        aborts = AbortedBatches(self.job.aborted)
        out: CleanedSegment | None = None
        group = CleanedGroup([], 0, 0)
        changed = False
        try:
            for base, size in self.job.segments:
                if base >= self.result.cleaned_to:
                    break
                if out is not None and (
                    out.size + size > self.job.segment_bytes or base - group.base > 2**31 - 2
                ):
                    self._finish(out, group, changed)
                    out = None
                if out is None:
                    out = CleanedSegment(
                        self.job.directory, base, self.job.index_interval_bytes, self._files
                    )
                    group = CleanedGroup([], base, 0)
                    changed = False
                group.old.append(base)
                for header, batch in self._batches(base, size):
                    kept = self._filtered(header, batch, aborts)
                    changed = changed or kept is not batch
                    if kept is not None:
                        out.write(kept)
                        self._throttle(len(kept))
            if out is not None:
                self._finish(out, group, changed)
                out = None
        finally:
            if out is not None:
                out.close()

    def _finish(self, out: CleanedSegment, group: CleanedGroup, changed: bool) -> None:
        if len(group.old) == 1 and not changed:
            out.drop()
            self._same.add(group.base)
            return
        try:
            out.finish()
        finally:
            out.close()
        group.size = out.size
        self.result.bytes_written += out.size
        self.result.groups.append(group)

    def _filtered(self, header: BatchHeader, batch: memoryview, aborts: AbortedBatches) -> bytes | bytearray | memoryview | None:  # fmt: skip
        """What stays of a batch: all of it, less of it, its empty header, or nothing."""
        horizon = header.delete_horizon
        now = self.job.now_ms
        if header.record_count == 0:
            return batch if self._is_last_of_producer(header) else None
        if header.control:
            discardable = aborts.end(header)
            if discardable and self._is_last_of_producer(header):
                return _empty(header)
            if discardable and horizon is not None and horizon <= now:
                return None
            if discardable and horizon is None:
                return self._with_horizon(header, batch, None)
            self.result.records_kept += 1
            return batch
        if aborts.discards(header):
            return _empty(header) if self._is_last_of_producer(header) else None
        if self._newest and header.base_offset >= self.job.first_dirty and header.last_offset < self.result.cleaned_to:  # fmt: skip
            return self._filtered_by_mark(header, batch)
        kept: list[tuple[int, int]] = []
        tombstones = False
        largest = 0
        keys, noted_before = self.keys, self.result.cleaned_to
        total = 0
        for offset, delta, key, has_value, start, end in walk(batch, header):
            total += 1
            if offset < noted_before:
                if key is None or keys.get(key) > offset:
                    continue
                if not has_value:
                    if horizon is not None and horizon <= now:
                        continue
                    tombstones = True
            if not kept or delta > largest:
                largest = delta
            kept.append((start, end))
        return self._kept(header, batch, kept, total, largest, tombstones)

    def _filtered_by_mark(self, header: BatchHeader, batch: memoryview) -> bytes | bytearray | memoryview | None:  # fmt: skip
        """The same for a batch all of whose keys are in the map."""
        marks, first = self._newest, header.base_offset - self.job.first_dirty
        count = header.record_count
        if marks.find(1, first, first + header.last_offset_delta + 1) < 0:
            self.result.records_read += count
            return _empty(header) if self._is_last_of_producer(header) else None
        if header.last_offset_delta + 1 != count:
            places = [
                (offset - header.base_offset, start, end)
                for offset, _, _, _, start, end in walk(batch, header)
            ]
        else:
            places = []
        horizon_passed = header.delete_horizon is not None and (
            header.delete_horizon <= self.job.now_ms
        )
        data = records_block(batch, header)
        kept: list[tuple[int, int]] = []
        tombstones = False
        largest = position = 0
        try:
            for number in range(count):
                if places:
                    delta_offset, start, end = places[number]
                    position = start
                    if not marks[first + delta_offset]:
                        continue
                else:
                    delta_offset, start = number, position
                length = data[position]
                position += 1
                if length >= 128:
                    more = data[position]
                    if more < 128:
                        position += 1
                        length = (length + ((more - 1) << 7)) >> 1
                    else:
                        length, position = read_varint(data, start)
                else:
                    length >>= 1
                end = position + length
                if not marks[first + delta_offset]:
                    position = end
                    continue
                delta, position = read_varint(data, position + 1)
                _, position = read_varint(data, position)
                length, position = read_varint(data, position)
                if data[position + max(length, 0)] & 1:
                    if horizon_passed:
                        position = end
                        continue
                    tombstones = True
                if not kept or delta > largest:
                    largest = delta
                kept.append((start, end))
                position = end
        except IndexError:
            raise InvalidRecordError("a record is cut") from None
        return self._kept(header, batch, kept, count, largest, tombstones)

    def _kept(
        self,
        header: BatchHeader,
        batch: memoryview,
        kept: list[tuple[int, int]],
        total: int,
        largest: int,
        tombstones: bool,
    ) -> bytes | bytearray | memoryview | None:
        """The batch with the records at `kept` only."""
        self.result.records_read += total
        self.result.records_kept += len(kept)
        if not kept:
            return _empty(header) if self._is_last_of_producer(header) else None
        if tombstones and header.delete_horizon is None:
            return self._with_horizon(header, batch, {start for start, _ in kept})
        if len(kept) == total:
            return batch
        block = records_block(batch, header)
        return rebuilt(
            header,
            b"".join([block[start:end] for start, end in kept]),
            len(kept),
            header.base_timestamp,
            header.max_timestamp
            if header.attributes & LOG_APPEND_TIME
            else header.base_timestamp + largest,
            header.attributes,
        )

    def _with_horizon(
        self, header: BatchHeader, batch: memoryview, starts: set[int] | None
    ) -> bytearray:
        """The kept records with the time after which tombstones or the marker may go."""
        horizon = self.job.now_ms + self.job.delete_retention_ms
        parts: list[bytes] = []
        largest = -1
        walked = walk(batch, header)
        for record, place in zip(decode_raw(batch), walked, strict=True):
            if starts is not None and place[4] not in starts:
                continue
            timestamp = header.base_timestamp + place[1]
            largest = max(largest, timestamp)
            parts.append(
                encode_raw(
                    record.offset - header.base_offset,
                    timestamp - horizon,
                    record.key,
                    record.value,
                    record.raw_headers,
                )
            )
        if header.attributes & LOG_APPEND_TIME:
            largest = header.max_timestamp
        return rebuilt(
            header,
            b"".join(parts),
            len(parts),
            horizon,
            largest,
            header.attributes | DELETE_HORIZON,
        )

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether recovery needs this batch to know where its producer stopped."""
        if header.producer_id < 0:
            return False
        known = self.job.producers.get(str(header.producer_id))
        if known is None:
            return False
        last_offset, epoch = known
        if last_offset >= 0:
            return header.last_offset == last_offset
        return header.control and header.producer_epoch == epoch

    # ── files ────────────────────────────────────────────────────────────────────────

    def _segments_from(self, offset: int) -> Iterator[tuple[int, int]]:
        bases = [base for base, _ in self.job.segments]
        for place, (base, size) in enumerate(self.job.segments):
            following = bases[place + 1] if place + 1 < len(bases) else self.job.end
            if following > offset:
                yield base, size

    def _batches(self, base: int, size: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Every batch of a segment, its checksum verified."""
        if not size:
            return
        path = self.job.elsewhere.get(str(base), f"{self.job.directory}/{base:020d}.log")
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            mapped = mmap.mmap(descriptor, size, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        whole = memoryview(mapped)
        position = 0
        try:
            while position < size:
                if size - position < HEADER_BYTES:
                    raise _Damaged(path, position, "the segment ends inside a batch")
                header = BatchHeader._make(HEADER.unpack_from(whole, position))
                end = position + header.length + 12
                if end > size or header.length < HEADER_BYTES - 12 or header.magic != 2:
                    raise _Damaged(path, position, f"a batch claims {header.length} bytes")
                batch = whole[position:end]
                if crc32c(batch[CRC_START:]) != header.crc:
                    raise _Damaged(path, position, "a batch does not match its checksum")
                yield header, batch
                self._throttle(len(batch))
                batch.release()
                position = end
        finally:
            self.result.bytes_read += position
            whole.release()
            try:
                mapped.close()
            except BufferError:
                pass  # a batch is still looked at; the map goes with it

    def _throttle(self, moved: int) -> None:
        limit = self.job.bytes_per_second
        if limit > 1e15:
            return
        self._moved += moved
        ahead = self._moved / limit - (time.monotonic() - self._started)
        if ahead > 0.01:
            time.sleep(ahead)

    def _discard(self) -> None:
        """Remove all but the finished groups."""
        finished = {f"{group.base:020d}" for group in self.result.groups}
        for path in Path(self.job.directory).glob("*.cleaned"):
            if path.name.partition(".")[0] not in finished:
                path.unlink(missing_ok=True)


def walk(
    batch: memoryview, header: BatchHeader
) -> Iterator[tuple[int, int, bytes | None, bool, int, int]]:
    """(offset, timestamp delta, key, has a value, start, end in the plain block) of records."""
    data = records_block(batch, header)
    base = header.base_offset
    position = 0
    try:
        for _ in range(header.record_count):
            # Numbers of one or two bytes are read in place: a call would cost more.
            start = position
            length = data[position]
            position += 1
            if length >= 128:
                more = data[position]
                if more < 128:
                    position += 1
                    length += (more - 1) << 7
                    length >>= 1
                else:
                    length, position = read_varint(data, start)
            else:
                length >>= 1
            end = position + length
            position += 1
            delta = data[position]
            if delta < 128:
                position += 1
                delta = (delta >> 1) ^ -(delta & 1)
            else:
                delta, position = read_varint(data, position)
            offset = data[position]
            position += 1
            if offset >= 128:
                more = data[position]
                if more < 128:
                    position += 1
                    offset += (more - 1) << 7
                    offset >>= 1
                else:
                    offset, position = read_varint(data, position - 1)
            else:
                offset >>= 1
            length = data[position]
            if length < 128:
                position += 1
                length = (length >> 1) ^ -(length & 1)
            else:
                length, position = read_varint(data, position)
            if length >= 0:
                after = position + length
                key: bytes | None = data[position:after]
                position = after
            else:
                key = None
            yield base + offset, delta, key, not data[position] & 1, start, end
            position = end
    except IndexError:
        raise InvalidRecordError("a record is cut") from None


def _empty(header: BatchHeader) -> bytearray:
    """A batch without records, which keeps a producer's last sequence known."""
    return rebuilt(header, b"", 0, header.base_timestamp, header.max_timestamp, header.attributes)


def rebuilt(
    header: BatchHeader,
    block: bytes,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
) -> bytearray:
    """A batch with the offsets, producer and codec of the old one and other records."""
    if count and header.codec:
        block = compress(header.codec, block)
    return assemble(
        block,
        count=count,
        last_offset_delta=header.last_offset_delta,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        base_offset=header.base_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        partition_leader_epoch=header.leader_epoch,
    )


def main() -> None:
    os.nice(19)
    end_with_parent()
    job = CleaningJob(**orjson.loads(sys.stdin.buffer.read()))
    result = Cleaner(job).run()
    sys.stdout.buffer.write(orjson.dumps(asdict(result)))


if __name__ == "__main__":
    main()
