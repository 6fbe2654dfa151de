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
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

import orjson

from tailrace.clock import SYSTEM, Clock
from tailrace.config import parse_address
from tailrace.errors import PortInUseError
from tailrace.node.errors import AlreadyRunningError, BrokerDidNotStartError
from tailrace.node.journal import Journal
from tailrace.node.parts import DRAIN, PartSpec, parts_of
from tailrace.node.plan import Plan
from tailrace.node.processes import end_leftovers, record, signal_group
from tailrace.telemetry.part import read_reports, report_path

if TYPE_CHECKING:
    from tailrace.project.load import Project

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
GOOD_AFTER = 60.0  # seconds a part must run before its pause starts small again
DRAIN_SECONDS = 20.0
CHILDREN = "children.json"
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
    pause: float = FIRST_PAUSE
    restarts: int = 0
    group: int | None = None  # of the process before this one
    unfinished: bytes = b""
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=20))


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
        self.project = (
            project
            if isinstance(project, Plan)
            else Plan(project.settings, tuple(parts_of(project, only)))
        )
        self.directory = project.settings.state_directory
        self.address = project.settings.bootstrap
        self.clock = clock
        self._echo = echo
        self._children: dict[str, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._stopping = False
        self._lock: IO[str] | None = None
        self._journal = Journal(self.directory / "up.log")

    def __enter__(self) -> Supervisor:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._lock = self._take_lock()
        end_leftovers(self.directory / CHILDREN)
        for path in (self.directory / "run").glob("*.json"):
            path.unlink()
        return self

    def __exit__(self, *_: object) -> None:
        self.drain()
        self._selector.close()
        self._journal.close()
        if self._lock:
            self._lock.close()

    def _take_lock(self) -> IO[str]:
        held = (self.directory / "up.lock").open("a+")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held.seek(0)
            pid = held.read().strip()
            held.close()
            raise AlreadyRunningError(
                "this project is running already",
                detail=f"process {pid or 'unknown'} holds {self.directory / 'up.lock'}",
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
        for spec in parts:
            # Until a part speaks for itself, `status` must know that it is still to come.
            self._report(spec, {"state": "starting", "supervisor": os.getpid()})
        for spec in parts:
            if spec.kind == "broker":
                self._start_broker(spec)
        self._ensure_topics()
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
            elif child.process.poll() is not None and not self._stopping:
                self._ended(child, now)

    def ready(self) -> bool:
        """Whether every part runs."""
        reports = {f"{r['kind']}-{r['name']}": r for r in read_reports(self.directory)}
        for child in self._children.values():
            report = reports.get(child.spec.id)
            if child.process is None or report is None:
                return False
            if report["state"] not in ("running", "lagging"):
                return False
        return True

    def drain(self) -> None:
        """Stop every part, inputs first and the log last; nothing is killed silently."""
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
                if process:
                    self._read(child)
                    self._forget(child)
        self._write_children()

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
                self.address = report["address"]
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
        return [sys.executable, "-m", MODULES.get(spec.kind, "tailrace.node.child"), *arguments]

    def _ensure_topics(self) -> None:
        if not self.project.settings.topics:
            return
        from tailrace.client.admin import Admin

        with Admin(self.address) as admin:
            for name, settings in self.project.settings.topics.items():
                wanted = dict(settings)
                partitions = int(wanted.pop("partitions", "1"))
                admin.ensure_topic(name, partitions=partitions, config=wanted)

    def _launch(self, child: Child) -> None:
        if child.group is not None:
            signal_group(child.group, signal.SIGKILL)
            child.group = None
        environment = dict(os.environ)
        environment["TAILRACE_SUPERVISOR"] = str(os.getpid())
        environment["PYTHONUNBUFFERED"] = "1"
        # What flags said must reach the children, who load the settings themselves.
        environment["TAILRACE_CONSOLE__LISTEN"] = self.project.settings.console.listen
        paths = [str(self.project.directory), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
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
        self._mark_failed(child, status)
        # Helpers that outlived it (Spark's JVM) get the time of the pause to tidy up.
        child.group = child.process.pid
        signal_group(child.group, signal.SIGTERM)
        child.pause = min(child.pause * 2, LONGEST_PAUSE)
        self._forget(child)

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
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".tmp")
            draft.write_bytes(orjson.dumps({**about, **document}))
            draft.replace(path)

    def _forget(self, child: Child) -> None:
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
                text = line.decode(errors="replace").rstrip()
                child.last_lines.append(text)
                shown = f"{child.spec.kind + ' ' + child.spec.name:<24} | {text}"
                self._echo(shown)
                self._journal.write(shown)

    def _write_children(self) -> None:
        running = [(c.spec.id, c.process.pid) for c in self._children.values() if c.process]
        with contextlib.suppress(OSError):  # pdeathsig ends them too, if we should go
            record(self.directory / CHILDREN, running)


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
