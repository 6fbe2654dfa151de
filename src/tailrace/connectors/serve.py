"""A worker as a process: `tailrace connect start`, and a part of a project."""

from __future__ import annotations

import hmac
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tailrace.broker.start import split_address
from tailrace.client.log import Log, connect
from tailrace.connectors import configured
from tailrace.connectors.errors import ConnectorSettingError, Refused
from tailrace.connectors.rest import SECRET, Rest, refuse
from tailrace.connectors.settings import WorkerSettings
from tailrace.connectors.worker import Worker
from tailrace.errors import OpenListenerError, TailraceError, UsageError
from tailrace.http_users import User, named, read_users, tls_context
from tailrace.loopback import is_loopback
from tailrace.plain_http import Answer, HttpServer, Request
from tailrace.telemetry.part import Part

LISTEN = "127.0.0.1:8083"
BODY_LIMIT_BYTES = 8 << 20
REPORT_SECONDS = 1.0
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a worker listens, what it may run, and Kafka Connect's settings.

    `users`: a file with a line `NAME: PASSWORD` or `NAME: PASSWORD, read` for each user;
    `authorities`: whose certificates the other workers may show, the system's if absent.
    """

    listen: str = LISTEN
    plugins: Sequence[Path] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    insecure: bool = False
    users: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    authorities: Path | None = None


class Guard:
    """Asks who comes in, if anybody was named, and what they may do. Other workers come with
    this one's secret."""

    def __init__(self, server: ConnectServer, users: Mapping[str, User] | None) -> None:
        self._server = server
        self._users = users

    def __call__(self, request: Request) -> Answer:
        given = request.headers.get(SECRET, "")
        among = hmac.compare_digest(given.encode(), self._server.worker.secret.encode())
        if self._users is not None and not among:
            user = named(request.headers.get("authorization", ""), self._users)
            if user is None:
                answer = refuse(401, "User cannot access the resource.")
                realm = (("WWW-Authenticate", 'Basic realm="connect"'),)
                return Answer(401, answer.body, answer.content_type, realm)
            if user.reads_only and not _only_reads(request):
                return refuse(403, "this user may only read")
        return self._server.rest(request)


def _only_reads(request: Request) -> bool:
    return request.method in ("GET", "HEAD") or request.path[2:] == ("config", "validate")


class ConnectServer:
    """A worker with its REST interface. Listens at once; `start` returns when it answers."""

    def __init__(self, source: Log, address: str, settings: Settings) -> None:
        host, port = split_address(settings.listen, "--listen")
        users = None if settings.users is None else read_users(settings.users)
        tls = tls_context(settings.certificate, settings.key)
        if not (settings.insecure or is_loopback(host)) and (users is None or tls is None):
            raise OpenListenerError(
                "a worker that other machines can reach runs what any of them asks for",
                detail=f"it listens on {host or 'every address'}, and asks nobody who they are, or "
                "passwords would travel as plain text",
                hint="give --users, --cert and --key, or say --insecure (in a project "
                "connect.users, connect.cert, connect.key, connect.insecure)",
            )
        chosen = WorkerSettings(settings.given, settings.plugins)
        self._server = HttpServer(
            host,
            port,
            Guard(self, users),
            refuse=refuse,
            tls=tls,
            body_limit_bytes=BODY_LIMIT_BYTES,
            name="connect",
        )
        here = self._server.address.rpartition(":")[0]
        if here in ("", "0.0.0.0", "[::]"):
            here = socket.getfqdn()  # others reach no worker at "every address"
        shown = chosen["rest.advertised.host.name"] or here
        scheme = "http" if tls is None else "https"
        url = f"{scheme}://{shown}:{chosen['rest.advertised.port'] or self._server.port}"
        trust = None if tls is None else _trust(settings.authorities)
        self.worker = Worker(source, address, chosen, url, trust)
        self.rest = Rest(self.worker)

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


def _trust(authorities: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"{authorities} holds no certificates", detail=str(error), hint="a PEM file"
        ) from error


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
