"""An edge as a running part of a project."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Protocol

from tailrace.client.log import Log, connect
from tailrace.config import parse_address, parse_size
from tailrace.errors import UsageError
from tailrace.plain_http import Handle, HttpServer, Refuse
from tailrace.sources.edges import produce, webhook
from tailrace.sources.edges.declare import HTTP, Edge, Multicast, StatsD, Webhook, ZeroMQ
from tailrace.sources.edges.figures import Figures, LastMinute
from tailrace.sources.edges.multicast import Receiving
from tailrace.sources.edges.multicast_out import Publishing
from tailrace.sources.edges.registration import Hook, Provider, Registrar
from tailrace.sources.edges.statsd import Listening
from tailrace.telemetry.part import Part

REPORT_SECONDS = 1.0


def run(edge: Edge, part: Part) -> None:
    """Take what comes until `part.stopping` is set; what was received before is answered."""
    if not isinstance(edge, Webhook | HTTP):
        _listen(edge, part)
        return
    figures = Figures()
    with connect(part.bootstrap) as log:
        work: produce.Producing | webhook.Receiver
        refuse: Refuse = webhook.refuse
        if isinstance(edge, HTTP):
            work, refuse = produce.Producing(edge, log, figures), produce.refuse
        else:
            work = webhook.Receiver(edge, log, figures)
        server = make_server(edge, work, refuse)
        registrar: Registrar | None = None
        try:
            work.start()
            server.start()
            if isinstance(work, webhook.Receiver) and isinstance(edge, Webhook) and edge.register:
                registrar = register(edge, part.directory, work)
            minute = LastMinute(part.clock)
            while True:
                now = figures.now()
                told = {} if registrar is None else registrar.report()
                part.report(
                    "lagging" if told.get("error") else "running",
                    **told,
                    edge=edge.kind,
                    address=server.address,
                    **now,
                    **minute.look(now),
                )
                if part.stopping.wait(REPORT_SECONDS):
                    break
        finally:
            if registrar is not None:
                registrar.close()
            server.close()
            work.close()
        part.report("stopped", **figures.now())


def register(edge: Webhook, directory: Path, work: webhook.Receiver) -> Registrar:
    """Have the provider's hook made while the edge runs already: it may be called at once."""
    provider = Provider(edge, directory)
    known = provider.known()
    if known is not None and known.secret:
        work.trust(known.secret)

    def made(hook: Hook) -> None:
        if hook.secret and hook != known:
            work.trust(hook.secret)

    registrar = Registrar(provider, made)
    registrar.start()
    return registrar


def make_server(edge: Webhook | HTTP, work: Handle, refuse: Refuse) -> HttpServer:
    """Listens for an edge."""
    host, port = parse_address(edge.listen)
    return HttpServer(
        host,
        port,
        work,
        refuse=refuse,
        tls=_tls(edge),
        body_limit_bytes=parse_size(edge.limit),
        name=f"edge {edge.name}",
        # Calls of a provider come through a proxy or a tunnel, by the names these have. Without
        # a signature or a token the name is all that tells a program from a page whose name
        # was made to mean this machine.
        any_name=isinstance(edge, Webhook) or edge.token is not None,
    )


class Working(Protocol):
    """An edge that nobody waits for."""

    @property
    def address(self) -> str: ...

    def start(self) -> None: ...

    def figures(self) -> dict[str, int]: ...

    def close(self) -> None: ...


def make_listener(edge: StatsD | Multicast | ZeroMQ, log: Log, directory: Path) -> Working:
    if isinstance(edge, StatsD):
        return Listening(edge, log)
    if isinstance(edge, ZeroMQ):
        from tailrace.sources.edges.zeromq import Messages

        return Messages(edge, log)
    return Receiving(edge, log) if edge.send is None else Publishing(edge, log, directory)


def _listen(edge: StatsD | Multicast | ZeroMQ, part: Part) -> None:
    with connect(part.bootstrap) as log:
        listening = make_listener(edge, log, part.directory)
        try:
            listening.start()
            minute = LastMinute(part.clock)
            while True:
                now = listening.figures()
                part.report(
                    "running", edge=edge.kind, address=listening.address, **now, **minute.look(now)
                )
                if part.stopping.wait(REPORT_SECONDS):
                    break
        finally:
            listening.close()
        part.report("stopped", **listening.figures())


def _tls(edge: Webhook | HTTP) -> ssl.SSLContext | None:
    if edge.cert is None or edge.key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(edge.cert, edge.key)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the certificate or the key of edge {edge.name!r} cannot be used",
            detail=str(error),
            hint="both are PEM files",
        ) from error
    return context
