"""One task, as a process of a worker: `python -m tailrace.connectors.task`.

From the worker come `{"do": "pause" | "resume" | "stop"}`; to it go `{"state": …}`, the topics used,
and a sign of life every second. The connector's methods run on the main thread; another one
listens, and ends the process when the worker is gone or a method does not come back in time.
A connector that forks gets a child that ends where it would come back to us.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from tailrace.clock import SYSTEM
from tailrace.connectors import plugins
from tailrace.connectors.asked import in_parts
from tailrace.connectors.children import as_parent, unpack_address
from tailrace.connectors.common import TIMES, common
from tailrace.connectors.errors import ConnectorHangsError, ConnectorSettingError
from tailrace.connectors.secrets import resolve

log = logging.getLogger(__name__)
BEAT_SECONDS = 1.0
AGAIN_SECONDS = 5.0
# Errors of the log, after which the same task can go on; by name: they are not imported for this.
_AGAIN = ("ProducerFencedError", "BrokerUnavailableError", "RequestTimeoutError")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spec:
    """What a task is told: where the log is, what it is called, how it is set."""

    bootstrap: str
    connector: str
    number: int
    where: str
    settings: Mapping[str, str]
    worker: Mapping[str, str]
    paused: bool

    @property
    def transactional_id(self) -> str:
        return transactional_id(self.connector, self.number)

    @property
    def client_id(self) -> str:
        return f"connector-{self.connector}-{self.number}"


def transactional_id(connector: str, number: int) -> str:
    return f"tailrace.connect.{connector}.{number}"


class Surroundings:
    """What a running task has around it: orders, reports, the watch over its methods."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._pid = os.getpid()
        self._saying = threading.Lock()
        self._entered: tuple[str, float] | None = None
        self.paused = threading.Event()
        self.stopping = threading.Event()
        self.halted = threading.Event()  # paused or stopping
        self.changed = threading.Event()
        self._topics: dict[str, float] = {}

    def say(self, **message: Any) -> None:
        with suppress(OSError), self._saying:
            self._sock.sendall(orjson.dumps(message, default=str) + b"\n")

    def uses(self, topic: str) -> None:
        """Tell the worker of a topic; again after a while, for it may have been made to forget."""
        now = SYSTEM.monotonic()
        if now >= self._topics.get(topic, 0.0):
            self._topics[topic] = now + AGAIN_SECONDS
            self.say(topic=topic)

    def listen(self) -> None:
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    def _listen(self) -> None:
        kept = bytearray()
        self._sock.settimeout(BEAT_SECONDS)
        while True:
            try:
                received = self._sock.recv(65536)
            except TimeoutError:
                self._watch()
                continue
            except OSError:
                received = b""
            if not received:
                self._end()  # the worker is gone, and somebody else runs the task soon
            kept += received
            while (end := kept.find(b"\n")) >= 0:
                self._obey(orjson.loads(bytes(kept[:end])))
                del kept[: end + 1]

    def _obey(self, order: dict[str, Any]) -> None:
        match order.get("do"):
            case "pause":
                self.paused.set()
                self.halted.set()
            case "resume":
                self.paused.clear()
                if not self.stopping.is_set():
                    self.halted.clear()
            case "stop":
                self.stopping.set()
                self.halted.set()
        self.changed.set()

    def _watch(self) -> None:
        entered = self._entered
        if entered is not None and SYSTEM.monotonic() > entered[1]:
            error = ConnectorHangsError(
                f"{entered[0]} did not come back in time",
                detail=_where_it_is(),
                hint="see task.start.timeout.ms and task.poll.timeout.ms",
            )
            self.say(state="FAILED", error={**error.as_dict(), "trace": error.render()})
            self._end()
        self.say(beat=True)

    def _end(self) -> None:
        with suppress(OSError):
            os.killpg(os.getpid(), signal.SIGKILL)  # what the connector forked goes too
        os._exit(1)

    @contextmanager
    def inside(self, method: str, seconds: float) -> Iterator[None]:
        """Around each call of the connector's own code."""
        self._entered = (method, SYSTEM.monotonic() + seconds)
        try:
            yield
        finally:
            self._entered = None
            if os.getpid() != self._pid:
                os._exit(0)

    def call(self, method: str, seconds: float, work: Callable[[], T]) -> T:
        with self.inside(method, seconds):
            return work()

    def wait(self, seconds: float) -> None:
        """Until something is ordered, or the time is over."""
        if self.changed.wait(seconds):
            self.changed.clear()


def _where_it_is() -> str:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return "" if frame is None else "".join(traceback.format_stack(frame)[-6:])


def typed(spec: Spec, kind: str, declared: Any) -> dict[str, Any]:
    """All settings of a task: those every connector has, and the connector's own."""
    given = dict(spec.settings)
    values = [
        *TIMES.look({**spec.worker, **given}),
        *common(kind).look(given),
        *declared.look(given),
    ]
    if errors := [text for each in values for text in each.errors]:
        raise ConnectorSettingError(errors[0], detail="\n".join(errors[1:]))
    return {**given, **{each.setting.name: each.value for each in values}}


def main() -> None:
    from tailrace.telemetry import logs

    own = os.getpid()
    sock, message = as_parent(sys.argv[1:])
    logs.configure(message.get("log_level", "warning"))
    around = Surroundings(sock)
    spec = Spec(
        unpack_address(message["bootstrap"]),
        message["connector"],
        message["number"],
        message["where"],
        message["settings"],
        message["worker"],
        message["paused"],
    )
    if spec.paused:
        around.paused.set()
        around.halted.set()
    around.listen()
    try:
        _run(spec, around, message["plugins"])
    except BaseException as error:
        if os.getpid() != own:
            os._exit(0)
        again = type(error).__name__ in _AGAIN
        doing = f"task {spec.connector}-{spec.number}"
        around.say(state="FAILED", error=in_parts(error, doing), again=again)
    else:
        around.say(state="STOPPED")
    if os.getpid() != own:
        os._exit(0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _run(spec: Spec, around: Surroundings, directories: list[str]) -> None:
    plugins.make_importable(directories)
    connector = plugins.load(spec.where)
    spec = Spec(
        spec.bootstrap,
        spec.connector,
        spec.number,
        spec.where,
        resolve(spec.settings),
        spec.worker,
        spec.paused,
    )
    settings = typed(spec, plugins.kind_of(connector), connector.config)
    if plugins.keeps_itself(connector):
        from tailrace.connectors.independent import run as run_independent

        run_independent(spec, connector, settings, around)
    elif plugins.kind_of(connector) == "source":
        from tailrace.connectors.source_task import run as run_source

        run_source(spec, connector, settings, around)
    else:
        from tailrace.connectors.sink_task import run as run_sink

        run_sink(spec, connector, settings, around)


if __name__ == "__main__":
    main()
