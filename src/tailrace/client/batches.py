"""Records waiting to be sent to one partition, and the batches they become."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tailrace.records.batch import Buffer, Headers, decode_records, encode_columns, read_header
from tailrace.records.rehead import with_head

if TYPE_CHECKING:
    from tailrace.records.columns import RecordColumns

RECORD_OVERHEAD_BYTES = 20


class Pending:
    """Records waiting for one partition, in order: rows, Arrow columns, whole batches, rows again.

    `take` gives the next batch without removing it; `done` removes what was written. A
    batch holds records of one kind.
    """

    __slots__ = ("_waiting", "size_bytes", "taken")

    def __init__(self) -> None:
        self._waiting: deque[Rows | Columns | Whole] = deque()
        self.size_bytes = 0
        self.taken = 0  # records of the batch on its way

    def __len__(self) -> int:
        return sum(len(each) for each in self._waiting)

    def _rows(self) -> Rows:
        if self._waiting and isinstance(self._waiting[-1], Rows):
            return self._waiting[-1]
        made = Rows()
        self._waiting.append(made)
        return made

    def add(self, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        self.size_bytes += self._rows().add(key, value, timestamp, headers)

    def extend(
        self,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers],
    ) -> None:
        self.size_bytes += self._rows().extend(keys, values, timestamps, headers)

    def extend_columns(self, columns: RecordColumns) -> None:
        made = Columns(columns)
        self.size_bytes += made.size_bytes
        self._waiting.append(made)

    def add_batch(self, batch: Buffer) -> None:
        """A batch of another log that is passed through; see `Whole`."""
        made = Whole(batch)
        self.size_bytes += made.size_bytes
        self._waiting.append(made)

    def take(self, most_bytes: int, most_records: int) -> int:
        """How many records the next batch holds: at least one, at most these limits."""
        self.taken = self._waiting[0].take(most_bytes, most_records)
        return self.taken

    def encode(
        self,
        *,
        compression: str,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        transactional: bool,
    ) -> bytearray:
        """The batch of the records taken."""
        return self._waiting[0].encode(
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )

    def done(self) -> int:
        """Forget the records taken, which are written; how many they were."""
        first = self._waiting[0]
        before = first.size_bytes
        count = first.done()
        self.size_bytes += first.size_bytes - before
        if not len(first):
            self._waiting.popleft()
        self.taken = 0
        return count

    def clear(self) -> None:
        self._waiting.clear()
        self.size_bytes = self.taken = 0


class Columns:
    """Arrow columns of which the first records may be written already."""

    __slots__ = ("_columns", "_first", "_taken", "size_bytes")

    def __init__(self, columns: RecordColumns) -> None:
        self._columns = columns
        self._first = 0
        self._taken = 0
        self.size_bytes = columns.size_bytes(0, len(columns))

    def __len__(self) -> int:
        return len(self._columns) - self._first

    def take(self, most_bytes: int, most_records: int) -> int:
        self._taken = self._columns.fitting(self._first, most_bytes, most_records)
        return self._taken

    def encode(
        self,
        *,
        compression: str,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        transactional: bool,
    ) -> bytearray:
        return self._columns.encode(
            self._first,
            self._taken,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )

    def done(self) -> int:
        count = self._taken
        self.size_bytes -= self._columns.size_bytes(self._first, count)
        self._first += count
        self._taken = 0
        return count


class Whole:
    """A batch from another log, without gaps: its records, codec and times stay as they are, and
    only the head becomes ours. One that the log finds too large is opened and cut in two."""

    __slots__ = ("_batch", "_count", "_opened", "size_bytes")

    def __init__(self, batch: Buffer) -> None:
        header = read_header(batch)
        if header.record_count != header.last_offset_delta + 1:
            raise ValueError("a batch with gaps cannot be passed through")
        self._batch = batch
        self._count = header.record_count
        self._opened: Rows | None = None
        self.size_bytes = len(batch)

    def __len__(self) -> int:
        return self._count if self._opened is None else len(self._opened)

    def take(self, most_bytes: int, most_records: int) -> int:
        if self._opened is None and most_records < self._count:
            self._opened = Rows()
            for record in decode_records(self._batch):
                self._opened.add(record.key, record.value, record.timestamp, record.headers)
            self.size_bytes = self._opened.size_bytes
        return self._count if self._opened is None else self._opened.take(most_bytes, most_records)

    def encode(
        self,
        *,
        compression: str,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        transactional: bool,
    ) -> bytearray:
        if self._opened is not None:
            return self._opened.encode(
                compression=compression,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                transactional=transactional,
            )
        return with_head(
            self._batch, producer_id, producer_epoch, base_sequence, transactional=transactional
        )

    def done(self) -> int:
        if self._opened is not None:
            count = self._opened.done()
            self.size_bytes = self._opened.size_bytes
            return count
        count, self._count = self._count, 0
        self._opened, self.size_bytes = Rows(), 0
        return count


class Rows:
    """Lists of records, one a column."""

    __slots__ = ("headers", "keys", "size_bytes", "taken", "timestamps", "values")

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.headers: list[Headers] = []
        self.size_bytes = 0
        self.taken = 0  # records of the batch on its way

    def __len__(self) -> int:
        return len(self.values)

    def add(self, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> int:
        """How many bytes more wait now."""
        self.keys.append(key)
        self.values.append(value)
        self.timestamps.append(timestamp)
        self.headers.append(headers)
        size = record_bytes(key, value, headers)
        self.size_bytes += size
        return size

    def extend(
        self,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers],
    ) -> int:
        self.keys.extend(keys)
        self.values.extend(values)
        self.timestamps.extend(timestamps)
        self.headers.extend(headers)
        size = RECORD_OVERHEAD_BYTES * len(values)
        size += sum(len(key) for key in keys if key is not None)
        size += sum(len(value) for value in values if value is not None)
        for each in headers:
            if each:
                size += header_bytes(each)
        self.size_bytes += size
        return size

    def take(self, most_bytes: int, most_records: int) -> int:
        count = min(len(self.values), most_records)
        if self.size_bytes > most_bytes:
            size = 0
            for number in range(count):
                size += record_bytes(self.keys[number], self.values[number], self.headers[number])
                if size > most_bytes and number:
                    count = number
                    break
        self.taken = count
        return count

    def encode(
        self,
        *,
        compression: str,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        transactional: bool,
    ) -> bytearray:
        count = self.taken
        whole = count == len(self.values)
        headers = self.headers if whole else self.headers[:count]
        timestamps: list[int] | int = self.timestamps if whole else self.timestamps[:count]
        return encode_columns(
            self.keys if whole else self.keys[:count],
            self.values if whole else self.values[:count],
            timestamps,
            headers if any(headers) else None,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )

    def done(self) -> int:
        count = self.taken
        if count == len(self.values):
            self.clear()
            return count
        for number in range(count):
            self.size_bytes -= record_bytes(
                self.keys[number], self.values[number], self.headers[number]
            )
        del self.keys[:count], self.values[:count], self.timestamps[:count], self.headers[:count]
        self.taken = 0
        return count

    def clear(self) -> None:
        self.keys.clear()
        self.values.clear()
        self.timestamps.clear()
        self.headers.clear()
        self.size_bytes = self.taken = 0


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """About what a record takes in a batch; never less than it does."""
    size = RECORD_OVERHEAD_BYTES + (len(key) if key else 0) + (len(value) if value else 0)
    return size + header_bytes(headers) if headers else size


def header_bytes(headers: Headers) -> int:
    return sum(10 + len(name) * 4 + (len(value) if value else 0) for name, value in headers)
