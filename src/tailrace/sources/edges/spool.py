"""Records of an edge that nobody sends again: they wait here for the log, each written once.

They are written in the order they came in. A batch is one transaction, which also writes the number of
the batch to `__tailrace_edges`: after an error of which nobody knows whether it was before or after
the commit, the number in the log tells. Beside it an edge may keep marks, small texts by name, that
hold from the commit of the records that came with them:

    NAME            "17"            the number of the last batch
    NAME \\0 MARK    the text        removed with a value of null
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tailrace.client.errors import RecordTooLargeError
from tailrace.client.log import Log
from tailrace.errors import TailraceError
from tailrace.sources.edges.committer import Committer, Full, Outgoing

log = logging.getLogger(__name__)

EDGES_TOPIC = "__tailrace_edges"
BATCH_RECORDS = 5_000
BATCH_BYTES = 8 << 20
HELD_RECORDS = 100_000
HELD_BYTES = 64 << 20
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class _Item:
    record: Outgoing
    mark: tuple[str, str] | None

    @property
    def size_bytes(self) -> int:
        return 100 + len(self.record.value or b"")


class Spool:
    """`put` from any thread; one thread of its own writes."""

    def __init__(self, source: Log, edge: str) -> None:
        self._log = source
        self._edge = edge
        self._waiting: deque[_Item] = deque()
        self._waiting_bytes = 0
        self._change = threading.Condition()
        self._closing = False
        self._recoveries = 0
        self._batch = 0  # the last one that is known to be committed
        self._counts = dict.fromkeys(("written", "too_large", "given_up"), 0)
        self.marks: dict[str, str] = {}  # as they were at the start
        self._committer = Committer(source, f"tailrace.edge.{edge}", self._recall)
        self._thread = threading.Thread(target=self._work, name="edge spool", daemon=True)

    def start(self) -> None:
        """Take over from an earlier process; `marks` are known after this."""
        self._log.ensure_topic(EDGES_TOPIC, 1, {"cleanup.policy": "compact"})
        self._committer.start()
        self._thread.start()

    def put(self, record: Outgoing, mark: tuple[str, str] | None = None) -> None:
        item = _Item(record, mark)
        with self._change:
            self._waiting.append(item)
            self._waiting_bytes += item.size_bytes
            self._change.notify_all()

    @property
    def full(self) -> bool:
        """Whether an edge that can make its senders wait should do so."""
        return len(self._waiting) >= HELD_RECORDS or self._waiting_bytes >= HELD_BYTES

    @property
    def counts(self) -> Mapping[str, int]:
        with self._change:
            return dict(self._counts)

    def drain(self, seconds: float) -> bool:
        """Wait until everything is written; whether it is."""
        with self._change:
            return self._change.wait_for(lambda: not self._waiting, seconds)

    def close(self, seconds: float = 10.0) -> None:
        """Write what waits, if the log takes it within a time, and stop."""
        if self._thread.is_alive():
            self.drain(seconds)
        with self._change:
            self._closing = True
            self._counts["given_up"] += len(self._waiting)
            self._change.notify_all()
        self._committer.close()
        if self._thread.is_alive():
            self._thread.join()

    def _recall(self) -> None:
        """Which batch was the last, and the marks, from the log."""
        batch = 0
        marks: dict[str, str] = {}
        for record in self._log.read(EDGES_TOPIC):
            name, _, mark = (record.key or b"").decode().partition("\0")
            if name != self._edge:
                continue
            text = (record.value or b"").decode()
            if not mark:
                batch = int(text or 0)
            elif record.value is None:
                marks.pop(mark, None)
            else:
                marks[mark] = text
        with self._change:
            if not self._recoveries:
                self._batch, self.marks = batch, marks
            self._logged = batch
            self._recoveries += 1
            self._change.notify_all()

    _logged = 0

    def _work(self) -> None:
        most = BATCH_RECORDS
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._closing)
                if self._closing:
                    return
                taken = self._some(most)
                recoveries, number = self._recoveries, self._batch + 1
            written = self._write(taken, number, recoveries)
            if written is None and len(taken) > 1:
                most = len(taken) // 2  # the one that is too large is found by halves
                continue
            if written is False:
                continue
            most = min(BATCH_RECORDS, most * 2)
            with self._change:
                self._batch = number if written else self._batch
                self._counts["written" if written else "too_large"] += len(taken)
                for item in taken:
                    self._waiting.popleft()
                    self._waiting_bytes -= item.size_bytes
                self._change.notify_all()

    def _some(self, most: int) -> list[_Item]:
        found: list[_Item] = []
        size = 0
        for item in self._waiting:
            if found and (len(found) >= most or size + item.size_bytes > BATCH_BYTES):
                break
            found.append(item)
            size += item.size_bytes
        return found

    def _write(self, taken: list[_Item], number: int, recoveries: int) -> bool | None:
        """Whether a batch is committed; None if one of its records is too large."""
        name = self._edge.encode()
        marks = dict(item.mark for item in taken if item.mark is not None)
        records = [item.record for item in taken]
        records.append(Outgoing(EDGES_TOPIC, str(number).encode(), name))
        records += [
            Outgoing(EDGES_TOPIC, text.encode(), name + b"\0" + mark.encode())
            for mark, text in marks.items()
        ]
        try:
            self._committer.submit(records).result()
        except RecordTooLargeError:
            return None
        except Full:  # not taken at all
            with self._change:
                self._change.wait_for(lambda: self._closing, _PAUSE_SECONDS)
            return False
        except (TailraceError, OSError) as error:
            log.warning("records wait", extra={"edge": self._edge, "error": str(error)})
            with self._change:
                self._change.wait_for(lambda: self._recoveries > recoveries or self._closing)
                return self._recoveries > recoveries and self._logged >= number
        return True
