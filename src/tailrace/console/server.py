"""The console as a process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import socket
import sys
from collections.abc import Callable

import uvicorn

from tailrace import console_token
from tailrace.config import parse_address
from tailrace.console.app import Served, create_app
from tailrace.console.cluster_watch import ClusterWatch
from tailrace.console.figures import Figures
from tailrace.console.heads import BoundedHeads
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Access, Guard
from tailrace.errors import PortInUseError, TailraceError
from tailrace.node.takeover import read_applied
from tailrace.pipelines.spark.importable import forget_modules
from tailrace.project.load import Project, load
from tailrace.serving.reader import Views
from tailrace.telemetry.part import Part

log = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
REPORT_SECONDS = 5.0


def run(project: Project, part: Part) -> None:
    """Serve the page and the API until `part.stopping` is set."""
    settings = project.settings.console
    host, port = parse_address(settings.listen)
    token = console_token.current(part.directory, settings)
    listening = _listen(host, port)
    figures = Figures(part.bootstrap)
    views = Views(part.directory / "views")
    elsewhere = project.settings.log.bootstrap is not None
    cluster = ClusterWatch(part.bootstrap).start() if elsewhere else None
    served = Served(project, part.bootstrap, views, figures, cluster=cluster)
    port = listening.getsockname()[1]
    access = Access(
        host,
        token,
        chosen=settings.token is not None,
        public=settings.public,
        encrypted=settings.encrypted,
        cookie=f"tailrace-{port}",
        viewer=settings.viewer_token,
        oidc=settings.oidc,
        proxy=settings.proxy,
    )
    app = Guard(FastLookups(create_app(served), views), access)
    configuration = uvicorn.Config(
        app,
        http=BoundedHeads,
        log_level="warning",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=2,
        ssl_certfile=settings.cert,
        ssl_keyfile=settings.key,
        # Else whoever calls from this machine could say in a header which address they have.
        proxy_headers=False,
    )
    server = uvicorn.Server(configuration)
    shown = f"[{host}]" if ":" in host else host
    address = f"{'https' if settings.cert else 'http'}://{shown}:{port}"
    _allow_many_connections()
    # Look-ups are answered by the loop's thread; a busy one beside it may hold it up for as
    # long as this (by default 5 ms).
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(server, listening, part, address, served))
    finally:
        if cluster is not None:
            cluster.close()
        figures.close()
        views.close()
        listening.close()


def _load_again(served: Served) -> None:
    """Show a project that was taken over changed; what cannot be loaded is shown as it was."""
    try:
        forget_modules(served.project.directory)
        served.project = load(served.project.directory)
    except TailraceError as problem:
        log.warning("changed project not shown", extra=problem.as_dict())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed, else the standard one."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _allow_many_connections() -> None:
    """Every subscriber is an open file: take as many as this process may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(
    server: uvicorn.Server, listening: socket.socket, part: Part, address: str, served: Served
) -> None:
    async def watch() -> None:
        told, told_at = "", 0.0
        applied = read_applied(part.directory)
        while not part.stopping.is_set():
            if (number := read_applied(part.directory)) != applied:
                applied = number
                await asyncio.to_thread(_load_again, served)
            state = "running" if server.started else "starting"
            now = asyncio.get_running_loop().time()
            if state != told or now - told_at >= REPORT_SECONDS:
                told, told_at = state, now
                # Elsewhere and seldom: look-ups would wait for a disk that is busy.
                await asyncio.to_thread(part.report, state, address=address)
            if server.started and not gc.get_freeze_count():
                # What was loaded stays: going through it again would make look-ups wait.
                gc.collect()
                gc.freeze()
            await asyncio.sleep(0.2 if not server.started else 1.0)
        if served.closing is not None:
            served.closing.set()
        if served.feed is not None:
            await served.feed.stop()  # subscribers would keep the server waiting
        server.should_exit = True

    watching = asyncio.create_task(watch())
    # The supervisor owns the signals; uvicorn would take them over.
    await server._serve([listening])
    watching.cancel()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise PortInUseError(
            f"cannot listen on {host}:{port}",
            detail=error.strerror or str(error),
            hint="choose another: console.listen in tailrace.toml, or --console HOST:PORT",
        ) from error
    made.listen(4096)
    return made
