"""`tailrace check`: everything that can be known without running.

Names, files, SQL, inputs, topic settings; with `connect` also the databases: whether
they answer, whether they can be captured, and whether every view's columns and types
exist in them. An error in one thing does not hide the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from tailrace.client.event_topics import refuse_loss
from tailrace.config import EnvironmentValue, parse_address
from tailrace.errors import MissingVariableError, TailraceError
from tailrace.facts.errors import EventsDeclarationError, EventsKeyError
from tailrace.facts.mistakes import mistakes
from tailrace.facts.sealing import HINT
from tailrace.loopback import is_loopback
from tailrace.pipelines.declare import View
from tailrace.pipelines.errors import DeclarationError
from tailrace.project import graph
from tailrace.project.errors import ProjectError
from tailrace.project.load import Project
from tailrace.project.places import tell_place
from tailrace.sources.declare import Source, patterns
from tailrace.sources.errors import TableMissingError

if TYPE_CHECKING:
    from tailrace.facts.declare import Events
    from tailrace.facts.reactions import Reaction
    from tailrace.pipelines.incremental.graph import Graph, TableInput


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing looked at: good when `error` is None."""

    what: str
    found: str = ""
    error: TailraceError | None = None


def check(project: Project, *, connect: bool = False) -> Iterator[Checked]:
    """Look at everything, one thing after the other."""
    yield Checked("settings", f"project {project.name}, log {project.settings.bootstrap}")
    log = project.settings.log
    if log.bootstrap is None and not is_loopback(parse_address(log.listen)[0]):
        yield Checked("log.insecure", f"whoever reaches {log.listen} reads and writes everything")
    if log.bootstrap is None and log.broker.get("listeners"):
        yield _look("log.broker", _listeners, dict(log.broker))
    for warning in project.settings.console.warnings:
        yield Checked("console", f"warning: {warning}")
    for name, settings in project.settings.topics.items():
        yield _look(f"topic {name}", _topic_settings, dict(settings))
    for declared in project.events.values():
        yield from _events(project, declared)
    for reaction in project.reactions.values():
        yield from _reaction(project, reaction)
    parsed = [_look(f"view {view.name}", _parse, project, view) for view in project.views.values()]
    yield from parsed
    told = {
        view.name for view, one in zip(project.views.values(), parsed, strict=True) if one.error
    }
    if not told:
        topology = _look("topology", _topology, project)
        if isinstance(topology.error, ProjectError):
            told.update(topology.error.about)
        yield topology
    absent = {part: error.message for part, error in missing_variables(project)}
    if not connect:
        for source in project.sources.values():
            found = absent.get(("source", source.name), "")
            yield Checked(f"source {source.name}", f"{found} here" if found else source.kind)
    for sink in project.sinks.values():
        found = absent.get(("sink", sink.name), "")
        what = f"{sink.subject} → {sink.declaration.place}"
        yield Checked(f"sink {sink.name}", f"{what}; {found} here" if found else what)
    if connect:
        yield from _connected(project, told)
    elif project.views:
        tables = _known_inputs(project)
        if tables is None:
            yield Checked(
                "columns and types", "not looked at: they need `tailrace check --connect`"
            )
        else:
            yield from _compiled(project, tables, told)


def missing_variables(project: Project) -> Iterator[tuple[tuple[str, str], MissingVariableError]]:
    """Parts (kind, name) whose declaration refers to a variable the environment lacks."""
    declared: list[tuple[str, str, object, str]] = [
        ("source", source.name, source, project.places[source.name])
        for source in project.sources.values()
    ]
    declared += [
        ("sink", sink.name, sink.declaration, project.places[sink.subject])
        for sink in project.sinks.values()
    ]
    for kind, name, declaration, place in declared:
        for field in dataclasses.fields(declaration):  # type: ignore[arg-type]
            value = getattr(declaration, field.name)
            for one in value.values() if isinstance(value, Mapping) else (value,):
                if not isinstance(one, EnvironmentValue):
                    continue
                try:
                    one.resolve()
                except MissingVariableError as error:
                    error.detail = f"{field.name} of {kind} {name}, declared at {place}"
                    yield (kind, name), error


def _look(what: str, look: Callable[..., str], *about: object) -> Checked:
    try:
        return Checked(what, look(*about))
    except TailraceError as error:
        return Checked(what, error=error)


def _events(project: Project, declared: Events[Any]) -> Iterator[Checked]:
    """An event topic: its types, `evolve`, and what tailrace.toml says of it."""
    what = f"events {declared.name}"
    found = list(mistakes(declared))
    for error in found:
        error.detail = error.detail.replace(f"{project.directory}/", "")
        yield Checked(what, error=error)
    if declared.types.has_personal and not project.settings.events.key:
        found.append(
            EventsKeyError(
                f"{declared.name!r} has personal fields, and there is no key to seal them with",
                detail=f"declared at {project.places[declared.name]}; events.key is not set",
                hint=HINT,
            )
        )
        yield Checked(what, error=found[-1])
    settings = project.settings.topics.get(declared.name)
    if settings is not None:
        try:
            refuse_loss(declared.name, dict(settings))
        except TailraceError as error:
            yield Checked(what, error=error)
            return
    if not found:
        commands = ", ".join(declared.commands) or "no commands"
        yield Checked(what, f"{', '.join(declared.types.by_name)}; {commands}")


def _reaction(project: Project, reaction: Reaction) -> Iterator[Checked]:
    """A reaction: its state, and whether the project has the topics it reacts to."""
    what = f"reaction {reaction.name}"
    found = list(reaction.mistakes())
    found += [
        EventsDeclarationError(
            f"{reaction.name!r} reacts to {source!r}, which the project does not declare",
            detail=f"declared at {reaction.declared_at}",
            hint="declare it in a file of pipelines/",
        )
        for source in reaction.sources
        if source not in project.events
    ]
    for error in found:
        error.detail = error.detail.replace(f"{project.directory}/", "")
        yield Checked(what, error=error)
    if not found:
        yield Checked(what, f"to {', '.join(reaction.sources)}")


def _topic_settings(settings: dict[str, str]) -> str:
    from tailrace.log.settings import check_topic_config

    check_topic_config({name: value for name, value in settings.items() if name != "partitions"})
    return f"{len(settings)} settings"


def _listeners(given: dict[str, str]) -> str:
    from tailrace.broker.endpoints import endpoints, warnings
    from tailrace.broker.settings import BrokerSettings

    settings = BrokerSettings(given)
    told = [f"warning: {what}: {meaning}" for what, meaning in warnings(settings)]
    names = ", ".join(f"{each.name} ({each.protocol})" for each in endpoints(settings))
    return "; ".join([f"listeners {names}", *told])


def _parse(project: Project, view: View) -> str:
    from tailrace.pipelines.incremental.sql.parse import parse, point
    from tailrace.pipelines.incremental.sql.scope import Context
    from tailrace.pipelines.incremental.sql.understood import refuse_what_is_not_understood
    from tailrace.pipelines.unforeseen import unforeseen

    try:
        try:
            tree = parse(view.sql, view.name)
            refuse_what_is_not_understood(Context(view.name, view.sql), tree)
        except TailraceError:
            raise
        except Exception as defect:
            raise unforeseen(defect, f"view {view.name!r}\n{point(view.sql, 1, 1)}") from defect
    except TailraceError as error:
        tell_place(error, view, project.places[view.name], project.directory)
        raise
    return "SQL is well formed"


def _topology(project: Project) -> str:
    topology = graph.build(project)
    return f"{len(topology.nodes)} nodes, {len(topology.edges)} edges, no circle"


def _connected(project: Project, told: Collection[str]) -> Iterator[Checked]:
    from tailrace.pipelines.ticks.catalog import described_table, topic_table
    from tailrace.sources.describe import describe

    tables: list[TableInput] = []
    for source in project.sources.values():
        try:
            with contextlib.chdir(project.directory):  # relative paths are the project's
                found = describe(source)
        except TailraceError as error:
            yield Checked(f"source {source.name}", error=error)
            return
        tables += [described_table(orjson.loads(table.record("")[1])) for table in found]
        absent = _absent(source, {table.name for table in found})
        if absent is not None:
            yield Checked(f"source {source.name}", error=absent)
            return
        yield Checked(f"source {source.name}", f"{len(found)} tables can be captured")
    tables += [topic_table(topic) for topic in project.topics.values() if topic.tabular]
    if project.views:
        yield from _compiled(project, tables, told)


def _compiled(
    project: Project, tables: list[TableInput], told: Collection[str]
) -> Iterator[Checked]:
    """Every view against the columns and types of its tables; those in `told`, and what lies
    in a view that another reads, are told once."""
    from tailrace.pipelines.incremental.compile import compile_views, problems

    wrong = problems(project.views.values(), tables)
    for name, error in wrong.items():
        if name in told or error.view not in ("", name):
            continue
        tell_place(error, project.views[name], project.places[name], project.directory)
        yield Checked(f"view {name}: columns and types", error=error)
    right = [view for view in project.views.values() if view.name not in wrong]
    if right:
        graph = compile_views(right, tables)
        count = len(graph.views)
        found = f"{count} view{'' if count == 1 else 's'}, {len(graph.nodes)} operators"
        yield Checked("columns and types", found)
        yield from _named_columns(project, graph)
        for view in graph.views.values():
            if not view.proven:
                yield Checked(
                    f"view {view.name}: key",
                    f"({', '.join(view.key)}) is not unique by the query alone; two rows with "
                    "one key would put the view aside",
                )


def _named_columns(project: Project, compiled: Graph) -> Iterator[Checked]:
    """Columns that declarations name beside the SQL, and that the view does not have."""
    for name, judged in compiled.views.items():
        view = project.views[name]
        known = [column for column, _ in judged.columns]
        named = [("indexes=", column) for column in view.indexes]
        for sink in project.sinks.values():
            if sink.subject == name:
                fields = (*(getattr(sink.declaration, "fields", None) or ()),)
                named += [(f"fields= of sink {sink.name}", column) for column in fields]
                split = getattr(sink.declaration, "partition_by", ())
                named += [(f"partition_by= of sink {sink.name}", column) for column in split]
        for what, column in named:
            if column not in known:
                near = difflib.get_close_matches(column, known, n=1)
                error = DeclarationError(
                    f'view "{name}" has no column {column!r} for {what}',
                    detail=f"declared at {project.places[name]}",
                    hint=f"did you mean {near[0]!r}?"
                    if near
                    else f"its columns are {', '.join(known)}",
                )
                yield Checked(f"view {name}: columns and types", error=error)


def _known_inputs(project: Project) -> list[TableInput] | None:
    """What views read, where that can be told without a server: topics with a schema, and
    databases that are files. None when there is more."""
    from tailrace.pipelines.ticks.catalog import described_table, topic_table
    from tailrace.sources.describe import describe

    tables = [topic_table(topic) for topic in project.topics.values() if topic.tabular]
    for source in project.sources.values():
        if getattr(source, "kind", "") != "sqlite":
            return None
        try:
            with contextlib.chdir(project.directory):
                found = describe(source)
        except TailraceError:
            return None  # the file is not there yet; --connect says why
        if _absent(source, {table.name for table in found}) is not None:
            return None
        tables += [described_table(orjson.loads(table.record("")[1])) for table in found]
    return tables


def _absent(source: Source, found: Collection[str]) -> TableMissingError | None:
    """A table that the source names and its database does not have."""
    for pattern in patterns(source):
        if "*" in pattern:
            continue
        table = source.table(pattern)
        if f"{table.schema}.{table.table}" not in found:
            return TableMissingError(
                f'table "{pattern}" does not exist',
                detail=f"The database has: {', '.join(sorted(found)) or 'no table'}.",
                hint=f"create it, or correct tables= of source {source.name!r}",
            )
    return None


def refuse_mistakes(project: Project) -> None:
    """Raise the first mistake that can be known without running."""
    for one in check(project):
        if one.error is not None:
            raise one.error
