"""For authors: run a connector in a test, without a log, and kill its tasks at every step.

    from tailrace.connectors import testing

    calm = testing.run(Numbers, {"topic": "numbers"}, polls=5)
    hurt = testing.run(Numbers, {"topic": "numbers"}, polls=5, kill=testing.EVERYWHERE)
    assert hurt.values == calm.values

A kill drops the task as kill -9 does: nothing is stopped, and the next one starts from what was
committed. Records go through the connector's transforms and converters as in a worker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.connectors.base import (
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
)
from tailrace.connectors.common import common
from tailrace.connectors.converters import DEFAULTS
from tailrace.connectors.offsets import StoredOffsets
from tailrace.connectors.plugins import kind_of
from tailrace.connectors.secrets import resolve
from tailrace.connectors.source_task import Way
from tailrace.connectors.tolerance import Tolerance
from tailrace.errors import UsageError

POLLED, WRITTEN, COMMITTED = "polled", "written", "committed"
PUT, FLUSHED = "put", "flushed"
EVERYWHERE = (POLLED, WRITTEN, COMMITTED, PUT, FLUSHED)
"""Where a task can be killed: a source after `poll`, after its records were written, after the
commit; a sink after `put`, after `flush`, after the commit."""

_OFFSETS = "connect-offsets"
Settings = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Written:
    """One record as it would be in the log."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = -1
    partition: int | None = None


@dataclass(slots=True)
class Result:
    """What became visible: records in the order of their commits, offsets, how often it was killed."""

    records: list[Written] = field(default_factory=list)
    offsets: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    kills: int = 0

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]


class _Ledger:
    """What a transaction holds until it commits."""

    def __init__(self, stored: StoredOffsets) -> None:
        self._stored = stored
        self.visible: list[Written] = []
        self._open: list[Written] = []
        self._moved: list[tuple[bytes | None, bytes | None]] = []

    def send_columns(
        self,
        topic: str,
        partition: int | None,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[tuple[tuple[str, bytes | None], ...]] | None = None,
    ) -> None:
        given = headers if headers is not None else [()] * len(values)
        for key, value, time, each in zip(keys, values, timestamps, given, strict=True):
            self._open.append(Written(topic, key, value, each, time, partition))

    def send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None
    ) -> None:
        self._moved.append((key, value))

    def commit(self) -> None:
        self.visible += self._open
        for key, value in self._moved:
            self._stored.apply(key, value)
        self.forget()

    def forget(self) -> None:
        self._open, self._moved = [], []


def run(
    connector: type[SourceConnector] | type[SinkConnector],
    settings: Settings,
    *,
    polls: int = 1000,
    quiet: int = 3,
    tasks_max: int = 1,
    kill: Collection[str] = (),
    records: Sequence[SinkRecord] = (),
    batch: int = 2,
) -> Result:
    """Run every task: of a source until `polls` transactions are committed or `quiet` polls in a
    row bring nothing; of a sink (one task) until it took all `records`, `batch` of them at a time.

    Each step is killed once at each point of `kill`. What a connector raises is raised here.
    """
    if unknown := set(kill) - set(EVERYWHERE):
        raise UsageError(f"there is no point {min(unknown)!r}", hint=f"points: {', '.join(EVERYWHERE)}")  # fmt: skip
    given = resolve({"name": "test", "connector.class": connector.__name__, **settings})
    made = connector()
    split = made.tasks(made.config.typed(given), tasks_max)
    result = Result()
    if issubclass(connector, SinkConnector):
        typed = _typed(connector, {**given, "topics": ",".join({one.topic for one in records})})
        _run_sink(connector, {**typed, **(split[0] if split else {})}, records, batch, kill, result)
        return result
    stored = StoredOffsets("test")
    for own in split:
        _run_source(connector, {**given, **own}, polls, quiet, kill, stored, result)
    result.offsets = stored.listed()
    return result


def _typed(
    connector: type[SourceConnector] | type[SinkConnector], given: Settings
) -> dict[str, Any]:
    known = common(kind_of(connector))
    return {**known.typed(given), **{n: v for n, v in connector.config.typed(given).items() if n in connector.config}}  # fmt: skip


def _run_source(
    connector: type[SourceConnector],
    given: Settings,
    polls: int,
    quiet: int,
    kill: Collection[str],
    stored: StoredOffsets,
    result: Result,
) -> None:
    settings = _typed(connector, given)
    ledger = _Ledger(stored)
    points = [point for point in (POLLED, WRITTEN, COMMITTED) if point in kill]

    def begin() -> tuple[Any, Way]:
        ledger.forget()
        tolerance = Tolerance(settings, lambda: False)
        way = Way("test", given, {}, {**DEFAULTS, **connector.defaults}, tolerance, stored, _OFFSETS)  # fmt: skip
        task = connector.Task()
        # A copy: what a task does to its offset must not reach the log but by a commit.
        known = StoredOffsets("test")
        for partition, offset in stored.listed():
            key = stored.key(orjson.dumps(partition, option=orjson.OPT_SORT_KEYS))
            known.apply(key, orjson.dumps(offset))
        task.start(settings, known)
        return task, way

    task, way = begin()
    committed = nothing = 0
    left = list(points)
    while committed < polls and nothing < quiet:
        records: Sequence[SourceRecord] = task.poll() or ()
        if not records:
            nothing += 1
            continue
        nothing = 0
        point = left.pop(0) if left else ""
        if point != POLLED:
            way.add(records, ledger)
            if point != WRITTEN:
                way.commit(ledger)
                committed += 1
                left = list(points)
                if point != COMMITTED:
                    task.committed()
        if point:
            result.kills += 1
            task, way = begin()
    task.stop()
    result.records += ledger.visible


def _run_sink(
    connector: type[SinkConnector],
    settings: dict[str, Any],
    records: Sequence[SinkRecord],
    batch: int,
    kill: Collection[str],
    result: Result,
) -> None:
    places = sorted({(one.topic, one.partition) for one in records})
    points = [point for point in (PUT, FLUSHED, COMMITTED) if point in kill]
    at: dict[tuple[str, int], int] = {}

    def begin() -> SinkTask:
        task = connector.Task()
        task.start(settings)
        task.opened(places)
        for place in places:
            own = task.position(*place)
            at[place] = result.committed.get(place, 0) if own is None else own
        return task

    task = begin()
    left = list(points)
    while True:
        ahead = [one for one in records if one.offset >= at[one.topic, one.partition]][:batch]
        if not ahead:
            break
        task.put(ahead)
        point = left.pop(0) if left else ""
        if point != PUT:
            task.flush()
            if point != FLUSHED:
                for one in ahead:
                    at[one.topic, one.partition] = one.offset + 1
                result.committed.update(at)
                left = list(points)
        if point:
            result.kills += 1
            task = begin()
    task.closed(places)
    task.stop()
