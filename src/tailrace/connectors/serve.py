"""A worker as a process: `tailrace connect start`, and a part of a project."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tailrace.broker.start import split_address
from tailrace.client.log import Log, connect
from tailrace.connectors import configured
from tailrace.connectors.errors import ConnectorSettingError, Refused
from tailrace.connectors.rest import Rest, refuse
from tailrace.connectors.settings import WorkerSettings
from tailrace.connectors.worker import Worker
from tailrace.errors import OpenListenerError, TailraceError
from tailrace.loopback import is_loopback
from tailrace.plain_http import HttpServer
from tailrace.telemetry.part import Part

LISTEN = "127.0.0.1:8083"
BODY_LIMIT_BYTES = 8 << 20
REPORT_SECONDS = 1.0
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a worker listens, what it may run, and Kafka Connect's settings."""

    listen: str = LISTEN
    plugins: Sequence[Path] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    insecure: bool = False


class ConnectServer:
    """A worker with its REST interface. Listens at once; `start` returns when it answers."""

    def __init__(self, source: Log, address: str, settings: Settings) -> None:
        host, port = split_address(settings.listen, "--listen")
        if not (settings.insecure or is_loopback(host)):
            raise OpenListenerError(
                "a worker that other machines can reach runs what any of them asks for",
                detail=f"it listens on {host or 'every address'}, and asks nobody who they are",
                hint="listen on 127.0.0.1, put a proxy that asks in front, or say --insecure "
                "(in a project connect.insecure) where a private network keeps strangers out",
            )
        chosen = WorkerSettings(settings.given, settings.plugins)
        self._server = HttpServer(
            host,
            port,
            lambda request: self._rest(request),
            refuse=refuse,
            body_limit_bytes=BODY_LIMIT_BYTES,
            name="connect",
        )
        here = self._server.address.rpartition(":")[0]
        if here in ("", "0.0.0.0", "[::]"):
            here = socket.getfqdn()  # others reach no worker at "every address"
        shown = chosen["rest.advertised.host.name"] or here
        url = f"http://{shown}:{chosen['rest.advertised.port'] or self._server.port}"
        self.worker = Worker(source, address, chosen, url)
        self._rest = Rest(self.worker)

    def __enter__(self) -> ConnectServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        return self._server.address

    def start(self) -> None:
        """Returns when requests are answered and carried out."""
        self._server.start()
        self.worker.start()
        self.worker.wait_for_group(START_SECONDS)

    def close(self) -> None:
        self.worker.close()
        self._server.close()


def run(settings: Settings, part: Part, declared: Mapping[str, Mapping[str, str]] | None = None) -> None:  # fmt: skip
    """The worker of a project, until `part.stopping` is set. Connectors that the project declares
    are made, or set as it says; others, made through the REST interface, are left alone."""
    with connect(part.bootstrap) as source, ConnectServer(source, part.bootstrap, settings) as server:  # fmt: skip
        server.start()
        waiting = dict(declared or {})
        while True:
            refused = _declare(server, waiting)
            failure = server.worker.configs.failure or refused or server.worker.failed()
            told = None if failure is None else failure.as_dict()
            part.report("lagging" if told else "running", error=told, **server.worker.figures())
            if part.stopping.wait(REPORT_SECONDS):
                break
    part.report("stopping")


def _declare(server: ConnectServer, waiting: dict[str, Mapping[str, str]]) -> TailraceError | None:
    """Have declared connectors run; those that cannot are told, and tried again."""
    worker = server.worker
    failure: TailraceError | None = None
    if worker.leader_url() != worker.url:
        return None  # the one who leads has the same declarations
    known = worker.configs.state().connectors
    for name, given in list(waiting.items()):
        wanted = {**given, "name": name}
        try:
            if known.get(name) != wanted:
                worker.catalogue.check(wanted, name)
                worker.write([configured.write_connector(name, wanted)])
            del waiting[name]
        except Refused as refused:
            failure = ConnectorSettingError(
                f"connector {name} cannot run", detail=refused.message, hint="see [connect.connectors]"
            )  # fmt: skip
    return failure
