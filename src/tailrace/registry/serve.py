"""The registry as a process: `tailrace registry start`, and a part of a project."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tailrace.broker.start import split_address
from tailrace.client.log import Log, connect
from tailrace.config import RegistrySettings
from tailrace.errors import OpenListenerError, TailraceError
from tailrace.http_users import User, named, read_users, tls_context
from tailrace.loopback import is_loopback
from tailrace.plain_http import Answer, HttpServer, Request
from tailrace.registry.rest import CONTENT_TYPE, Rest, refuse
from tailrace.registry.service import Service
from tailrace.registry.topic import NAME, SchemaTopic
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

LISTEN = "127.0.0.1:8081"
BODY_LIMIT_BYTES = 12 << 20
_READS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Settings:
    """`users`: a file with a line `NAME: PASSWORD` or `NAME: PASSWORD, read` for each user."""

    listen: str = LISTEN
    topic: str = NAME
    users: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    insecure: bool = False


class RegistryServer:
    """A registry over a log. Listens at once; `start` returns when it answers."""

    def __init__(self, source: Log, settings: Settings) -> None:
        host, port = split_address(settings.listen, "--listen")
        users = None if settings.users is None else read_users(settings.users)
        tls = tls_context(settings.certificate, settings.key, settings.client_ca)
        if not (settings.insecure or is_loopback(host)) and (users is None or tls is None):
            raise OpenListenerError(
                "a registry that other machines can reach is open to all of them",
                detail=f"it listens on {host or 'every address'}, and asks nobody who they are, or "
                "passwords would travel as plain text",
                hint="give --users, --cert and --key, or say --insecure (in a project "
                "registry.users, registry.cert, registry.key, registry.insecure)",
            )
        self._topic = SchemaTopic(source, settings.topic)
        self.service = Service(self._topic)
        answer = Guard(Rest(self.service), users)
        self._server = HttpServer(
            host,
            port,
            answer,
            refuse=refuse,
            tls=tls,
            body_limit_bytes=BODY_LIMIT_BYTES,
            name="registry",
        )

    def __enter__(self) -> RegistryServer:
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
        self._topic.start()
        self._server.start()

    @property
    def failure(self) -> TailraceError | None:
        """Why the topic cannot be read now; what was read before is still answered."""
        return self._topic.failure

    def figures(self) -> dict[str, object]:
        """What a project's status shows of it."""
        return self._topic.look(
            lambda subjects: {
                "address": self.address,
                "subjects": subjects.count,
                "unread": subjects.unread,
                "position": self._topic.position,
            }
        )

    def close(self) -> None:
        self._server.close()
        self._topic.close()


REPORT_SECONDS = 1.0


def run(chosen: RegistrySettings, part: Part) -> None:
    """The registry of a project, until `part.stopping` is set."""
    settings = Settings(
        chosen.listen or LISTEN,
        users=chosen.users,
        certificate=chosen.cert,
        key=chosen.key,
        insecure=chosen.insecure,
    )
    with connect(part.bootstrap) as source, RegistryServer(source, settings) as server:
        server.start()
        while True:
            failure = server.failure
            told = None if failure is None else failure.as_dict()
            part.report("lagging" if told else "running", error=told, **server.figures())
            if part.stopping.wait(REPORT_SECONDS):
                return


class Guard:
    """Asks who comes in, if anybody was named, and what they may do."""

    def __init__(self, rest: Rest, users: Mapping[str, User] | None) -> None:
        self._rest = rest
        self._users = users

    def __call__(self, request: Request) -> Answer:
        if self._users is not None:
            user = named(request.headers.get("authorization", ""), self._users)
            if user is None:
                answer = refuse(401, "Unauthorized")
                realm = (("WWW-Authenticate", 'Basic realm="schema registry"'),)
                body = answer.body.replace(b"HTTP 401 Unauthorized", b"Unauthorized")
                return Answer(401, body, CONTENT_TYPE, realm)
            if user.reads_only and not _only_reads(request):
                return refuse(403, "this user may only read")
        return self._rest(request)


def _only_reads(request: Request) -> bool:
    """Whether a request changes nothing: a question may be a POST."""
    if request.method in _READS:
        return True
    path = request.path[2:] if request.path[:1] == ("contexts",) else request.path
    if request.method != "POST" or not path:
        return request.method == "POST"
    return path[0] == "compatibility" or (path[0] == "subjects" and len(path) == 2)
