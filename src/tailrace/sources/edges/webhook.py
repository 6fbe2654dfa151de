"""Calls of a provider as records, each once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, TimeoutError
from datetime import UTC, datetime, timedelta

import orjson

from tailrace.client.log import Log
from tailrace.client.record import Delivery
from tailrace.config import resolve
from tailrace.errors import TailraceError
from tailrace.plain_http import Answer, Request
from tailrace.sources.edges.committer import Committer, Full, Outgoing
from tailrace.sources.edges.declare import Webhook
from tailrace.sources.edges.figures import Figures
from tailrace.sources.edges.signatures import Unsigned, prove

KEPT = timedelta(days=1)
KEPT_LIMIT = 1_000_000
ANSWER_SECONDS = 30.0
ID_HEADER = "webhook-id"


class Receiver:
    """Answers calls. Safe from several threads."""

    def __init__(self, edge: Webhook, log: Log, figures: Figures) -> None:
        self._edge = edge
        self._log = log
        self._figures = figures
        self._secrets = [resolve(one) for one in edge.secrets]
        self._path = tuple(one for one in edge.path.split("/") if one)
        self._lock = threading.Lock()
        # Where the call with an id stands, and since when that is known; oldest first.
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._open: dict[str, Future[list[Delivery]]] = {}
        self._committer = Committer(log, f"tailrace.edge.{edge.name}", self._recall)

    def trust(self, secret: str) -> None:
        """Take calls that are signed with this, too."""
        self._secrets = [*self._secrets, secret]

    def start(self) -> None:
        self._log.ensure_topic(self._edge.written)
        self._committer.start()

    def close(self) -> None:
        self._committer.close()

    def __call__(self, request: Request) -> Answer:
        if tuple(one for one in request.path if one) != self._path:
            return refuse(404, "nothing is here")
        if request.method != "POST":
            return refuse(405, "calls are POST requests")
        self._figures.received(1)
        try:
            call = prove(
                self._edge.scheme,
                self._secrets,
                request.headers,
                request.body,
                now=self._log.clock.wall_ms() / 1000,
                tolerance=self._edge.patience.total_seconds(),
            )
        except Unsigned as refused:
            self._figures.refused(1)
            return refuse(refused.status, refused.reason)
        try:
            position = self._take(call.id, call.body)
        except Full:
            self._figures.refused(1)
            return refuse(503, "too many calls wait; try again")
        except (TailraceError, OSError, TimeoutError):
            self._figures.refused(1)
            return refuse(503, "the log does not take the call now; try again")
        return Answer(200, orjson.dumps({"position": position}))

    def _take(self, identity: str, body: bytes) -> str:
        with self._lock:
            known = self._known.get(identity)
            if known is not None:
                self._figures.repeated(1)
                return known[0]
            pending = self._open.get(identity)
            mine = pending is None
            if pending is None:
                record = Outgoing(
                    self._edge.written,
                    body,
                    identity.encode(),
                    ((ID_HEADER, identity.encode()),),
                )
                pending = self._open[identity] = self._committer.submit([record])
        try:
            (found,) = pending.result(ANSWER_SECONDS)
        except TimeoutError:
            raise  # it may still be written: it stays open, and a repeat waits for it
        except BaseException:
            with self._lock:
                self._open.pop(identity, None)
            raise
        position = f"log:{found.topic}/{found.partition}:{found.offset}"
        with self._lock:
            self._keep(identity, position)
            self._open.pop(identity, None)
        if mine:
            self._figures.accepted(1)
        return position

    def _keep(self, identity: str, position: str) -> None:
        now = self._log.clock.monotonic()
        self._known[identity] = (position, now)
        while self._known:
            _, since = next(iter(self._known.values()))
            if len(self._known) <= KEPT_LIMIT and now - since < KEPT.total_seconds():
                return
            self._known.popitem(last=False)

    def _recall(self) -> None:
        """The ids of the last day, from the log: also after a commit nobody knows the end of."""
        since = datetime.fromtimestamp(self._log.clock.wall_ms() / 1000, UTC) - KEPT
        found: list[tuple[str, str]] = []
        for record in self._log.read(self._edge.written, start=since):
            for name, value in record.headers:
                if name == ID_HEADER and value is not None:
                    place = f"log:{record.topic}/{record.partition}:{record.offset}"
                    found.append((value.decode("utf-8", "replace"), place))
        with self._lock:
            for identity, place in found[-KEPT_LIMIT:]:
                if identity not in self._known:
                    self._keep(identity, place)


def refuse(status: int, reason: str) -> Answer:
    return Answer(status, orjson.dumps({"error": reason, "code": "webhook"}))
