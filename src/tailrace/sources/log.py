"""The log a source writes to, over Kafka's protocol: our broker or Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from tailrace.client.admin import Admin
from tailrace.client.errors import RecordTooLargeError, UnknownTopicError
from tailrace.client.fetcher import Fetcher
from tailrace.client.writer import TransactionalWriter
from tailrace.sources.base import LARGEST_BYTES, Headers, Keys, LogRecord, Values

# A piece of a large transaction is at most 100,000 rows; a slow source may take a while.
TRANSACTION_TIMEOUT = timedelta(minutes=10)


class BrokerSourceLog:
    """A `SourceLog` with one transactional writer, `tailrace.source.<name>`."""

    def __init__(self, bootstrap: str, source: str) -> None:
        self._writer = TransactionalWriter(
            bootstrap,
            f"tailrace.source.{source}",
            transaction_timeout=TRANSACTION_TIMEOUT,
            create_topics=False,
        )
        self._admin = Admin(bootstrap)
        self._fetcher = Fetcher(bootstrap)
        self._behind = ThreadPoolExecutor(1, thread_name_prefix=f"write {source}")
        self._on_its_way: Future[object] | None = None

    def init(self) -> None:
        self._writer.init()

    def ensure_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> int:
        if not self._admin.ensure_topic(name, partitions, config):
            # The declaration may have changed since: `history=`, for instance.
            held = self._admin.topic_config(name)
            changed: dict[str, str | None] = {
                key: value
                for key, value in config.items()
                if key not in held or held[key].value != value
            }
            if changed:
                self._admin.alter_topic_config(name, changed)
        found = self._admin.describe_topic(name)
        return partitions if found is None else len(found.leaders)

    def send(
        self, topic: str, partition: int, keys: Keys, values: Values, timestamp_ms: int,
        headers: Sequence[Headers] | None = None,
    ) -> None:  # fmt: skip
        self._settle()
        _check_sizes(topic, values)
        self._writer.send_columns(topic, partition, keys, values, timestamp_ms, headers)

    def hand_over(self) -> None:
        # While the broker writes a piece of a large transaction, the next one is decoded.
        self._settle()
        self._on_its_way = self._behind.submit(self._writer.flush)

    def _settle(self) -> None:
        """The writer belongs to one thread at a time: wait for the other, raise its error."""
        if self._on_its_way is not None:
            waiting, self._on_its_way = self._on_its_way, None
            waiting.result()

    def flush(self) -> Mapping[tuple[str, int], int]:
        self._settle()
        return self._writer.flush()

    def commit(self) -> None:
        self._settle()
        self._writer.commit()

    def abort(self) -> None:
        self._settle()
        self._writer.abort()

    def read(
        self, topic: str, partition: int, start: int = 0, end: int | None = None
    ) -> Iterator[LogRecord]:
        try:
            first = self._admin.start_offsets([(topic, partition)])[topic, partition]
            if end is None:
                end = self.end(topic, partition)
        except UnknownTopicError:
            return
        for record in self._fetcher.read_range(topic, partition, max(first, start), end):
            yield LogRecord(record.offset, record.key, record.value)

    def last(self, topic: str) -> LogRecord | None:
        try:
            record = self._fetcher.read_last(topic)
        except UnknownTopicError:
            return None
        return None if record is None else LogRecord(record.offset, record.key, record.value)

    def end(self, topic: str, partition: int) -> int:
        place = (topic, partition)
        return self._admin.end_offsets([place], "read_committed")[place]

    def close(self) -> None:
        # An error of what was on its way is told by whoever closes, or by the next start.
        self._behind.shutdown(wait=True)
        self._writer.close()
        self._admin.close()
        self._fetcher.close()


def _check_sizes(topic: str, values: Values) -> None:
    """Refuse what no log takes: it would close the connection, again and again."""
    if isinstance(values, Sequence):
        largest = max((len(value) for value in values if value is not None), default=0)
    else:
        from tailrace.records.columns import lengths_of

        largest = int(lengths_of(values).max()) if len(values) else 0
    if largest > LARGEST_BYTES - (1 << 16):
        raise RecordTooLargeError(
            f'a row for "{topic}" is too large',
            detail=f"It takes {largest:,} bytes as JSON; a log takes {LARGEST_BYTES:,} at most.",
            hint="leave the large column out with `columns=`, or exclude the table",
        )
