"""What the topic `connect-configs` says, folded: settings, tasks, target states. Kafka's records.

    connector-NAME          {"properties": {…}}              or null: deleted
    target-state-NAME       {"state": …, "state.v2": "STARTED" | "PAUSED" | "STOPPED"}
    task-NAME-0             {"properties": {…}}              counts from its commit on
    commit-NAME             {"tasks": 2}
    tasks-fencing-NAME      {"task-count": 2}                tasks before the commit are fenced
    restart-connector-NAME  {"include-tasks": …, "only-failed": …}
    logger-cluster-NAME     {"level": "DEBUG"}

A source may start its tasks only when a fencing record stands behind their commit: tasks of an
earlier commit could else go on writing what the new ones write too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

Written = tuple[bytes, bytes | None]
STARTED, PAUSED, STOPPED = "STARTED", "PAUSED", "STOPPED"


@dataclass(frozen=True, slots=True)
class Restart:
    """Somebody asked for a restart; `offset` tells one request from the next."""

    offset: int
    tasks: bool
    only_failed: bool


@dataclass(slots=True)
class Configured:
    """The state at one offset of the topic. Whoever keeps one takes a `copy`."""

    offset: int = 0
    connectors: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, tuple[dict[str, str], ...]] = field(default_factory=dict)
    committed_at: dict[str, int] = field(default_factory=dict)
    fenced: dict[str, tuple[int, int]] = field(default_factory=dict)  # offset, count of tasks
    restarts: dict[str, Restart] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    unread: int = 0
    _waiting: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)

    def apply(self, key: bytes, value: bytes | None, offset: int) -> None:
        """Fold one record. What cannot be read is counted, and changes nothing."""
        self.offset = offset + 1
        try:
            name = key.decode()
            found = None if value is None else orjson.loads(value)
            if found is not None and not isinstance(found, dict):
                raise ValueError("not an object")
            self._apply(name, found, offset)
        except (ValueError, KeyError, TypeError):
            self.unread += 1

    def _apply(self, key: str, found: dict[str, object] | None, offset: int) -> None:
        for prefix, fold in _FOLDS:
            if key.startswith(prefix):
                fold(self, key[len(prefix) :], found, offset)
                return
        if key != "session-key":
            self.unread += 1

    def _connector(self, name: str, found: dict[str, object] | None, offset: int) -> None:
        if found is None:
            self.connectors.pop(name, None)
            for forgotten in (self.tasks, self._waiting, self.restarts, self.committed_at):
                forgotten.pop(name, None)
            return
        self.connectors[name] = _properties(found)

    def _target(self, name: str, found: dict[str, object] | None, offset: int) -> None:
        if found is None:
            self.targets.pop(name, None)
            return
        state = str(found.get("state.v2") or found["state"])
        if state not in (STARTED, PAUSED, STOPPED):
            raise ValueError(state)
        self.targets[name] = state

    def _task(self, name: str, found: dict[str, object] | None, offset: int) -> None:
        connector, _, number = name.rpartition("-")
        waiting = self._waiting.setdefault(connector, {})
        if found is None:
            waiting.pop(int(number), None)
        else:
            waiting[int(number)] = _properties(found)

    def _commit(self, name: str, found: dict[str, object] | None, offset: int) -> None:
        if found is None:
            return
        count = int(found["tasks"])  # type: ignore[call-overload]
        before = self.tasks.get(name, ())
        waiting = self._waiting.pop(name, {})
        # A task that did not change may be compacted away from between its commits.
        known = {**dict(enumerate(before)), **waiting}
        if any(number not in known for number in range(count)):
            raise ValueError("a task is missing")
        self.tasks[name] = tuple(known[number] for number in range(count))
        self.committed_at[name] = offset

    def _fencing(self, name: str, found: dict[str, object] | None, offset: int) -> None:
        if found is None:
            self.fenced.pop(name, None)
        else:
            self.fenced[name] = (offset, int(found["task-count"]))  # type: ignore[call-overload]

    def _restart(self, name: str, found: dict[str, object] | None, offset: int) -> None:
        if found is not None:
            self.restarts[name] = Restart(
                offset, bool(found["include-tasks"]), bool(found["only-failed"])
            )

    def _level(self, name: str, found: dict[str, object] | None, offset: int) -> None:
        if found is None:
            self.levels.pop(name, None)
        else:
            self.levels[name] = str(found["level"])

    # Questions ---------------------------------------------------------------------

    def target(self, name: str) -> str:
        return self.targets.get(name, STARTED)

    def must_fence(self, name: str) -> bool:
        """Whether tasks of an earlier commit have to be fenced before these may start."""
        return self.fenced.get(name, (-1, 0))[0] < self.committed_at.get(name, -1)

    def tasks_to_fence(self, name: str) -> int:
        """How many transactional ids earlier tasks may have used."""
        return self.fenced.get(name, (-1, 0))[1]

    def units(self) -> list[Unit]:
        """Everything that has to run somewhere: each connector and each of its tasks."""
        found: list[Unit] = []
        for name in sorted(self.connectors):
            found.append((name, -1))
            found += [(name, number) for number in range(len(self.tasks.get(name, ())))]
        return found

    def copy(self) -> Configured:
        return Configured(
            self.offset, dict(self.connectors), dict(self.targets), dict(self.tasks),
            dict(self.committed_at), dict(self.fenced), dict(self.restarts), dict(self.levels),
            self.unread, {name: dict(each) for name, each in self._waiting.items()},
        )  # fmt: skip


Unit = tuple[str, int]
"""A connector (number -1) or one of its tasks."""

_FOLDS = (
    ("connector-", Configured._connector),
    ("target-state-", Configured._target),
    ("tasks-fencing-", Configured._fencing),
    ("task-", Configured._task),
    ("commit-", Configured._commit),
    ("restart-connector-", Configured._restart),
    ("logger-cluster-", Configured._level),
)


def _properties(found: Mapping[str, object]) -> dict[str, str]:
    properties = found["properties"]
    if not isinstance(properties, dict):
        raise ValueError("no properties")
    return {str(name): str(text) for name, text in properties.items() if text is not None}


def write_connector(name: str, settings: Mapping[str, str] | None) -> Written:
    value = None if settings is None else orjson.dumps({"properties": dict(settings)})
    return f"connector-{name}".encode(), value


def write_target(name: str, state: str | None) -> Written:
    # A Kafka Connect of before 3.5 knows `state` alone, and no STOPPED.
    known = PAUSED if state == STOPPED else state
    value = None if state is None else orjson.dumps({"state": known, "state.v2": state})
    return f"target-state-{name}".encode(), value


def write_tasks(name: str, tasks: Iterable[Mapping[str, str]]) -> list[Written]:
    """The settings of the tasks, then their commit."""
    found: list[Written] = [
        (f"task-{name}-{number}".encode(), orjson.dumps({"properties": dict(each)}))
        for number, each in enumerate(tasks)
    ]
    return [*found, (f"commit-{name}".encode(), orjson.dumps({"tasks": len(found)}))]


def write_fencing(name: str, count: int | None) -> Written:
    value = None if count is None else orjson.dumps({"task-count": count})
    return f"tasks-fencing-{name}".encode(), value


def write_restart(name: str, *, tasks: bool, only_failed: bool) -> Written:
    value = orjson.dumps({"include-tasks": tasks, "only-failed": only_failed})
    return f"restart-connector-{name}".encode(), value


def write_level(name: str, level: str) -> Written:
    return f"logger-cluster-{name}".encode(), orjson.dumps({"level": level})
