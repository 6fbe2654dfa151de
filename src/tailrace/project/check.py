"""`tailrace check`: everything that can be known without running.

Names, files, SQL, inputs, topic settings; with `connect` also the databases: whether
they answer, whether they can be captured, and whether every view's columns and types
exist in them. An error in one thing does not hide the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from tailrace.client.errors import RegistryError
from tailrace.client.event_topics import refuse_loss
from tailrace.client.operations import MIN_INSYNC, UNCLEAN, survival
from tailrace.config import REPLICATION, parse_address
from tailrace.errors import TailraceError
from tailrace.facts.errors import EventsDeclarationError, EventsKeyError
from tailrace.facts.mistakes import mistakes as event_mistakes
from tailrace.facts.sealing import HINT
from tailrace.loopback import is_loopback
from tailrace.pipelines.declare import Pattern, Topic, View
from tailrace.pipelines.errors import DeclarationError
from tailrace.project import graph, mirrors, subjects
from tailrace.project.checked import Checked
from tailrace.project.connections import mistakes
from tailrace.project.errors import ProjectError
from tailrace.project.event_tables import event_tables, tables_of
from tailrace.project.load import Project
from tailrace.project.opening import personal_places
from tailrace.project.places import tell_place
from tailrace.project_token import asks_everybody
from tailrace.sinks import declare as sinks
from tailrace.sinks.errors import SinkDeclarationError
from tailrace.sinks.registry import Copy
from tailrace.sources.declare import MOST_PARTITIONS, Source, for_table, patterns
from tailrace.sources.edges.declare import HTTP, StatsD, Webhook
from tailrace.sources.errors import SourceDeclarationError, TableMissingError

if TYPE_CHECKING:
    from tailrace.facts.declare import Events
    from tailrace.facts.reactions import Reaction
    from tailrace.pipelines.engine.graph import Graph, TableInput
    from tailrace.sources.schema import TableSchema


def check(
    project: Project, *, connect: bool = False, ask: bool = False, connections: bool = True
) -> Iterator[Checked]:
    """Look at everything, one thing after the other; `ask`: also the registry, if it answers.
    Without `connections` what depends on this machine is left out: variables, addresses and files
    of databases."""
    wrong = mistakes(project) if connections else {}
    yield Checked("settings", f"project {project.name}, log {project.settings.bootstrap}")
    log = project.settings.log
    if log.bootstrap is None and not is_loopback(parse_address(log.listen)[0]):
        found = f"whoever reaches {log.listen} reads and writes everything"
        yield Checked("log.insecure", found, warning=True)
    if log.bootstrap is None and asks_everybody(log.broker):
        listeners = _look("log.broker", _listeners, dict(log.broker))
        yield dataclasses.replace(listeners, warning="warning: " in listeners.found)
    elif log.bootstrap is None and log.broker:
        yield _look("log.broker", _broker_settings, dict(log.broker))
    for warning in project.settings.console.warnings:
        yield Checked("console", warning, warning=True)
    for name, settings in project.settings.topics.items():
        embedded = log.bootstrap is None
        yield _look(f"topic {name}", _topic_settings, name, dict(settings), embedded)
    for edge in project.edges.values():
        error = wrong.get(("edge", edge.name))
        yield Checked(f"edge {edge.name}", "" if error else f"{edge.kind} on {edge.listen}", error)
    yield from _same_addresses(project)
    for plan in project.mirrors.values():
        yield _look(f"mirror {plan.name}", mirrors.look, project, plan, connect)
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
        known = {error.message for error in wrong.values()}
        if topology.error is None or topology.error.message not in known:  # else told below
            yield topology
    yield from _patterns(project, told)
    for percolation in project.percolations.values():
        found = (
            f"{_read_by(percolation.input)} against the queries of {_read_by(percolation.queries)}"
        )
        yield Checked(f"percolation {percolation.name}", found)
    for stream in project.streams.values():
        found = f"{', '.join(map(_read_by, stream.inputs))} → {stream.topic}, in PySpark"
        yield Checked(f"stream {stream.name}", found)
    for source in project.sources.values():
        error = wrong.get(("source", source.name))
        if error is None and not connect:
            known_tables = _known_tables(project, source) or []
            error = _absent_columns(source, project.places[source.name], known_tables)
        if error is not None or not connect:
            yield Checked(f"source {source.name}", "" if error else source.kind, error)
    for sink in project.sinks.values():
        error = wrong.get(("sink", sink.name))
        what = f"sink {sink.name}"
        yield _look(what, _sink, project, sink) if error is None else Checked(what, "", error)
    if connect and any(kind == "source" for kind, _ in wrong):
        return  # columns and types need every source
    topics: Mapping[str, Topic] | None = None
    if ask or connect:
        topics = yield from _registered(project, connect)
    if connect:
        yield from _connected(project, project.topics if topics is None else topics, told, ask)
    elif project.views or project.matchers:
        tables = _known_inputs(project, topics)
        if tables is None:
            yield Checked(
                "columns and types", "not looked at: they need `tailrace check --connect`"
            )
        else:
            yield from _compiled(project, tables, told, ask)
    if ask and not project.views:
        yield from subjects.look(project, None)


def _read_by(given: object) -> str:
    return str(getattr(given, "topic", None) or getattr(given, "name", given))


def _same_addresses(project: Project) -> Iterator[Checked]:
    """Edges that listen where another part does; the second to start would find the port taken."""
    settings = project.settings
    taken: dict[tuple[str, int, bool], str] = {}
    own = [("the console", settings.console.listen), ("the registry", settings.registry.listen),
           ("the connect worker", settings.connect.listen)]  # fmt: skip
    if settings.log.bootstrap is None:
        own.append(("the log", settings.log.listen))
    listening = [(name, address, False) for name, address in own if address]
    # Others receive datagrams of a group, or have addresses of a form of their own.
    listening += [
        (f"edge {edge.name}", edge.listen, isinstance(edge, StatsD))
        for edge in project.edges.values()
        if isinstance(edge, HTTP | StatsD | Webhook)
    ]
    for name, address, datagrams in listening:
        host, port = parse_address(address)
        place = ("127.0.0.1" if is_loopback(host) else host, port, datagrams)
        other = taken.setdefault(place, name)
        if port and other != name:
            error = SourceDeclarationError(
                f"{name} and {other} both listen on {address}",
                detail=f"declared at {project.places.get(name, 'tailrace.toml')}",
                hint="give one of them another port",
            )
            yield Checked(name, error=error)


def _registered(
    project: Project, connect: bool
) -> Generator[Checked, None, Mapping[str, Topic] | None]:
    """Topics with the columns that a registry knows, None if it did not tell; one that is away
    is an error if all others are asked, too."""
    from tailrace.pipelines.reading.registered import asks, for_views

    chosen = project.settings.registry
    if not asks(project.topics.values(), chosen):
        return project.topics
    try:
        found = for_views(project.topics.values(), chosen)
    except RegistryError as error:
        if connect:
            yield Checked("registry", error=error)
        else:
            yield Checked("registry", "not looked at: it does not answer")
        return None
    except TailraceError as error:
        yield Checked("registry", error=error)
        return None
    count = sum(one.wire == "confluent" for one in found)
    yield Checked("registry", f"columns of {count} topic{'' if count == 1 else 's'}")
    return dict(zip(project.topics, found, strict=True))


def _look(what: str, look: Callable[..., str], *about: object) -> Checked:
    try:
        return Checked(what, look(*about))
    except TailraceError as error:
        return Checked(what, error=error)


def _sink(project: Project, sink: Copy) -> str:
    """A sink beside what feeds it."""
    from tailrace.pipelines.values.types import parse_type

    declaration, place = sink.declaration, f"declared at {project.places[sink.subject]}"
    for column, kind in declaration.columns.items():
        try:
            parse_type(kind)
        except ValueError as reason:
            raise SinkDeclarationError(
                f"columns= of sink {sink.name}: {column!r}: {reason}",
                detail=place,
                hint="Spark's words: STRING, BIGINT, DECIMAL(10,2), TIMESTAMP",
            ) from reason
    if declaration.open and not project.settings.events.key:
        raise EventsKeyError(
            f"sink {sink.name} opens sealed columns, and there is no key to open them with",
            detail=f"{place}; events.key is not set",
            hint=HINT,
        )
    _refuse_opened_key(declaration, sink.name, sink.key, place)
    if declaration.open and not personal_places(project):
        raise SinkDeclarationError(
            f"sink {sink.name} opens columns, and the project declares no personal fields",
            detail=place,
            hint="Annotated[str, tr.personal(…)] in an event class makes one",
        )
    if isinstance(declaration, sinks.Topic) and declaration.bootstrap is None:
        writer = graph.writers(project).get(declaration.topic)
        if writer is not None:
            raise SinkDeclarationError(
                f"sink {sink.name} would write into topic {declaration.topic!r}, which holds "
                f"{writer}",
                detail=place,
                hint="give it a topic of its own",
            )
    return f"{sink.subject} → {declaration.place}"


def _refuse_opened_key(
    declaration: sinks.Declaration, name: str, key: Collection[str], place: str
) -> None:
    if keys := sorted({*declaration.open} & {*key}):
        raise SinkDeclarationError(
            f"open= of sink {name} names the key column {keys[0]!r}",
            detail=place,
            hint="a key cannot become NULL: open columns beside it",
        )


def _refuse_opened_types(sink: Copy, columns: Mapping[str, str], place: str) -> None:
    for column in sink.declaration.open:
        if (kind := columns.get(column, "STRING")) != "STRING":
            raise SinkDeclarationError(
                f"open= of sink {sink.name} names the column {column!r}, which is {kind}",
                detail=place,
                hint="what is sealed is a STRING; select the field itself",
            )


def _events(project: Project, declared: Events[Any]) -> Iterator[Checked]:
    """An event topic: its types, `evolve`, and what tailrace.toml says of it."""
    what = f"events {declared.name}"
    found = list(event_mistakes(declared))
    if not found:
        try:
            list(tables_of(declared))
        except TailraceError as wrong:
            found.append(wrong)
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


def _topic_settings(name: str, settings: dict[str, str], embedded: bool) -> str:
    from tailrace.log.settings import check_topic_config

    partitions = int(settings.get("partitions", "1"))
    if embedded and partitions > MOST_PARTITIONS:
        raise ProjectError(
            f"topic {name!r} cannot have {partitions} partitions",
            hint=f"the embedded log takes {MOST_PARTITIONS} a topic",
        )
    if settings.get("tailrace.events") == "true":
        refuse_loss(name, settings)
    wished = {
        key: value for key, value in settings.items() if key not in ("partitions", REPLICATION)
    }
    least_text = wished.pop(MIN_INSYNC, "1")
    check_topic_config({**wished, MIN_INSYNC: "1" if least_text.isdecimal() else least_text})
    copies, least = int(settings.get(REPLICATION, "0")), int(least_text)
    if embedded and max(copies, least) > 1:
        what = f"{copies} copies" if copies > 1 else f"{least} replicas in sync"
        raise ProjectError(
            f"topic {name!r} cannot have {what}: the embedded log keeps one copy",
            hint="set log.bootstrap to an Apache Kafka cluster, or leave replication and min.insync.replicas out",
        )
    told = f"{len(settings)} settings"
    if copies:
        told += f"; {survival(copies, least, wished.get(UNCLEAN) == 'true')}"
    elif not embedded and {MIN_INSYNC, UNCLEAN} & settings.keys():
        told += "; how many copies is the cluster's default.replication.factor: set replication to have it told"
    return told


def _broker_settings(given: dict[str, str]) -> str:
    from tailrace.broker.settings import BrokerSettings

    BrokerSettings(given)
    return f"{len(given)} settings"


def _listeners(given: dict[str, str]) -> str:
    from tailrace.broker.endpoints import endpoints, warnings
    from tailrace.broker.settings import BrokerSettings

    settings = BrokerSettings(given)
    told = [f"warning: {what}: {meaning}" for what, meaning in warnings(settings)]
    names = ", ".join(f"{each.name} ({each.protocol})" for each in endpoints(settings))
    return "; ".join([f"listeners {names or 'none for others'}", *told])


def _parse(project: Project, view: View) -> str:
    from tailrace.pipelines.compiler.binding.scope import Context
    from tailrace.pipelines.compiler.syntax.parse import parse, point
    from tailrace.pipelines.compiler.syntax.understood import refuse_what_is_not_understood
    from tailrace.pipelines.engine.unforeseen import unforeseen

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


def _connected(
    project: Project, topics: Mapping[str, Topic], told: Collection[str], ask: bool
) -> Iterator[Checked]:
    from tailrace.pipelines.reading.catalog import described_table, topic_table
    from tailrace.sources.describe import describe

    tables: list[TableInput] = []
    for source in project.sources.values():
        try:
            with contextlib.chdir(project.directory):  # relative paths are the project's
                found = describe(source)
        except TailraceError as error:
            _tell_declared(error, project.places[source.name])
            yield Checked(f"source {source.name}", error=error)
            return
        tables += [described_table(orjson.loads(table.record("")[1])) for table in found]
        absent = _absent(source, {table.name for table in found})
        wrong = absent or _absent_columns(source, project.places[source.name], found)
        if wrong is not None:
            yield Checked(f"source {source.name}", error=wrong)
            return
        yield Checked(f"source {source.name}", f"{len(found)} tables can be captured")
    tables += [topic_table(topic) for topic in topics.values() if topic.tabular]
    tables += event_tables(project.events.values())
    yield from _compiled(project, tables, told, ask)


def _patterns(project: Project, told: set[str]) -> Iterator[Checked]:
    """The words of every pattern; those that are wrong are put into `told`."""
    from tailrace.pipelines.compiler.event_pattern import refuse_wrong_words

    def look(pattern: Pattern) -> str:
        try:
            refuse_wrong_words(pattern)
        except TailraceError as error:
            told.add(pattern.name)
            _tell_declared(error, project.places[pattern.name])
            raise
        return "the pattern is well formed"

    for pattern in project.patterns.values():
        yield _look(f"pattern {pattern.name}", look, pattern)


def _tell_declared(error: TailraceError, place: str) -> None:
    if place not in error.detail:
        error.detail = "\n".join(filter(None, (error.detail, f"declared at {place}")))


def _compiled(
    project: Project, tables: list[TableInput], told: Collection[str], ask: bool
) -> Iterator[Checked]:
    """Every view, pattern and percolation against the columns and types of its tables; those in `told`, and
    what lies in a view that another reads, are told once."""
    from tailrace.pipelines.compiler import compile_views, problems
    from tailrace.pipelines.compiler.declared_patterns import compile_patterns, tables_of

    patterns = [one for one in project.matchers if one.name not in told]
    compiled, failed = compile_patterns(patterns, {table.topic: table for table in tables})
    for name, problem in failed.items():
        _tell_declared(problem, project.places[name])
        what = "percolation" if name in project.percolations else "pattern"
        yield Checked(f"{what} {name}: columns and types", error=problem)
    for what, of in (("pattern", project.patterns), ("percolation", project.percolations)):
        count = len(compiled.keys() & of.keys())
        if count:
            yield Checked(f"{what}s", f"{count} {what}{'' if count == 1 else 's'}")
    tables = [*tables, *(t for one in compiled.values() for t in tables_of(one))]
    if not project.views:
        return
    wrong = problems(project.views.values(), tables, project.functions.values())
    for name, error in wrong.items():
        if name in told or error.view not in ("", name):
            continue
        tell_place(error, project.views[name], project.places[name], project.directory)
        yield Checked(f"view {name}: columns and types", error=error)
    right = [view for view in project.views.values() if view.name not in wrong]
    if right:
        graph = compile_views(right, tables, project.functions.values())
        count = len(graph.views)
        found = f"{count} view{'' if count == 1 else 's'}, {len(graph.nodes)} operators"
        yield Checked("columns and types", found)
        yield from _named_columns(project, graph)
        if ask:
            yield from subjects.look(project, graph)
        for view in graph.views.values():
            if not view.proven:
                yield Checked(
                    f"view {view.name}: key",
                    f"({', '.join(view.key)}) is not unique by the query alone; two rows with "
                    "one key would suspend the view",
                    warning=True,
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
                named += [(f"open= of sink {sink.name}", one) for one in sink.declaration.open]
                place = f"declared at {project.places[name]}"
                try:
                    _refuse_opened_key(sink.declaration, sink.name, judged.key, place)
                    _refuse_opened_types(sink, dict(judged.columns), place)
                except SinkDeclarationError as wrong:
                    yield Checked(f"view {name}: columns and types", error=wrong)
                split = getattr(sink.declaration, "partition_by", ())
                named += [(f"partition_by= of sink {sink.name}", column) for column in split]
                named += [
                    (f"columns= of sink {sink.name}", one) for one in sink.declaration.columns
                ]
                if isinstance(sink.declaration, sinks.Email):
                    named += [
                        (f"the mail of sink {sink.name}", column)
                        for column in sink.declaration.named_columns
                    ]
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


def _known_inputs(project: Project, topics: Mapping[str, Topic] | None) -> list[TableInput] | None:
    """What views read, where that can be told without a server: topics with a schema, and
    databases that are files. None when there is more."""
    from tailrace.pipelines.reading.catalog import described_table, topic_table

    if topics is None:
        from tailrace.pipelines.reading.registered import asks

        topics = project.topics
        if asks(topics.values(), project.settings.registry):
            return None
    tables = [topic_table(topic) for topic in topics.values() if topic.tabular]
    tables += event_tables(project.events.values())
    for source in project.sources.values():
        found = _known_tables(project, source)
        if found is None or _absent(source, {table.name for table in found}) is not None:
            return None
        tables += [described_table(orjson.loads(table.record("")[1])) for table in found]
    return tables


def _known_tables(project: Project, source: Source) -> list[TableSchema] | None:
    """The tables of a database that is a file; None where a server must be asked."""
    from tailrace.sources.describe import describe

    if getattr(source, "kind", "") != "sqlite":
        return None
    try:
        with contextlib.chdir(project.directory):
            return describe(source)
    except TailraceError:
        return None  # the file is not there yet; --connect says why


def _absent_columns(
    source: Source, place: str, tables: Sequence[TableSchema]
) -> SourceDeclarationError | None:
    """A column that `columns=` or `mask=` names and the table does not have: a mistyped one
    would let through what it was meant to hide."""
    for table in tables:
        known = [column.name for column in table.columns]
        picked = for_table(source.columns, table.schema, table.table)
        hidden = for_table(source.mask, table.schema, table.table)
        named: list[tuple[str, Iterable[str]]] = [
            ("columns", picked if isinstance(picked, Sequence) else ()),
            # One that columns= leaves out needs no mask, and is no column of the topic.
            ("mask", hidden if isinstance(hidden, Mapping) and picked is None else ()),
        ]
        for parameter, columns in named:
            for column in columns:
                if column not in known:
                    near = difflib.get_close_matches(column, known, n=1)
                    return SourceDeclarationError(
                        f'{parameter}= of source "{source.name}" names the column {column!r}, '
                        f"which table {table.table!r} does not have",
                        detail=f"declared at {place}",
                        hint=f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}",
                    )
    return None


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
    for one in check(project, connections=False):
        if one.error is not None:
            raise one.error
