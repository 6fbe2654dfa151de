"""One part of a project, as a process: `python -m tailrace.node.child KIND NAME DIRECTORY ADDRESS`.

The process dies with its supervisor (the kernel sends SIGTERM), carries a title, stops
on SIGTERM by itself, and leaves its last error in its report.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from tailrace import config
from tailrace.errors import TailraceError
from tailrace.node.parts import SHARD, PartSpec
from tailrace.node.processes import end_with_parent
from tailrace.project import load as project_load
from tailrace.telemetry import logs
from tailrace.telemetry.part import Part

log = logging.getLogger("tailrace.node.child")  # the module runs as __main__


def follow_parent(parent: int) -> None:
    """Have the kernel end this process when its parent is gone, however it went."""
    end_with_parent()()
    if os.getppid() != parent:  # it died between our start and the call
        sys.exit(1)


def set_title(title: str) -> None:
    """The name shown by `ps`."""
    try:
        import setproctitle
    except ImportError:
        return
    setproctitle.setproctitle(title)


def run_broker(settings: config.Settings, part: Part) -> None:
    """The embedded log; it needs nothing of the project's own files."""
    from tailrace.broker.process import run

    host, port = config.parse_address(part.bootstrap)
    given = dict(settings.log.broker)
    if settings.log.insecure:
        given["allow.insecure.listeners"] = "true"
    run([settings.log.directory], host=host, port=port, settings=given, part=part)


def run_source(project: project_load.Project, part: Part) -> None:
    from tailrace.sources.runner import run

    run(project.sources[part.name], part)


def run_pipelines(project: project_load.Project, part: Part) -> None:
    from tailrace.facts.erased_records import ErasedRecords, views_place
    from tailrace.pipelines.process.runner import Declared, references_of, run
    from tailrace.pipelines.spark.importable import forget_modules
    from tailrace.project.event_tables import event_tables
    from tailrace.project.marking import stream_marks

    erasures = ErasedRecords(part.bootstrap, views_place(part.project))

    def declared(found: project_load.Project) -> Declared:
        return Declared(
            list(found.views.values()),
            list(found.streams.values()),
            list(found.topics.values()),
            found.settings,
            stream_marks(found),
            found.matchers,
            event_tables(found.events.values()),
            erasures,
            list(found.functions.values()),
            references_of(found.functions.values()),
        )

    def read_again() -> Declared:
        forget_modules(project.directory)
        return declared(project_load.load(project.directory))

    with closing(erasures):
        run(declared(project), part, read_again=read_again)


def run_views(project: project_load.Project, part: Part) -> None:
    from tailrace.serving.follower import FollowerSettings, run

    indexes = {view.name: view.indexes for view in project.views.values() if view.indexes}
    run(part, FollowerSettings(indexes=indexes), expected=bool(project.views))


def run_sink(project: project_load.Project, part: Part) -> None:
    from tailrace.project.opening import opener_of
    from tailrace.sinks.process import run

    copy = project.sinks[part.name]
    run(copy, part, opener=opener_of(project, part.bootstrap, copy))


def run_events(project: project_load.Project, part: Part) -> None:
    from tailrace.client.schemas import Schemas
    from tailrace.facts.process import run

    declared = [project.reservations.get(name, each) for name, each in project.events.items()]
    chosen = project.settings.registry
    schemas = chosen.url and Schemas(chosen.url, user=chosen.user, password=chosen.password)
    run(declared, part, project.reactions.values(), schemas or None)


def run_edge(project: project_load.Project, part: Part) -> None:
    from tailrace.sources.edges.runner import run

    run(project.edges[part.name], part)


def run_mirror(project: project_load.Project, part: Part) -> None:
    from tailrace.mirroring.process import run

    name, _, shard = part.name.partition(SHARD)
    plan = project.mirrors[name]
    source = project.cluster(plan.source, part.bootstrap)
    run(plan, source, project.cluster(plan.target, part.bootstrap), part, int(shard or 0))


def run_registry(project: project_load.Project, part: Part) -> None:
    from tailrace.registry.serve import run

    run(project.settings.registry, part)


def run_connect(project: project_load.Project, part: Part) -> None:
    from tailrace.connectors.serve import Settings, run

    chosen = project.settings.connect
    assert chosen.listen is not None
    plugins = [] if chosen.plugins is None else [chosen.plugins]
    # Two projects on one log are two groups.
    given = {
        "group.id": f"connect-{project.name}",
        "state.directory": str(part.directory / "connect"),
    }
    given |= chosen.settings
    settings = Settings(
        chosen.listen,
        plugins,
        given,
        chosen.insecure,
        chosen.users,
        chosen.cert,
        chosen.key,
        chosen.ca,
    )
    run(settings, part, chosen.connectors)


Run = Callable[[project_load.Project, Part], None]

RUN: dict[str, Run] = {
    "events": run_events,
    "registry": run_registry,
    "edge": run_edge,
    "connect": run_connect,
    "mirror": run_mirror,
    "source": run_source,
    "pipelines": run_pipelines,
    "views": run_views,
    "sink": run_sink,
}


def main(kind: str, name: str, directory: str, address: str) -> int:
    """Run one part until it is told to stop; 0 when it stopped, 1 when it failed."""
    set_title(PartSpec(kind, name).title)
    logs.configure(os.environ.get("TAILRACE_LOG_LEVEL", "info"))
    os.chdir(directory)  # relative paths in declarations are the project's
    settings = config.load(directory)
    part = Part(name, kind, settings.project.name, settings.at(address), settings.state_directory)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group; the supervisor drains
    signal.signal(signal.SIGTERM, lambda *_: part.stopping.set())
    part.remember()
    part.report("starting")
    try:
        if kind == "broker":
            run_broker(settings, part)
        else:
            RUN[kind](project_load.load(Path(directory)), part)
    except TailraceError as error:
        part.report("failed", error=error.as_dict())
        print(error.render(), file=sys.stderr, flush=True)
        return 1
    except Exception as error:
        words = {"error": f"{type(error).__name__}: {error}", "code": "bug"}
        part.report("failed", error={**words, "traceback": traceback.format_exc()})
        log.exception("part failed", extra={"part": f"{kind} {name}"})
        return 1
    part.report("stopped")
    return 0


def start(more: dict[str, Run] | None = None) -> NoReturn:
    """Be the part that the command line names; `more` are kinds this room does not know."""
    follow_parent(int(os.environ.get("TAILRACE_SUPERVISOR", os.getppid())))
    RUN.update(more or {})
    status = main(*sys.argv[1:5])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of drivers and of Spark must not keep a finished part alive.
    os._exit(status)


if __name__ == "__main__":
    start()
