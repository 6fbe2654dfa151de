"""The topic `_schemas`: one writer at a time, one reader that folds it.

    with SchemaTopic(log) as topic:
        topic.start()
        topic.write(lambda subjects: (answer, records))

A write is one transaction of `tailrace.registry`. It is decided on a state that holds everything
before it: taking the transactional id over ends every other writer, then the topic is read to its
end, then the records are sent. Whoever takes over in between fences this one, and the decision is
made again on what the other wrote; so two registries never give one id to two schemas. When it is
not known whether a commit took effect, the last record's header tells. A write is answered when the
reader has folded it.
"""

from __future__ import annotations

import logging
import os
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from types import TracebackType
from typing import TypeVar

from tailrace.client.admin import Admin
from tailrace.client.errors import (
    ClientError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicExistsError,
)
from tailrace.client.log import Log
from tailrace.client.writer import TransactionalWriter
from tailrace.errors import TailraceError
from tailrace.registry.errors import Refusal, RegistryStoreError, too_large
from tailrace.schemas.subjects import Subjects, Written

log = logging.getLogger(__name__)

NAME = "_schemas"
TRANSACTIONAL_ID = "tailrace.registry"
RECORD_LIMIT_BYTES = 900_000
WRITE_SECONDS = 30.0
START_SECONDS = 60.0
_TOKEN = "tailrace.request"
_TOKENS_KEPT = 1000
_WAIT_SECONDS = 0.25
T = TypeVar("T")
Decide = Callable[[Subjects], tuple[T, Sequence[Written]]]


class SchemaTopic:
    """See the module. Safe from several threads."""

    def __init__(self, source: Log, name: str = NAME) -> None:
        self.name = name
        self._log = source
        self._clock = source.clock
        self._state = threading.Condition()
        self._subjects = Subjects()
        self._position = 0
        self._tokens: deque[bytes] = deque(maxlen=_TOKENS_KEPT)
        self._failure: TailraceError | None = None
        self._stopping = threading.Event()
        self._writing = threading.Lock()
        self._writer: TransactionalWriter | None = None
        self._reader = threading.Thread(target=self._read, name="registry reader", daemon=True)

    def __enter__(self) -> SchemaTopic:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Make the topic if there is none, and fold what is in it."""
        try:
            self._log.ensure_topic(self.name, 1, {"cleanup.policy": "compact"})
        except TopicExistsError:
            pass
        found = self._log.topic(self.name)
        if found is None or len(found.leaders) != 1:
            raise RegistryStoreError(
                f'the topic "{self.name}" must have one partition',
                detail="the order of its records decides which schema gets which id",
                hint="name another with --topic",
            )
        policy = self._log.topic_config(self.name).get("cleanup.policy") or ""
        if policy != "compact":
            raise RegistryStoreError(
                f'the topic "{self.name}" must be compacted, and no more than that',
                detail=f"cleanup.policy is {policy}: schemas would be deleted with time",
                hint=f"tailrace topic alter {self.name} --config cleanup.policy=compact",
            )
        self._reader.start()
        try:
            self._catch_up(self._clock.monotonic() + START_SECONDS)
        except Refusal as late:
            raise RegistryStoreError(
                f'the topic "{self.name}" could not be read in {START_SECONDS:.0f} s',
                detail="; ".join(late.details),
                hint="see whether the log answers: tailrace topic describe " + self.name,
            ) from late

    def close(self) -> None:
        self._stopping.set()
        if self._reader.is_alive():
            self._reader.join()
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    # Looking -----------------------------------------------------------------------

    def look(self, work: Callable[[Subjects], T]) -> T:
        """Ask the state; what `work` returns must not be the state itself."""
        with self._state:
            return work(self._subjects)

    @property
    def position(self) -> int:
        with self._state:
            return self._position

    @property
    def failure(self) -> TailraceError | None:
        """Why the topic cannot be read now."""
        with self._state:
            return self._failure

    # Reading -----------------------------------------------------------------------

    def _read(self) -> None:
        fetcher = self._log.fetcher(fetch_bytes=16 << 20)
        try:
            while not self._stopping.is_set():
                try:
                    found = fetcher.fetch(self.name, 0, self._position, wait=_WAIT_SECONDS)
                except OffsetOutOfRangeError:
                    self._begin_again()
                except TailraceError as error:
                    self._failed(error)
                else:
                    with self._state:
                        self._failure = None
                        for record in found.records:
                            self._subjects.apply(
                                _bytes(record.key),
                                None if record.value is None else _bytes(record.value),
                            )
                            for name, value in record.headers:
                                if name == _TOKEN and value is not None:
                                    self._tokens.append(bytes(value))
                        self._position = found.following
                        self._state.notify_all()
        finally:
            fetcher.close()

    def _begin_again(self) -> None:
        """The topic was deleted and made again, or its start moved: fold it from its start."""
        try:
            with closing(self._log.cluster()) as cluster:
                start = Admin.over(cluster).start_offsets([(self.name, 0)])[self.name, 0]
        except TailraceError as error:
            self._failed(error)
            return
        log.warning("the topic begins again", extra={"topic": self.name, "start": start})
        with self._state:
            self._subjects, self._position = Subjects(), start
            self._state.notify_all()

    def _failed(self, error: TailraceError) -> None:
        with self._state:
            if self._failure is None:
                log.warning("reading failed", extra={"topic": self.name, "error": str(error)})
            self._failure = error
            self._state.notify_all()
        self._stopping.wait(_WAIT_SECONDS)

    def _catch_up(self, until: float) -> None:
        self._wait_for(self._log.end_offsets(self.name)[0], until)

    def _wait_for(self, offset: int, until: float) -> None:
        with self._state:
            while self._position < offset:
                left = until - self._clock.monotonic()
                if left <= 0 or self._stopping.is_set():
                    reason = self._failure
                    raise Refusal(
                        50002,
                        "Operation timed out",
                        details=[str(reason)] if reason is not None else [],
                    )
                self._state.wait(min(left, _WAIT_SECONDS))

    # Writing -----------------------------------------------------------------------

    def write(self, decide: Decide[T]) -> T:
        """Decide on the newest state and write what was decided; its answer when it is folded.

        `decide` may be called several times and must change nothing. It may raise Refusal.
        """
        until = self._clock.monotonic() + WRITE_SECONDS
        with self._writing:
            token = b""
            tried: list[T] = []
            owned = self._writer is not None
            while True:
                try:
                    if not owned:
                        self._take_over()
                        owned = True
                    self._catch_up(until)
                    with self._state:
                        if token and token in self._tokens:
                            return tried[-1]  # the commit before this attempt took effect
                        answer, records = decide(self._subjects)
                    if not records:
                        return answer
                    token = os.urandom(16)
                    tried.append(answer)
                    self._wait_for(self._commit(records, token), until)
                    return answer
                except RecordTooLargeError as error:
                    self._let_go()
                    raise too_large() from error
                except ClientError as error:
                    owned = False
                    left = until - self._clock.monotonic()
                    if left <= 0 or self._stopping.is_set():
                        self._let_go()
                        raise Refusal(
                            50001, "Error in the backend data store", details=[str(error)]
                        ) from error
                    # Two that fence each other must not do it for ever in step.
                    self._clock.sleep(min(left, random.uniform(0.002, 0.05)))

    def _take_over(self) -> None:
        if self._writer is None:
            self._writer = self._log.transactional_writer(TRANSACTIONAL_ID, timeout=WRITE_SECONDS)
        self._writer.init()

    def _let_go(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _commit(self, records: Sequence[Written], token: bytes) -> int:
        """Write records in one transaction; the offset behind the last."""
        if any(len(value or b"") + len(key) > RECORD_LIMIT_BYTES for key, value in records):
            raise too_large()
        assert self._writer is not None
        for number, (key, value) in enumerate(records):
            last = number == len(records) - 1
            headers = ((_TOKEN, token),) if last else ()
            self._writer.send(self.name, 0, key, value, headers)
        return self._writer.commit()[self.name, 0]


def _bytes(data: bytes | memoryview | None) -> bytes:
    return b"" if data is None else bytes(data)
