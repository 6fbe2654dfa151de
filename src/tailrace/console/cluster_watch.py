"""What happens to a cluster: a look every two seconds, what changed since, alarms and metrics.

Elections and moves go to log streams of their own (`tailrace.cluster.elections`,
`tailrace.cluster.moves`), replicas that leave and come back to `tailrace.cluster.replicas`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.client.admin import Admin
from tailrace.client.operations import ClusterState, Flapping, Operations
from tailrace.clock import SYSTEM, Clock
from tailrace.errors import TailraceError
from tailrace.telemetry.metrics import counter, gauge

EVERY_SECONDS = 2.0
MOST_SHARE = 0.05  # of the time for looking: a large cluster is looked at less often
MOST_EVENTS = 500
TIMEOUT = 20.0

_STREAMS = {
    kind: logging.getLogger(f"tailrace.cluster.{kind}") for kind in ("elections", "moves", "replicas")
}  # fmt: skip
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened between two looks; `at` in ms since 1970."""

    at: int
    kind: str  # elections, moves, replicas
    topic: str
    partition: int
    text: str


class Changes:
    """Tells what changed from one state to the next."""

    def __init__(self) -> None:
        self._leaders: dict[Place, int] = {}
        self._in_sync: dict[Place, frozenset[int]] = {}
        self._moving: set[Place] = set()
        self._controller: int | None = None

    def between(self, state: ClusterState) -> Iterator[tuple[str, str, int, str]]:
        """(kind, topic, partition, text) of each change since the last call; none at the first."""
        first = self._controller is None
        if not first and state.controller.id != self._controller:
            yield "elections", "", -1, f"controller {_broker(self._controller)} → {_broker(state.controller.id)}"  # fmt: skip
        self._controller = state.controller.id
        leaders: dict[Place, int] = {}
        in_sync: dict[Place, frozenset[int]] = {}
        for topic in state.topics:
            for each in topic.partitions:
                place = (topic.name, each.partition)
                leaders[place], in_sync[place] = each.leader, frozenset(each.in_sync)
                led = self._leaders.get(place, each.leader)
                if led != each.leader:
                    yield "elections", *place, f"leader {_broker(led)} → {_broker(each.leader)}, epoch {each.leader_epoch}"  # fmt: skip
                before = self._in_sync.get(place, in_sync[place])
                for broker in sorted(before - in_sync[place]):
                    yield "replicas", *place, f"broker {broker} is no longer in sync"
                for broker in sorted(in_sync[place] - before):
                    yield "replicas", *place, f"broker {broker} is in sync again"
        self._leaders, self._in_sync = leaders, in_sync
        moving = {(each.topic, each.partition): each for each in state.moves}
        for place in sorted(moving.keys() - self._moving) if not first else ():
            move = moving[place]
            yield "moves", *place, f"moves to brokers {', '.join(map(str, move.adding)) or '–'}, leaves {', '.join(map(str, move.removing)) or '–'}"  # fmt: skip
        for place in sorted(self._moving - moving.keys()):
            yield "moves", *place, "move ended"
        self._moving = set(moving)


def _broker(id: int | None) -> str:
    return "none" if id is None or id < 0 else str(id)


class ClusterWatch:
    """Looks until closed. `document` is the last look, with `flapping` and `events`."""

    def __init__(self, bootstrap: str, *, clock: Clock = SYSTEM) -> None:
        self._bootstrap = bootstrap
        self._clock = clock
        self._stopping = threading.Event()
        self._changes, self._flapping = Changes(), Flapping()
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._last: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)

    def start(self) -> ClusterWatch:
        self._thread.start()
        return self

    def close(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(1.0)  # a daemon: a cluster that is gone may keep it for longer

    @property
    def document(self) -> Mapping[str, Any] | None:
        """None until the cluster answered once."""
        return self._last

    def take(self, state: ClusterState) -> None:
        """Remember a look."""
        for kind, topic, partition, text in self._changes.between(state):
            about = {"topic": topic, "partition": partition} if topic else {}
            _STREAMS[kind].info(text, extra=about)
            counter(f"tailrace_cluster_{kind}_total", _COUNTED[kind]).inc()
            self._events.append(Event(self._clock.wall_ms(), kind, topic, partition, text))
        flapping = self._flapping.observe(state, self._clock.monotonic())
        document = state.document()
        events = [
            {"at": each.at, "kind": each.kind, "topic": each.topic, "partition": each.partition, "text": each.text}
            for each in reversed(self._events)
        ]  # fmt: skip
        self._last = {**document, "flapping": flapping, "events": events}
        publish(self._last)

    def _run(self) -> None:
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            try:
                with Admin(self._bootstrap, timeout=TIMEOUT) as admin:
                    operations = Operations(admin)
                    while not self._stopping.is_set():
                        began = self._clock.monotonic()
                        self.take(operations.status())
                        took = self._clock.monotonic() - began
                        self._stopping.wait(max(EVERY_SECONDS, took / MOST_SHARE))
            except TailraceError as error:
                logging.getLogger(__name__).info("cluster does not answer", extra={"reason": error.message})  # fmt: skip
            except OSError as error:
                logging.getLogger(__name__).info("cluster does not answer", extra={"reason": str(error)})  # fmt: skip
            self._stopping.wait(EVERY_SECONDS)


_COUNTED = {
    "elections": "Leaders and controllers that changed, as seen from here",
    "moves": "Moves that began or ended, as seen from here",
    "replicas": "Replicas that left or came back into the in-sync set, as seen from here",
}
_GAUGES = {
    "under_replicated": "Partitions with fewer replicas in sync than they have",
    "offline": "Partitions without a leader",
    "under_min_insync": "Partitions with fewer replicas in sync than min.insync.replicas",
    "flapping": "Partitions whose in-sync set changed three times in half an hour",
}


def publish(document: Mapping[str, Any]) -> None:
    """Gauges of a look."""
    for name, text in _GAUGES.items():
        gauge(f"tailrace_cluster_{name}_partitions", text).set(len(document[name]))
    controllers = gauge("tailrace_cluster_controllers", "Active controllers: 1 is right")
    controllers.set(int(document["controller"]["id"] >= 0))
    up = sum(each["state"] == "up" for each in document["brokers"])
    gauge("tailrace_cluster_brokers", "Brokers that answer").set(up)
    gauge("tailrace_cluster_moving_partitions", "Partitions that move").set(len(document["moves"]))
    left = gauge("tailrace_cluster_left_throttles", "1 if a throttle outlived its moves")
    left.set(bool(document["left_throttles"]))


def cluster_alarms(document: Mapping[str, Any] | None) -> Iterator[dict[str, str]]:
    """What deserves attention in a look."""
    if document is None:
        return
    if document["controller"]["id"] < 0:
        yield _alarm("critical", "has no controller: nobody elects leaders", "start the controllers; a majority of the voters must run")  # fmt: skip
    if offline := document["offline"]:
        yield _alarm("critical", f"{_partitions(offline)} without a leader: neither written nor read", "start the brokers that hold them; `tailrace cluster elect --unclean --accept-loss` gives up what they alone have")  # fmt: skip
    if lacking := document["under_min_insync"]:
        yield _alarm("critical", f"{_partitions(lacking)} below min.insync.replicas: writes with acks=all are refused", "start the brokers that are missing, or move the partitions: `tailrace cluster move`")  # fmt: skip
    if lacking := document["under_replicated"]:
        shared = document["suspects"][0] if document["suspects"] else None
        which = f"; broker {shared['broker']} is missing in {shared['partitions']} of them" if shared else ""  # fmt: skip
        yield _alarm("warning", f"{_partitions(lacking)} under-replicated{which}", "look at that broker first: its disk, its network, its log")  # fmt: skip
    if gone := [each["id"] for each in document["brokers"] if each["state"] != "up"]:
        names = ", ".join(map(str, gone))
        yield _alarm("critical", f"does not see broker {names}, which holds replicas", "start it, or empty it: `tailrace cluster move --from BROKER`")  # fmt: skip
    if flapping := document["flapping"]:
        worst = max(flapping, key=lambda each: int(each["changes"]))
        yield _alarm("warning", f"{_partitions(flapping)} with replicas that leave and come back, {worst['topic']}/{worst['partition']} {worst['changes']} times in half an hour", "a slow disk or network of a follower, or replica.lag.time.max.ms is too short")  # fmt: skip
    if document["left_throttles"]:
        yield _alarm("warning", "throttles replication though nothing moves", "`tailrace cluster status` lists the settings; `kafka-configs --delete-config` takes them away")  # fmt: skip


def _partitions(places: list[Mapping[str, Any]]) -> str:
    count = len(places)
    first = f"{places[0]['topic']}/{places[0]['partition']}"
    return f"has {count:,} partitions ({first}, …)" if count > 1 else f"has 1 partition ({first})"


def _alarm(level: str, message: str, hint: str) -> dict[str, str]:
    return {"level": level, "what": "cluster", "message": message, "hint": hint}
