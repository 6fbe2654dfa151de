"""Runs a project: starts its parts in order, restarts what fails, drains on the way out.

Each part is a child process in its own group. Its output is passed on with a prefix and
kept in `.tailrace/up.log`. `.tailrace/children.json` names every child with its start
time, so that the next `up` can end what a killed supervisor left behind. Files that
cannot be written (a full disk) are news that is late, never a reason to end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from tailrace import console_token, modes
from tailrace.clock import SYSTEM, Clock
from tailrace.config import parse_address
from tailrace.errors import PortInUseError, TailraceError
from tailrace.files import FILES
from tailrace.masking import mask, mask_all
from tailrace.modes import make_private
from tailrace.node.apart import apart
from tailrace.node.changes import RESTART, Change
from tailrace.node.errors import (
    AlreadyRunningError,
    BrokerDidNotStartError,
    NotTakenOverError,
    StateGoneError,
)
from tailrace.node.health import filling
from tailrace.node.history import History
from tailrace.node.journal import Journal
from tailrace.node.noise import Quiet
from tailrace.node.parts import DRAIN, PartSpec
from tailrace.node.plan import Plan, of_project
from tailrace.node.processes import end_leftovers, record, signal_group
from tailrace.pipelines.process.requests import ask
from tailrace.project.marks import Marks
from tailrace.telemetry.part import read_reports, report_path

if TYPE_CHECKING:
    from tailrace.project.load import Project

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
GOOD_AFTER = 60.0  # seconds a part must run before its pause starts small again
DRAIN_SECONDS = 20.0
TAKE_OVER_SECONDS = 60.0  # for the pipelines to begin with what changed; a tick may be long
LAST_WORDS_SECONDS = 2.0  # for the console to show why everything ends
CHILDREN = "children.json"
LOCK = "up.lock"
# The console lies above this room: it is known by name only.
MODULES = {"console": "tailrace.console.child"}


@dataclass(slots=True)
class Child:
    """A part and the process that runs it now."""

    spec: PartSpec
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    ended_at: float = 0.0
    pause: float = FIRST_PAUSE
    restarts: int = 0
    group: int | None = None  # of the process before this one
    unfinished: bytes = b""
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    quiet: Quiet = field(default_factory=Quiet)


class Supervisor:
    """Owns the children of one project; a context manager that leaves none behind."""

    def __init__(
        self,
        project: Project | Plan,
        *,
        only: Collection[str] = (),
        echo: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
        clock: Clock = SYSTEM,
    ) -> None:
        self.project = project if isinstance(project, Plan) else of_project(project, only)
        self.directory = project.settings.state_directory
        self.address = project.settings.bootstrap
        self.clock = clock
        self._echo = echo
        self._children: dict[str, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._stopping = False
        self._taken_over = 0  # how often a changed project was
        self._places: dict[Path, tuple[int, int]] = {}  # what must stay where it is
        self._lock: IO[str] | None = None
        self._journal = Journal(self.directory / "up.log")
        self.history = History(self.directory, clock)

    def __enter__(self) -> Supervisor:
        modes.use(self.project.settings.project.mode)
        make_private(self.directory)
        self._lock = self._take_lock()
        places = (self.directory, self.directory / LOCK)
        self._places = {path: _identity(path) for path in places}
        end_leftovers(self.directory / CHILDREN)
        run = self.directory / "run"
        for path in [*run.glob("*.json"), *run.glob("*.json.*.tmp")]:
            path.unlink()
        return self

    def __exit__(self, *_: object) -> None:
        self.drain()
        self._selector.close()
        self._journal.close()
        self.history.close()
        if self._lock:
            self._lock.close()

    def _take_lock(self) -> IO[str]:
        held = open(self.directory / LOCK, "a+", opener=modes.open_private)  # noqa: SIM115 - held for long
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held.seek(0)
            pid = held.read().strip()
            held.close()
            raise AlreadyRunningError(
                "this project is running already",
                detail=f"process {pid or 'unknown'} holds {self.directory / LOCK}",
                hint="`tailrace status` shows it; stop it before starting another",
            ) from error
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        return held

    # --- life ------------------------------------------------------------------------

    def start(self) -> None:
        """Start every part; returns when the log answers and the rest are on their way."""
        parts = self.project.parts
        refuse_used_port(self.project.settings.console.listen)
        console_token.establish(self.directory, self.project.settings.console)
        for spec in parts:
            # Until a part speaks for itself, `status` must know that it is still to come.
            self._report(spec, {"state": "starting", "supervisor": os.getpid()})
        for spec in parts:
            if spec.kind == "broker":
                self._start_broker(spec)
        if self.project.settings.log.bootstrap is None:
            log = self.project.settings.log.directory
            self._places[log] = _identity(log)
        self._ensure_topics()
        self._record_beginnings()
        self.history.add("up", "", f"started with {len(parts)} parts", pid=os.getpid())
        for spec in parts:
            if spec.kind != "broker":
                self._launch(Child(spec, self._command(spec, self.address)))

    def run_once(self, seconds: float = 0.2) -> None:
        """Pass on output and restart what has ended; call it again and again."""
        for key, _ in self._selector.select(seconds):
            self._read(key.data)
        now = self.clock.monotonic()
        for child in self._children.values():
            if child.process is None:
                if now >= child.due_at and not self._stopping:
                    child.restarts += 1
                    self._launch(child)
                    down = round((now - child.ended_at) * 1000)
                    self._happened("started", child, f"started again, {down / 1000:.1f} s later")
            elif child.process.poll() is not None and not self._stopping:
                self._ended(child, now)

    def ready(self) -> bool:
        """Whether every part runs and every view answers."""
        return self.parts_run() and not self.filling()

    def parts_run(self) -> bool:
        """Whether every part runs."""
        reports = self._reports()
        for child in self._children.values():
            report = reports.get(child.spec.id)
            if child.process is None or report is None:
                return False
            if report["state"] not in ("running", "lagging"):
                return False
        return True

    def filling(self) -> dict[str, str]:
        """Views that do not show yet what there was when the project started; see `health`."""
        return filling(read_reports(self.directory))

    def _reports(self) -> dict[str, dict[str, Any]]:
        return {f"{r['kind']}-{r['name']}": r for r in read_reports(self.directory)}

    def check_state(self) -> None:
        """If the project's state is no longer where it was, end every part at once, leave the
        error in its report and raise it: what is written from then on would be lost."""
        gone = [path for path, known in self._places.items() if _is_gone(path, known)]
        if not gone:
            return
        place = self.directory if gone[0].name == LOCK else gone[0]
        error = StateGoneError(
            f"{place} was deleted or replaced while the project ran",
            detail="what comes from now on would be lost: everything is stopped",
            hint="put the directory back, or start again: sources are captured and views "
            "are filled from the beginning",
        )
        self._stopping = True
        children = sorted(self._children.values(), key=lambda child: child.spec.kind == "console")
        for child in children:
            if child.spec.kind == "console":
                self.clock.sleep(LAST_WORDS_SECONDS)
            if child.process is not None:
                signal_group(child.process.pid, signal.SIGKILL)
                child.process.wait()
            self._forget(child)
            self._report(child.spec, {"state": "failed", "error": error.as_dict()})
        raise error

    @property
    def running(self) -> list[tuple[str, str]]:
        """The parts that have a process now: kind and name."""
        return [(c.spec.kind, c.spec.name) for c in self._children.values() if c.process]

    def drain(self, look: Callable[[], None] = lambda: None) -> None:
        """Stop every part, inputs first and the log last; nothing is killed silently. `look` is
        called again and again meanwhile."""
        if not self._stopping and self.running:
            self.history.add("down", "", "stopped")
        self._stopping = True
        for kind in DRAIN:
            group = [c for c in self._children.values() if c.spec.kind == kind and c.process]
            for child in group:
                if child.process and child.process.poll() is None:
                    child.process.terminate()
                    child.process.send_signal(signal.SIGCONT)  # a stopped one would not hear it
            deadline = self.clock.monotonic() + DRAIN_SECONDS
            for child in group:
                process = child.process
                while process and process.poll() is None:
                    if self.clock.monotonic() > deadline:
                        self._echo(f"{child.spec.kind} {child.spec.name} does not stop: killed")
                        signal_group(process.pid, signal.SIGKILL)
                        process.wait()
                    self.run_once(0.05)
                    look()
                if process:
                    self._read(child)
                    self._forget(child)
                    look()
        self._write_children()

    # --- a changed project -------------------------------------------------------------

    def take_over(
        self, new: Plan, changes: Collection[Change], stopping: Callable[[], bool]
    ) -> list[str]:
        """Run `new` from now on: parts that differ are stopped and started, the pipelines
        exchange what differs among themselves; all else goes on. Returns the parts that have
        not begun with it yet."""
        before, self.project = self.project, new
        self._ensure_topics()
        self._record_beginnings()
        wanted = {spec.id for spec in new.parts}
        again = {f"{one.kind}-{one.name}" for one in changes if one.change == RESTART}
        if before.marks.indexes != new.marks.indexes:
            again |= {spec.id for spec in new.parts if spec.kind == "views"}
        if any(one.kind == "events" for one in changes):
            again |= {spec.id for spec in new.parts if spec.kind == "events"}
        for child in list(self._children.values()):
            if child.spec.id not in wanted or child.spec.id in again:
                self._stop_part(child)
        for spec in new.parts:
            if spec.id not in self._children:
                self._launch(Child(spec, self._command(spec, self.address)))
        try:
            waiting = self._tell_pipelines(before.marks, new.marks, stopping)
        except NotTakenOverError:
            # They run what they ran: the next comparison must say so.
            old = {
                name: getattr(before.marks, name)
                for name in ("views", "streams", "topics", "events", "sections")
            }
            self.project = replace(new, marks=replace(new.marks, **old))
            raise
        FILES.make_directories(self.directory / "apply")
        FILES.write_whole(
            self.directory / "apply" / "applied", str(self._taken_over).encode(), sync=False
        )
        return waiting

    def _stop_part(self, child: Child) -> None:
        """Stop one part for good, as `drain` does."""
        del self._children[child.spec.id]
        process = child.process
        if process is not None:
            if process.poll() is None:
                process.terminate()
                process.send_signal(signal.SIGCONT)  # a stopped one would not hear it
            deadline = self.clock.monotonic() + DRAIN_SECONDS
            while process.poll() is None:
                if self.clock.monotonic() > deadline:
                    self._echo(f"{child.spec.kind} {child.spec.name} does not stop: killed")
                    signal_group(process.pid, signal.SIGKILL)
                    process.wait()
                self.run_once(0.05)
            self._read(child)
            signal_group(process.pid, signal.SIGKILL)  # helpers that outlived it
            self._forget(child)
        self._write_children()
        report_path(self.directory, child.spec.id).unlink(missing_ok=True)

    def _tell_pipelines(self, before: Marks, now: Marks, stopping: Callable[[], bool]) -> list[str]:
        """Have the pipelines take over what differs for them, and wait for their answer."""
        self._taken_over += 1
        pipelines = next((c for c in self._children.values() if c.spec.kind == "pipelines"), None)
        if pipelines is None or _for_pipelines(before) == _for_pipelines(now):
            return []
        number = f"{os.getpid()}-{self._taken_over}"
        ask(self.directory, "apply", number)
        deadline = self.clock.monotonic() + TAKE_OVER_SECONDS
        while self.clock.monotonic() < deadline and not stopping():
            self.run_once(0.1)
            answer = self._reports().get(pipelines.spec.id, {}).get("applied") or {}
            if answer.get("number") == number:
                if answer["error"]:
                    raise NotTakenOverError(
                        "the pipelines did not take over the project",
                        detail=answer["error"]["error"],
                        hint="the files may have changed once more meanwhile: `tailrace apply` again",
                    )
                return []
        return [f"{pipelines.spec.kind} {pipelines.spec.name}"]

    # --- children ----------------------------------------------------------------------

    def _start_broker(self, spec: PartSpec) -> None:
        child = Child(spec, self._command(spec, self.address))
        self._launch(child)
        path = report_path(self.directory, spec.id)
        deadline = self.clock.monotonic() + 60
        while child.process and child.process.poll() is None:
            self.run_once(0.05)
            report = orjson.loads(path.read_bytes()) if path.exists() else {}
            if report.get("state") == "running" and report["pid"] == child.process.pid:
                self.address = self.project.settings.at(report["address"])
                # A broker that picked its port must come back to the same one.
                child.command = self._command(spec, self.address)
                return
            if self.clock.monotonic() > deadline:
                break
        with contextlib.suppress(OSError):
            self._read(child)
        raise BrokerDidNotStartError(
            "the embedded broker did not start", detail="\n".join(child.last_lines)
        )

    def _command(self, spec: PartSpec, address: str) -> list[str]:
        arguments = [spec.kind, spec.name, str(self.project.directory), address]
        # Nothing is imported from the directory that `up` happens to run in.
        return [
            sys.executable,
            "-P",
            "-m",
            MODULES.get(spec.kind, "tailrace.node.child"),
            *arguments,
        ]

    def _ensure_topics(self) -> None:
        if not self.project.settings.topics:
            return
        from tailrace.client.admin import Admin

        with Admin(self.address) as admin:
            for name, settings in self.project.settings.topics.items():
                wanted = dict(settings)
                partitions = int(wanted.pop("partitions", "1"))
                admin.ensure_topic(name, partitions=partitions, config=wanted)

    def _record_beginnings(self) -> None:
        """Write down where streams and copies begin before anything can come into the log."""
        streams, sinks = self.project.beginnings, self.project.sinks
        if not streams and not sinks:
            return

        def work() -> None:
            from tailrace.client.ranges import KafkaRanges
            from tailrace.pipelines.streams import beginnings
            from tailrace.sinks.beginnings import record

            beginnings.record(self.directory, self.address, streams, self.clock)
            with contextlib.closing(KafkaRanges(self.address)) as reader:
                record(self.directory, reader, self.project.settings.project.name, sinks)

        try:
            apart(work)
        except TailraceError as problem:
            # A log of somebody else's that does not answer yet: pipelines and sinks wait for
            # it, and do the same before they do anything else.
            self._echo(f"where streams and copies begin is not written down yet: {problem.message}")

    def _launch(self, child: Child) -> None:
        if child.group is not None:
            signal_group(child.group, signal.SIGKILL)
            child.group = None
        environment = dict(os.environ)
        environment["TAILRACE_SUPERVISOR"] = str(os.getpid())
        environment["PYTHONUNBUFFERED"] = "1"
        # What flags said must reach the children, who load the settings themselves.
        environment[modes.VARIABLE] = self.project.settings.project.mode
        environment["TAILRACE_CONSOLE__LISTEN"] = self.project.settings.console.listen
        environment["PYTHONSAFEPATH"] = "1"  # the same as -P, for what a part starts
        environment["TAILRACE_PROJECT"] = str(self.project.directory)  # for Spark's workers
        child.process = subprocess.Popen(
            child.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        child.started_at = self.clock.monotonic()
        child.last_lines.clear()
        stdout = child.process.stdout
        assert stdout is not None
        os.set_blocking(stdout.fileno(), False)
        self._selector.register(stdout, selectors.EVENT_READ, child)
        self._children[child.spec.id] = child
        self._write_children()

    def _ended(self, child: Child, now: float) -> None:
        assert child.process is not None
        self._read(child)
        status = child.process.returncode
        if now - child.started_at > GOOD_AFTER:
            child.pause = FIRST_PAUSE
            child.restarts = 0
        child.due_at = now + child.pause
        self._echo(
            f"{child.spec.kind} {child.spec.name} ended ({_reason(status)}); "
            f"starting it again in {child.pause:.1f} s"
        )
        child.ended_at = now
        self._happened("ended", child, f"ended ({_reason(status)})", pid=child.process.pid)
        self._mark_failed(child, status)
        # Helpers that outlived it (Spark's JVM) get the time of the pause to tidy up.
        child.group = child.process.pid
        signal_group(child.group, signal.SIGTERM)
        child.pause = min(child.pause * 2, LONGEST_PAUSE)
        self._forget(child)

    def _happened(self, what: str, child: Child, text: str, **facts: object) -> None:
        self.history.add(what, f"{child.spec.kind} {child.spec.name}", text, **facts)

    def _mark_failed(self, child: Child, status: int) -> None:
        path = report_path(self.directory, child.spec.id)
        try:
            document = orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            document = {}
        document["state"] = "failed"
        document["restarts"] = child.restarts + 1
        document["ended_at"] = self.clock.wall_ms()
        if not document.get("error"):
            document["error"] = {"error": f"ended: {_reason(status)}", "code": "part-ended"}
        self._report(child.spec, document)

    def _report(self, spec: PartSpec, document: dict[str, object]) -> None:
        """Say something for a part that cannot."""
        path = report_path(self.directory, spec.id)
        about = {
            "name": spec.name,
            "kind": spec.kind,
            "project": self.project.settings.project.name,
        }
        with contextlib.suppress(OSError):
            make_private(path.parent)
            # Not synced: a report is news, not a record.
            news = orjson.dumps(mask_all({**about, **document}))
            FILES.write_whole(path, news, sync=False, shared=True)

    def _forget(self, child: Child) -> None:
        for told in child.quiet.rest():
            self._echo(_prefixed(child, told))
        if child.process is not None and child.process.stdout is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(child.process.stdout)
            child.process.stdout.close()
        child.process = None

    def _read(self, child: Child) -> None:
        if child.process is None or child.process.stdout is None or child.process.stdout.closed:
            return
        while True:
            try:
                block = os.read(child.process.stdout.fileno(), 65536)
            except BlockingIOError:
                return
            if not block:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(child.process.stdout)
                return
            *lines, child.unfinished = (child.unfinished + block).split(b"\n")
            for line in lines:
                text = mask(line.decode(errors="replace").rstrip())
                child.last_lines.append(text)
                self._journal.write(_prefixed(child, text))
                for told in child.quiet.take(text):
                    self._echo(_prefixed(child, told))

    def _write_children(self) -> None:
        running = [(c.spec.id, c.process.pid) for c in self._children.values() if c.process]
        with contextlib.suppress(OSError):  # pdeathsig ends them too, if we should go
            record(self.directory / CHILDREN, running)


def _prefixed(child: Child, line: str) -> str:
    return f"{child.spec.kind + ' ' + child.spec.name:<24} | {line}"


def _for_pipelines(marks: Marks) -> tuple[object, ...]:
    """What the pipelines must know of a project."""
    sections = {name: marks.sections.get(name) for name in ("tick", "topics")}
    return marks.views, marks.streams, marks.topics, marks.events, sections


def _identity(path: Path) -> tuple[int, int]:
    """Which file or directory stands at a place."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _is_gone(path: Path, known: tuple[int, int]) -> bool:
    """Whether something else, or nothing, stands where that was. A disk that does not answer
    says nothing about it."""
    try:
        return _identity(path) != known
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def refuse_used_port(listen: str) -> None:
    """Say at once that the console's port is taken, before anything is started."""
    host, port = parse_address(listen)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortInUseError(
                f"cannot listen on {host}:{port}",
                detail=error.strerror or str(error),
                hint="choose another: console.listen in tailrace.toml, or --console HOST:PORT",
            ) from error


def _reason(status: int) -> str:
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"status {status}"
