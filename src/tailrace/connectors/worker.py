"""A worker: runs the connectors and tasks that the group gives it, and leads the group if it is its turn.

One thread, `worker`, compares what should run with what does, and starts and stops processes. What
a process reports comes in on threads of its own. Everything that lasts is in the three topics.
"""

from __future__ import annotations

import logging
import os
import secrets as random_secrets
import ssl
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import orjson

from tailrace.client.errors import ClientError
from tailrace.client.log import Log
from tailrace.clock import SYSTEM
from tailrace.connectors import configured
from tailrace.connectors.catalogue import Catalogue
from tailrace.connectors.children import Child, ask, pack_address
from tailrace.connectors.configured import PAUSED, STARTED, STOPPED, Configured, Unit, Written
from tailrace.connectors.errors import (
    ConnectorEndedError,
    ConnectorError,
    ConnectorHangsError,
    Refused,
)
from tailrace.connectors.levels import Levels
from tailrace.connectors.membership import Membership, Table
from tailrace.connectors.membership import Worker as Described
from tailrace.connectors.settings import WorkerSettings
from tailrace.connectors.task import transactional_id
from tailrace.connectors.topics import ConfigTopic, StatusTopic, ensure
from tailrace.errors import TailraceError
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
SILENT_SECONDS = 30.0
AGAIN_SECONDS = 1.0
MOST_ENDS = 3
GROUP_SECONDS = 5.0
ASK_SECONDS = 60.0


@dataclass(slots=True)
class Running:
    """One task's process, or what is left of it."""

    unit: Unit
    settings: Mapping[str, str]
    committed_at: int
    version: str
    child: Child | None = None
    paused: bool = False
    state: str = "STARTING"
    stop_until: float | None = None
    beat_at: float = 0.0
    ended: bool = False
    again_at: float | None = None
    failed: bool = False
    ends: int = 0  # how often its process ended by itself, without a record in between

    @property
    def stopping(self) -> bool:
        return self.stop_until is not None


@dataclass(slots=True)
class Connecting:
    """A connector at work: how it was set when its tasks were asked for."""

    settings: Mapping[str, str]
    version: str
    target: str
    state: str = ""
    asking: bool = False
    asked: bool = False
    answer: list[dict[str, str]] | None = None
    error: dict[str, str] | None = None
    kind: str = "source"
    task_class: str = ""


@dataclass(slots=True)
class _Group:
    """Who we are in the group."""

    generation: int = -1
    member: str = ""
    table: Table | None = None
    assigned: set[Unit] = field(default_factory=set)
    decided: set[Unit] = field(default_factory=set)

    @property
    def leads(self) -> bool:
        return self.table is not None and self.table.leader == self.member


class Worker:
    """See the module. `url` is where the others reach this worker's REST interface; `trust` says
    whose certificates it takes there."""

    def __init__(
        self,
        source: Log,
        address: str,
        settings: WorkerSettings,
        url: str,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self.settings = settings
        self._trust = trust
        self.url = url
        self.name = url.partition("://")[2]
        self.secret = random_secrets.token_hex(16)
        self.log = self._log = source
        self.levels = Levels()
        self._cluster_id: str | None = None
        self._address = pack_address(address)
        self.catalogue = Catalogue(settings.plugins, settings.given)
        group = settings["group.id"]
        self.configs = ConfigTopic(source, settings["config.storage.topic"], f"connect-cluster-{group}", self.poke)  # fmt: skip
        self.statuses = StatusTopic(source, settings["status.storage.topic"], settings["status.storage.partitions"], self.name)  # fmt: skip
        self._lock = threading.RLock()
        self._changed = threading.Event()
        self._group = _Group()
        self._running: dict[Unit, Running] = {}
        self._connecting: dict[str, Connecting] = {}
        self._restarted: dict[str, int] = {}
        self._fencing: dict[str, float] = {}
        self._fence_lock = threading.Lock()
        self._started_at = 0
        self._stopping = False
        self._lapsed = False
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)
        self._membership = Membership(
            source.cluster(timeout=max(10.0, settings["session.timeout.ms"] / 1000)),
            group,
            session_seconds=settings["session.timeout.ms"] / 1000,
            rebalance_seconds=settings["rebalance.timeout.ms"] / 1000,
            heartbeat_seconds=settings["heartbeat.interval.ms"] / 1000,
            describe=self._describe,
            decide=self._decide,
            on_table=self._on_table,
            on_lapse=self._on_lapse,
        )

    def start(self) -> None:
        self.catalogue.start()
        ensure(self._log, self.settings["offset.storage.topic"], self.settings["offset.storage.partitions"])  # fmt: skip
        self.configs.start()
        self.statuses.start()
        # Restarts that were asked for before we came are others' affair.
        self._started_at = self.configs.position
        self._membership.start()
        self._thread.start()

    def close(self) -> None:
        """Stop everything, then leave, so that others start it at once."""
        with self._lock:
            self._stopping = True
        self.poke()
        if self._thread.is_alive():
            self._thread.join()
        self._membership.stop()
        self.configs.close()
        self.statuses.close()

    def poke(self) -> None:
        self._changed.set()

    # The group -----------------------------------------------------------------------

    def _describe(self) -> Described:
        with self._lock:
            owned = sorted({*self._running, *((name, -1) for name in self._connecting)})
        return Described(self.url, self.secret, self.configs.position, owned)

    def _decide(self, offset: int) -> Iterable[Unit]:
        self.configs.wait_for(offset)
        self.configs.catch_up()
        units = self.configs.state().units()
        with self._lock:
            self._group.decided = set(units)
        return units

    def _on_table(self, generation: int, member: str, table: Table) -> None:
        try:
            self.configs.wait_for(table.offset, 30)
        except TailraceError as error:
            log.warning("settings are late", extra={"error": str(error)})
        with self._lock:
            led = self._group.leads
            decided = self._group.decided
            self._group = _Group(generation, member, table, table.units(member), decided)
            self._lapsed = False
            leads = self._group.leads
        if leads and not led:
            self.configs.lead()
        self.poke()

    def _on_lapse(self) -> None:
        """The group has gone on without us: what we ran is run by others. End it at once."""
        with self._lock:
            self._lapsed = True
            self._group = _Group()
        self._end_everything()
        self.poke()

    def _end_everything(self) -> None:
        with self._lock:
            running = list(self._running.values())
            self._running.clear()
            self._connecting.clear()
        for each in running:
            if each.child is not None:
                each.child.kill()

    @property
    def leads(self) -> bool:
        with self._lock:
            return self._group.leads

    @property
    def generation(self) -> int:
        with self._lock:
            return self._group.generation

    def wait_for_group(self, seconds: float) -> None:
        """Until the group has said who runs what, or the time is over."""
        until = SYSTEM.monotonic() + seconds
        while self._group.table is None and SYSTEM.monotonic() < until and not self._stopping:
            SYSTEM.sleep(0.02)

    def leader(self) -> Described:
        """The leader, waited for a little. Raises Refused while there is none."""
        self.wait_for_group(GROUP_SECONDS)
        with self._lock:
            table = self._group.table
        if table is None:
            raise Refused(409, "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)")  # fmt: skip
        return table.workers[table.leader]

    def leader_url(self) -> str | None:
        """Where the leader is; None while there is none."""
        with self._lock:
            table = self._group.table
        return None if table is None else table.workers[table.leader].url

    def failed(self) -> TailraceError | None:
        """The first connector or task that failed, for a project's status."""
        for unit in self.configs.state().units():
            status = self.statuses.status(unit) or {}
            if status.get("state") == "FAILED":
                what = "connector" if unit[1] < 0 else "task"
                return ConnectorError(
                    f"{what} {_name(unit)} failed",
                    detail=str(status.get("trace") or "")[:2000],
                    hint=f"POST http://{self.name}/connectors/{unit[0]}/restart?includeTasks=true&onlyFailed=true",
                )
        return None

    def has_stopped(self, name: str, seconds: float) -> bool:
        """Whether no task of a connector runs any more; one that is stopping is waited for."""
        until = SYSTEM.monotonic() + seconds
        while self.statuses.running(name):
            if SYSTEM.monotonic() > until:
                return False
            SYSTEM.sleep(0.05)
        return True

    def runner(self, unit: Unit) -> Described | None:
        """The worker that runs something."""
        with self._lock:
            return None if self._group.table is None else self._group.table.runs(unit)

    def cluster_id(self) -> str:
        """The id of the log's cluster."""
        if self._cluster_id is None:
            with closing(self._log.cluster()) as cluster:
                request = DescribeClusterRequest()
                answer = cluster.any().request(APIS[ApiKey.DESCRIBE_CLUSTER], request)
                assert isinstance(answer, DescribeClusterResponse)
                self._cluster_id = answer.cluster_id
        return self._cluster_id

    def workers(self) -> list[str]:
        with self._lock:
            table = self._group.table
        return sorted(one.url for one in table.workers.values()) if table is not None else []

    # The thread ----------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self._changed.wait(LOOK_SECONDS)
            self._changed.clear()
            try:
                if self._stopping:
                    self._stop_all()
                    return
                silent = self._membership.silent_seconds
                if silent > self._membership.session_seconds and self._group.table is not None:
                    log.warning("the group has not answered for a session")
                    self._on_lapse()
                    self._membership.kick()
                if not self._lapsed and self._group.table is not None:
                    self._compare(self.configs.state())
            except Exception as error:
                log.exception("the worker goes on after an error", extra={"error": str(error)})
                SYSTEM.sleep(0.5)

    def _compare(self, state: Configured) -> None:
        """Stop what should not run, start what should."""
        group = self._group
        if group.leads and set(state.units()) != group.decided:
            self._membership.kick()
        gave_up = self._finish_stops()
        for unit, running in list(self._running.items()):
            self._look_after(unit, running, state, group)
        for name in list(self._connecting):
            if (name, -1) not in group.assigned or name not in state.connectors:
                with self._lock:
                    self._connecting.pop(name, None)
                deleted = name not in state.connectors
                self._put((name, -1), None if deleted else "UNASSIGNED", None)
                gave_up = True
        for name, number in sorted(group.assigned):
            if name not in state.connectors:
                continue
            if number < 0:
                self._look_after_connector(name, state)
            elif (name, number) not in self._running and number < len(state.tasks.get(name, ())):
                self._start_task((name, number), state)
        self._look_after_restarts(state)
        self.levels.take(state.levels)
        if gave_up and not self._gives_up(group):
            self._membership.kick()

    def _gives_up(self, group: _Group) -> bool:
        """Whether something still runs here that others wait for."""
        return any(unit not in group.assigned for unit in self._running)

    def _finish_stops(self) -> bool:
        """Processes that were told to stop and have, or are made to; whether one was not ours."""
        gone = False
        for unit, running in list(self._running.items()):
            if not running.stopping:
                continue
            child = running.child
            late = running.stop_until is not None and SYSTEM.monotonic() > running.stop_until
            if child is not None and not running.ended and not late:
                continue
            if child is not None:
                child.close()
                if late and not running.ended:
                    log.warning("a task did not stop in time", extra={"task": _name(unit)})
            with self._lock:
                if self._running.get(unit) is running:
                    del self._running[unit]
            deleted = unit[0] not in self.configs.state().connectors
            known = unit[1] < len(self.configs.state().tasks.get(unit[0], ()))
            self._put(unit, "UNASSIGNED" if known and not deleted else None, None)
            gone = gone or unit not in self._group.assigned
        return gone

    # Tasks ---------------------------------------------------------------------------

    def _look_after(self, unit: Unit, running: Running, state: Configured, group: _Group) -> None:
        name, number = unit
        tasks = state.tasks.get(name, ())
        wanted = (
            unit in group.assigned
            and name in state.connectors
            and number < len(tasks)
            and state.target(name) != STOPPED
        )
        if not running.stopping:
            if not wanted or tasks[number] != running.settings or state.committed_at[name] != running.committed_at:  # fmt: skip
                self._stop(running)
                return
            paused = state.target(name) == PAUSED
            if paused != running.paused and running.child is not None:
                running.paused = paused
                running.child.say({"do": "pause" if paused else "resume"})
            if running.again_at is not None and SYSTEM.monotonic() > running.again_at:
                running.again_at = None
                self._begin(running)
            if running.child is not None and running.child.process.poll() is not None:
                running.child.kill()  # what it forked may hold the socket, so that no end is heard
            silent = SYSTEM.monotonic() - running.beat_at
            if running.child is not None and not running.ended and silent > SILENT_SECONDS:
                error = ConnectorHangsError(
                    f"the process of task {_name(unit)} gave no sign of life in {SILENT_SECONDS:g} s",
                    hint="a call that holds the interpreter for so long stops everything in it",
                )
                running.child.kill()
                self._fail(running, error.render())

    def _stop(self, running: Running) -> None:
        seconds = self.settings["task.shutdown.graceful.timeout.ms"] / 1000
        running.stop_until = SYSTEM.monotonic() + seconds
        if running.child is None or running.ended:
            running.ended = True
        else:
            running.child.say({"do": "stop"})
        self.poke()

    def _start_task(self, unit: Unit, state: Configured) -> None:
        name, number = unit
        if state.target(name) == STOPPED:
            return
        try:
            described = self.catalogue.of(state.connectors[name])
        except Refused as refused:
            self._not_startable(unit, state, refused.message)
            return
        if described.kind == "source" and state.must_fence(name):
            self._ask_to_fence(name)
            return
        running = Running(
            unit, state.tasks[name][number], state.committed_at[name], described.version,
            paused=state.target(name) == PAUSED,
        )  # fmt: skip
        with self._lock:
            self._running[unit] = running
        self._begin(running)

    def _not_startable(self, unit: Unit, state: Configured, why: str) -> None:
        name, number = unit
        running = Running(unit, state.tasks[name][number], state.committed_at[name], "", ended=True)
        running.failed = True
        with self._lock:
            self._running[unit] = running
        self._put(unit, "FAILED", None, why)

    def _begin(self, running: Running) -> None:
        """Start the process. Called on the worker's thread: the kernel ends a child with the
        thread that made it."""
        name, number = running.unit
        if running.child is not None:
            running.child.close()
        described = self.catalogue.of(self.configs.state().connectors[name])
        spec = {
            "bootstrap": self._address,
            "connector": name,
            "number": number,
            "where": described.where,
            "plugins": self.catalogue.directories,
            "settings": dict(running.settings),
            "worker": self.settings.texts(),
            "paused": running.paused,
            "log_level": _level(),
        }
        running.beat_at = SYSTEM.monotonic()
        running.ended = running.failed = False
        running.state = "STARTING"
        child = running.child = Child("tailrace.connectors.task", spec)
        threading.Thread(
            target=self._hear, args=(running, child), name=f"task {_name(running.unit)}", daemon=True
        ).start()  # fmt: skip

    def _hear(self, running: Running, child: Child) -> None:
        child.hear(lambda message: self._told(running, child, message))
        child.close()
        with self._lock:
            current = running.child is child and self._running.get(running.unit) is running
            if current and not running.failed and not running.stopping and running.ends < MOST_ENDS:
                # Killed, or out of memory: what it was writing is not visible, and it can go on.
                running.again_at = SYSTEM.monotonic() + AGAIN_SECONDS * (1 << running.ends)
                running.ends += 1
                log.warning("a task's process ended", extra={"task": _name(running.unit), "ending": child.ending()})  # fmt: skip
                self._put(running.unit, "RESTARTING", running.version)
            elif current and not running.failed and not running.stopping:
                running.failed = True
                error = ConnectorEndedError(
                    f"the process of task {_name(running.unit)} ended: {child.ending()}",
                    hint="restart the task; what the process printed is on the worker's standard error",
                )
                self._fail(running, error.render())
            running.ended = running.ended or running.child is child
        self.poke()

    def _told(self, running: Running, child: Child, message: dict[str, Any]) -> None:
        with self._lock:
            if running.child is not child:
                return
            running.beat_at = SYSTEM.monotonic()
            if self._running.get(running.unit) is not running:
                return
        if "topic" in message:
            running.ends = 0
            self.statuses.uses(*running.unit, message["topic"])
        match message.get("state"):
            case "FAILED":
                running.failed = True
                if running.stopping:
                    log.warning("a task failed while it stopped", extra={"task": _name(running.unit), "error": message["error"].get("error")})  # fmt: skip
                    return
                if message.get("again"):
                    # Somebody ran it too, for a moment, or the log was away: it is still ours.
                    running.again_at = SYSTEM.monotonic() + AGAIN_SECONDS
                    self._put(running.unit, "RESTARTING", running.version)
                    return
                self._fail(running, _trace(message["error"]))
            case "RUNNING" | "PAUSED" as state if not running.stopping:
                running.state = state
                error = message.get("error")  # it goes on, and says why it cannot just now
                self._put(running.unit, state, running.version, _trace(error) if error else None)

    def _fail(self, running: Running, trace: str) -> None:
        running.failed = True
        running.state = "FAILED"
        log.warning("a task failed", extra={"task": _name(running.unit), "error": trace[:2000]})
        self._put(running.unit, "FAILED", running.version, trace)

    def _put(self, unit: Unit, state: str | None, version: str | None, trace: str | None = None) -> None:  # fmt: skip
        if state is None and self.statuses.status(unit) is None:
            return
        self.statuses.put(unit, state, self._group.generation, version, trace)

    # Connectors ----------------------------------------------------------------------

    def _look_after_connector(self, name: str, state: Configured) -> None:
        target = state.target(name)
        settings = state.connectors[name]
        found = self._connecting.get(name)
        if found is None or found.settings != settings:
            found = self._new(name, settings, target)
        if found.target != target:
            found.target = target
            if target == STARTED and found.error is None:
                found.asked = False  # what it reads may have changed since
        if target == STARTED and not found.asked and not found.asking and found.error is None:
            found.asking = True
            threading.Thread(
                target=self._ask_for_tasks, args=(name, found), name=f"connector {name}", daemon=True
            ).start()  # fmt: skip
        if found.answer is not None and target == STARTED:
            self._publish(name, found, state)
        shown = "FAILED" if found.error is not None else {STARTED: "RUNNING"}.get(target, target)
        if found.asking and target == STARTED:
            return
        if shown != found.state:
            found.state = shown
            trace = _trace(found.error) if found.error is not None else None
            self._put((name, -1), shown, found.version, trace)

    def _new(self, name: str, settings: Mapping[str, str], target: str) -> Connecting:
        made = Connecting(settings, "", target)
        try:
            described = self.catalogue.of(settings)
            made.version, made.kind = described.version, described.kind
            made.task_class = described.task_class
        except Refused as refused:
            made.error = ConnectorError(refused.message).as_dict()
        with self._lock:
            self._connecting[name] = made
        return made

    def _ask_for_tasks(self, name: str, found: Connecting) -> None:
        settings = found.settings
        try:
            described = self.catalogue.of(settings)
            answer = ask(
                {
                    "ask": "tasks",
                    "plugins": self.catalogue.directories,
                    "where": described.where,
                    "settings": dict(settings),
                    "most": int(settings.get("tasks.max", "1")),
                    "enforce": settings.get("tasks.max.enforce", "true").lower() != "false",
                },
                f"tasks() of connector {name}",
                int(settings.get("task.start.timeout.ms", self.settings["task.start.timeout.ms"])) / 1000,
            )  # fmt: skip
            more = {"task.class": described.task_class, "name": name}
            found.answer = [{**settings, **one, **more} for one in answer["tasks"]]
        except Refused as refused:
            found.error = ConnectorError(refused.message).as_dict()
        except ConnectorError as error:
            found.error = error.as_dict()
        except Exception as error:
            found.error = ConnectorError(f"{type(error).__name__}: {error}").as_dict()
        finally:
            found.asked = True
            found.asking = False
            self.poke()

    def _publish(self, name: str, found: Connecting, state: Configured) -> None:
        """Have the leader write the settings of the tasks, if they changed."""
        assert found.answer is not None
        if tuple(found.answer) == state.tasks.get(name, ()):
            found.answer = None
            return
        answer = found.answer
        try:
            if self.leads:
                self.take_tasks(name, answer)
            else:
                self.tell(self.leader(), "POST", f"/connectors/{_quoted(name)}/tasks", answer)
        except (Refused, OSError) as error:
            log.warning("the tasks of a connector could not be told", extra={"connector": name, "error": str(error)})  # fmt: skip
            SYSTEM.sleep(0.2)
            self.poke()
            return
        found.answer = None

    def _look_after_restarts(self, state: Configured) -> None:
        for name, restart in state.restarts.items():
            if restart.offset < max(self._started_at, self._restarted.get(name, -1) + 1):
                continue
            self._restarted[name] = restart.offset
            if (name, -1) in self._group.assigned and (not restart.only_failed or self._has_failed((name, -1))):  # fmt: skip
                self.restart_connector(name)
            if restart.tasks:
                for unit, running in list(self._running.items()):
                    if unit[0] == name and (not restart.only_failed or running.failed):
                        self._stop(running)

    def _has_failed(self, unit: Unit) -> bool:
        return (self.statuses.status(unit) or {}).get("state") == "FAILED"

    def restart_connector(self, name: str) -> None:
        """Ask it for its tasks again. It must be ours."""
        with self._lock:
            self._connecting.pop(name, None)
        self.poke()

    def restart_task(self, unit: Unit) -> bool:
        """Stop a task, to be started at once; whether it is ours."""
        with self._lock:
            running = self._running.get(unit)
        if running is None:
            return unit in self._group.assigned
        self._stop(running)
        return True

    # Leading -------------------------------------------------------------------------

    def write(self, records: Sequence[Written]) -> None:
        """Change the settings. Only the leader may."""
        if not self.leads:
            raise Refused(409, "Only the leader may change the settings; try again")
        self.configs.write(records)
        self.poke()

    def take_tasks(self, name: str, tasks: Sequence[Mapping[str, str]]) -> None:
        """The tasks of a connector, asked for by whoever runs it."""
        state = self.configs.state()
        if name not in state.connectors:
            raise Refused(404, f"Connector {name} not found")
        if state.target(name) == STOPPED:
            return  # it was stopped while it was asked
        self.write(configured.write_tasks(name, tasks))

    def _ask_to_fence(self, name: str) -> None:
        """Tasks of a source wait until those before them cannot write any more."""
        now = SYSTEM.monotonic()
        if now - self._fencing.get(name, -10.0) < 1.0:
            return
        self._fencing[name] = now

        def work() -> None:
            try:
                if self.leads:
                    self.fence(name)
                else:
                    self.tell(self.leader(), "PUT", f"/connectors/{_quoted(name)}/fence", None)
            except (Refused, TailraceError, OSError) as error:
                log.warning("earlier tasks could not be fenced", extra={"connector": name, "error": str(error)})  # fmt: skip
            self._fencing.pop(name, None)
            self.poke()

        threading.Thread(target=work, name=f"fencing {name}", daemon=True).start()

    def fence(self, name: str) -> None:
        """End every earlier writer of a source's tasks. Only the leader may."""
        with self._fence_lock:
            state = self.configs.state()
            if not state.must_fence(name):
                return
            count = len(state.tasks.get(name, ()))
            self.end_writers(name, max(state.tasks_to_fence(name), 0))
            self.write([configured.write_fencing(name, count)])

    def end_writers(self, name: str, count: int) -> None:
        for number in range(count):
            writer = self._log.transactional_writer(transactional_id(name, number), timeout=30.0)
            try:
                writer.init()
            except ClientError as error:
                raise Refused(500, f"task {name}-{number} could not be fenced: {error}") from error
            finally:
                writer.close()

    # To other workers ----------------------------------------------------------------

    def send(
        self, to: Described, method: str, path: str, body: bytes, **headers: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """A request to another worker, with its secret, which lets us in. Raises OSError."""
        from tailrace.connectors.forwarding import send

        own = {"X-Tailrace-Connect": to.secret}
        own |= {f"X-Tailrace-{name.title()}": text for name, text in headers.items()}
        return send(to.url, method, path, body, own, self._trust)

    def tell(self, to: Described, method: str, path: str, body: Any) -> tuple[int, bytes, Mapping[str, str]]:  # fmt: skip
        """A request to another worker, with its secret. Raises Refused if it refuses."""
        data = b"" if body is None else orjson.dumps(body)
        status, answer, headers = self.send(to, method, path, data)
        if status >= 400:
            try:
                message = str(orjson.loads(answer)["message"])
            except (ValueError, KeyError, TypeError):
                message = answer[:500].decode("utf-8", "replace")
            raise Refused(status, message)
        return status, answer, headers

    # The end -------------------------------------------------------------------------

    def _stop_all(self) -> None:
        for running in list(self._running.values()):
            self._stop(running)
        while self._running:
            self._finish_stops()
            SYSTEM.sleep(0.02)
        for name in list(self._connecting):
            self._put((name, -1), "UNASSIGNED", None)

    def _shown(self, name: str, state: Configured) -> str:
        """A connector and its tasks in one of the words that parts of a project use."""
        units = [(name, number) for number in range(-1, len(state.tasks.get(name, ())))]
        states = [(self.statuses.status(unit) or {}).get("state", "") for unit in units]
        return next((word for told, word in _SHOWN.items() if told in states), "starting")

    def figures(self) -> dict[str, object]:
        """What a project's status shows."""
        state = self.configs.state()
        failed = [_name(unit) for unit in state.units() if self._has_failed(unit)]
        return {
            "address": self.name,
            "connectors": len(state.connectors),
            "tasks": sum(len(each) for each in state.tasks.values()),
            "failed_tasks": failed,
            "connector_states": {name: self._shown(name, state) for name in state.connectors},
            "leads": self.leads,
            "workers": len(self.workers()),
        }


_SHOWN = {"FAILED": "failed", "STOPPED": "stopped", "PAUSED": "stopped", "RUNNING": "running"}


def _name(unit: Unit) -> str:
    return unit[0] if unit[1] < 0 else f"{unit[0]}-{unit[1]}"


def _trace(error: Mapping[str, str]) -> str:
    from tailrace.errors import render

    shown = render(error)
    more = error.get("trace", "")
    return shown if not more or more in shown else f"{shown}\n{more}"


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _level() -> str:
    return (
        os.environ.get("TAILRACE_LOG_LEVEL")
        or logging.getLevelName(logging.getLogger("tailrace").getEffectiveLevel()).lower()
    )
