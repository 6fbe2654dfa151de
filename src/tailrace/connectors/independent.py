"""A task that reads, writes and remembers by itself: Tailrace's own sources and sinks.

Their positions are where their guarantee needs them: of a source in its transactions in the log, of
a sink in its target. The worker starts, stops, moves and pauses them like any other task. What it
lists as a connector's offsets is a copy of those positions, written a little later, so nobody may
set it. A task that runs but cannot go on (its database is away) is shown with the reason.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.client.groups import Groups
from tailrace.client.log import Log, connect
from tailrace.connectors.base import Connector, Offset, Partition
from tailrace.connectors.names import OFFSETS
from tailrace.connectors.offsets import StoredOffsets, canonical
from tailrace.connectors.sink_group import group_of
from tailrace.connectors.task import Spec, Surroundings
from tailrace.telemetry.part import STATES, Part

log = logging.getLogger(__name__)
TOLD_SECONDS = 2.0


@dataclass(slots=True)
class TaskPart(Part):
    """A part of a project that is a task of a worker: it reports there, and not to a file."""

    around: Surroundings = field(kw_only=True)
    position: str = field(default="", kw_only=True)
    _error: Mapping[str, Any] | None = None
    _said: tuple[str, str] | None = None

    def report(self, state: str | None = None, **facts: object) -> None:
        if state is not None and state not in STATES:
            raise ValueError(f"unknown state {state!r}")
        if isinstance(position := facts.get("position"), str):
            self.position = position
        if "error" in facts:
            error = facts["error"]
            self._error = error if isinstance(error, Mapping) else None
        if state in ("running", "lagging", "failed"):
            self.say("RUNNING")

    def say(self, state: str) -> None:
        """Tell the worker, if it is news."""
        said = (state, str(self._error and self._error["error"]))
        if said == self._said or (state == "RUNNING" and self.around.halted.is_set()):
            return
        self._said = said
        self.around.say(state=state, error=self._error)


class IndependentTask:
    """What does the work of such a task."""

    def run(self, settings: Mapping[str, Any], part: TaskPart) -> None:
        """Work until `part.stopping` is set; called again when it goes on."""
        raise NotImplementedError

    def places(self, part: TaskPart) -> Iterable[tuple[Partition, Offset]]:
        """The reported position in the form of Kafka Connect's offsets."""
        return ()


def directory_of(state: str, connector: str, number: int) -> Path:
    """Where a task keeps its state: one directory below `state`, whatever the connector's name."""
    return Path(state) / f"{quote(connector, safe='')}-{number}"


def run(
    spec: Spec, connector: type[Connector], settings: dict[str, Any], around: Surroundings
) -> None:
    """The task's whole life; returns when it was told to stop."""
    task = connector.Task()  # type: ignore[attr-defined]
    assert isinstance(task, IndependentTask)
    part = TaskPart(
        name=spec.connector,
        kind="connector",
        project=spec.worker["group.id"],
        bootstrap=spec.bootstrap,
        directory=directory_of(spec.worker["state.directory"], spec.connector, spec.number),
        stopping=around.halted,
        around=around,
    )
    teller = _Teller(spec, settings, task, part)
    teller.start()
    try:
        while not around.stopping.is_set():
            if around.paused.is_set():
                part.say("PAUSED")
                around.wait(1.0)
                continue
            part.say("RUNNING")
            task.run(settings, part)
    finally:
        teller.close()


class _Teller:
    """Writes down, for people, where the task stands."""

    def __init__(
        self, spec: Spec, settings: Mapping[str, Any], task: IndependentTask, part: TaskPart
    ) -> None:
        self._spec, self._task, self._part = spec, task, part
        self._group = group_of(spec.connector, settings)
        self._topic = spec.worker.get("offset.storage.topic", OFFSETS)
        self._told = ""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="offsets", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join(TOLD_SECONDS)

    def _run(self) -> None:
        ending = False
        while not ending:
            ending = self._ending.wait(TOLD_SECONDS)
            position = self._part.position
            if position == self._told:
                continue
            try:
                with connect(self._spec.bootstrap) as there:
                    self._tell(there)
                self._told = position
            except (ClientError, OSError) as error:
                log.info("offsets could not be listed", extra={"error": str(error)})

    def _tell(self, there: Log) -> None:
        stored = StoredOffsets(self._spec.connector)
        of_topics: dict[tuple[str, int], int] = {}
        with there.producer() as producer:
            for partition, offset in self._task.places(self._part):
                if "kafka_offset" in offset:
                    place = partition["kafka_topic"], partition["kafka_partition"]
                    of_topics[place] = offset["kafka_offset"]
                else:
                    key = stored.key(canonical(partition))
                    producer.send(self._topic, key=key, value=orjson.dumps(dict(offset)))
        if of_topics:
            with closing(there.cluster()) as cluster:
                Groups(Admin.over(cluster)).commit(self._group, of_topics)
