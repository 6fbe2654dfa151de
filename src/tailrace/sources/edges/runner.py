"""An edge as a running part of a project."""

from __future__ import annotations

import ssl

from tailrace.client.log import connect
from tailrace.config import parse_address, parse_size
from tailrace.errors import UsageError
from tailrace.plain_http import Handle, HttpServer, Refuse
from tailrace.sources.edges import produce, webhook
from tailrace.sources.edges.declare import HTTP, Edge, StatsD, Webhook
from tailrace.sources.edges.figures import Figures, LastMinute
from tailrace.sources.edges.statsd import Listening
from tailrace.telemetry.part import Part

REPORT_SECONDS = 1.0


def run(edge: Edge, part: Part) -> None:
    """Take what comes until `part.stopping` is set; what was received before is answered."""
    if isinstance(edge, StatsD):
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
        try:
            work.start()
            server.start()
            minute = LastMinute(part.clock)
            while True:
                now = figures.now()
                part.report("running", address=server.address, **now, **minute.look(now))
                if part.stopping.wait(REPORT_SECONDS):
                    break
        finally:
            server.close()
            work.close()
        part.report("stopped", **figures.now())


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


def _listen(edge: StatsD, part: Part) -> None:
    with connect(part.bootstrap) as log:
        listening = Listening(edge, log)
        try:
            listening.start()
            minute = LastMinute(part.clock)
            while True:
                now = listening.figures()
                part.report("running", address=listening.address, **now, **minute.look(now))
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
