"""Loading a project: its settings and everything its files declare.

Declarations are plain module values; importing the user's files has no other effect.
Every `pipelines/*.py` is imported as `pipelines.<name>`, so files may import each
other; every `pipelines/*.sql` is a view named like the file, whose leading comments may
say `-- key: a, b` and `-- policy: strict`.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import re
import traceback
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailrace import config
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.declare import Place as EventsPlace
from tailrace.facts.reactions import Reaction
from tailrace.facts.reservations import Reservations
from tailrace.mirroring.errors import MirrorDeclarationError
from tailrace.mirroring.plan import OWN_LOG, MirrorPlan, of_table, with_others
from tailrace.pipelines.declare import Pattern, Percolation, Place, Stream, Topic, View, view_at
from tailrace.pipelines.declare.functions import (
    Function,
    JavaClass,
    of_pyspark,
)
from tailrace.pipelines.spark.importable import FOLDER, make_importable
from tailrace.project.errors import NameClashError, UserFileError
from tailrace.project.found import settings_of
from tailrace.sinks.registry import Copy, copies_of
from tailrace.sources.declare import MySQL, Postgres, SQLite
from tailrace.sources.edges.declare import HTTP, Edge, Multicast, StatsD, Webhook, ZeroMQ

_COMMENT = re.compile(r"--\s*(key|policy)\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Project:
    """A loaded project; everything it declares, by name, in order of declaration."""

    settings: config.Settings
    sources: dict[str, Postgres | SQLite | MySQL]
    views: dict[str, View]
    streams: dict[str, Stream]
    topics: dict[str, Topic]
    sinks: dict[str, Copy]
    places: dict[str, str]
    events: dict[str, Events[Any]] = field(default_factory=dict)
    reservations: dict[str, Reservations] = field(default_factory=dict)
    """Their event topics are among `events` too."""
    reactions: dict[str, Reaction] = field(default_factory=dict)
    patterns: dict[str, Pattern] = field(default_factory=dict)
    percolations: dict[str, Percolation] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)
    mirrors: dict[str, MirrorPlan] = field(default_factory=dict)
    functions: dict[str, Function | JavaClass] = field(default_factory=dict)
    """By their names in small letters, as SQL compares them."""

    @property
    def name(self) -> str:
        return self.settings.project.name

    @property
    def matchers(self) -> list[Pattern | Percolation]:
        """What finds something in streams, by ticks of its own."""
        return [*self.patterns.values(), *self.percolations.values()]

    @property
    def directory(self) -> Path:
        return self.settings.directory

    def cluster(self, name: str, log: str) -> str:
        """The address of a cluster that a mirror names; `log` is that of the project's own."""
        found = self.settings.clusters.get(name)
        return log if found is None and name == OWN_LOG else self.settings.clusters[name]


def load(
    directory: str | Path = ".",
    *,
    flags: Mapping[str, object] | None = None,
    need_file: bool = True,
) -> Project:
    """The project in `directory`, or an error that points at the user's line."""
    settings = settings_of(directory, flags=flags, need_file=need_file)
    home = settings.directory
    collector = _Collector(home)
    for module in _modules(home):
        for name, value in vars(module).items():
            collector.take(value, _assigned_at(module, name, home))
    for path in sorted((home / FOLDER).glob("*.sql")):
        collector.take(sql_view(path), str(path.relative_to(home)))
    for name, table in settings.mirrors.items():
        where = str(settings.origins[f"mirrors.{name}"])
        try:
            collector.take(of_table(name, table), where)
        except MirrorDeclarationError as error:
            error.detail = "\n".join(filter(None, (error.detail, f"declared at {where}")))
            raise
    for declared in collector.events.values():
        declared.key = settings.events.key
    return Project(
        settings=settings,
        sources=collector.sources,
        views=collector.views,
        streams=collector.streams,
        topics=collector.topics,
        sinks={
            copy.name: copy
            for copy in copies_of(
                [
                    *collector.views.values(),
                    *collector.streams.values(),
                    *collector.patterns.values(),
                    *collector.percolations.values(),
                ]
            )
        },
        places=collector.places,
        events=collector.events,
        reservations=collector.reservations,
        reactions=collector.reactions,
        patterns=collector.patterns,
        percolations=collector.percolations,
        edges=collector.edges,
        mirrors={plan.name: plan for plan in with_others(collector.mirrors.values())},
        functions=collector.functions,
    )


def sql_view(path: Path) -> View:
    """The view that a `.sql` file declares."""
    text = path.read_text(encoding="utf-8")
    key: tuple[str, ...] | None = None
    policy = "auto"
    for line in text.splitlines():
        if not line.strip():
            continue
        if not line.lstrip().startswith("--"):
            break
        if match := _COMMENT.match(line.strip()):
            if match[1] == "key":
                key = tuple(part.strip() for part in match[2].split(",") if part.strip())
            else:
                policy = match[2].strip()
    return view_at(Place(str(path), 1), path.stem, text, key=key or None, policy=policy)


class _Collector:
    """Takes declarations in, once each, and refuses two of one name."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.sources: dict[str, Postgres | SQLite | MySQL] = {}
        self.views: dict[str, View] = {}
        self.streams: dict[str, Stream] = {}
        self.topics: dict[str, Topic] = {}
        self.events: dict[str, Events[Any]] = {}
        self.reservations: dict[str, Reservations] = {}
        self.reactions: dict[str, Reaction] = {}
        self.patterns: dict[str, Pattern] = {}
        self.percolations: dict[str, Percolation] = {}
        self.edges: dict[str, Edge] = {}
        self.mirrors: dict[str, MirrorPlan] = {}
        self.functions: dict[str, Function | JavaClass] = {}
        self.places: dict[str, str] = {}
        self._seen: set[int] = set()

    def take(self, value: object, where: str) -> None:
        if id(value) in self._seen:
            return
        match value:
            case Postgres() | SQLite() | MySQL():
                self._claim(value.name, value, where)
                self.sources[value.name] = value
            case Webhook() | HTTP() | StatsD() | Multicast() | ZeroMQ():
                if id(value) not in self._seen and value.name in self.edges:
                    raise NameClashError(
                        f"two edges are called {value.name!r}",
                        detail=where,
                        hint="rename one of them",
                    )
                self._seen.add(id(value))
                self.edges[value.name] = value
                # A topic of the edge's name may be declared beside it.
                self.places[f"edge {value.name}"] = where
            case MirrorPlan():
                if value.name in self.mirrors:
                    raise NameClashError(
                        f"two mirrors are called {value.name!r}",
                        detail=f"{self.places[f'mirror {value.name}']}\n{where}",
                        hint="rename one of them",
                    )
                self._seen.add(id(value))
                self.mirrors[value.name] = value
                self.places[f"mirror {value.name}"] = where
            case View():
                self._claim(value.name, value, self._place(value.declared_at, where))
                self.views[value.name] = value
            case Stream():
                self._claim(value.name, value, self._place(value.declared_at, where))
                self.streams[value.name] = value
                for named in (*value.inputs, *value.outputs):
                    if isinstance(named, Topic):
                        self.take(named, where)
            case Pattern():
                self._claim(value.name, value, self._place(value.declared_at, where))
                self.patterns[value.name] = value
                if isinstance(value.input, Topic):
                    self.take(value.input, where)
            case Percolation():
                self._claim(value.name, value, self._place(value.declared_at, where))
                self.percolations[value.name] = value
                for named in (value.input, value.queries):
                    if isinstance(named, Topic):
                        self.take(named, where)
            case Events():
                self._claim(value.name, value, self._place(value.declared_at, where))
                self.events[value.name] = value
            case Reservations():
                self._claim(value.name, value, self._place(value.declared_at, where))
                self.reservations[value.name] = value
                self.events[value.name] = value.events
            case Reaction():
                self._claim(value.name, value, self._place(value.declared_at, where))
                self.reactions[value.name] = value
            case Topic():
                known = self.topics.get(value.name)
                if known is None or known != value:  # a topic may be declared twice, alike
                    self._claim(value.name, value, self._place(value.declared_at, where))
                    self.topics[value.name] = value
            case Function() | JavaClass():
                self._seen.add(id(value))
                self._take_function(value, self._place(value.declared_at, where))
            case _:
                made = of_pyspark(value, where)
                if made is not None:
                    self._seen.add(id(value))
                    self._take_function(made, where)

    def _take_function(self, value: Function | JavaClass, where: str) -> None:
        from tailrace.pipelines.compiler.expressions.functions import refuse_names_of_sparks

        refuse_names_of_sparks(value)
        name = value.name.lower()
        if name in self.functions:
            raise NameClashError(
                f"two functions are called {value.name!r}",
                detail=f"{self.places[f'function {name}']}\n{where}",
                hint="rename one of them",
            )
        self.functions[name] = value.of(self.home) if isinstance(value, JavaClass) else value
        self.places[f"function {name}"] = where

    def _claim(self, name: str, value: object, where: str) -> None:
        if name in self.places:
            raise NameClashError(
                f"the name {name!r} is declared twice",
                detail=f"{self.places[name]}\n{where}",
                hint="rename one of them; names become topics",
            )
        self._seen.add(id(value))
        self.places[name] = where

    def _place(self, place: Place | EventsPlace | None, otherwise: str) -> str:
        if place is None:
            return otherwise
        path = Path(place.file)
        shown = path.relative_to(self.home) if path.is_relative_to(self.home) else path
        return f"{shown}:{place.line}"


def _modules(home: Path) -> Iterator[types.ModuleType]:
    folder = home / FOLDER
    files = sorted(path for path in folder.glob("*.py") if path.stem != "__init__")
    if not files:
        return
    make_importable(home)
    for path in files:
        try:
            yield importlib.import_module(f"{FOLDER}.{path.stem}")
        except TailraceError as error:
            _name_place(error, home)
            raise
        except (Exception, SystemExit) as error:
            raise _user_error(error, path, home) from error


def _assigned_at(module: types.ModuleType, name: str, home: Path) -> str:
    """Where a module gives `name` its value, for declarations that do not know it."""
    path = Path(module.__file__ or "")
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError):
        return f"{_shown(path, home)} ({name})"
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=targets):
                pass
            case ast.AnnAssign(target=target):
                targets = [target]
            case _:
                continue
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return f"{_shown(path, home)}:{statement.lineno}"
    return f"{_shown(path, home)} ({name})"


def _name_place(error: TailraceError, home: Path) -> None:
    """Add the user's line to an error of a declaration that does not name it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(home)]
    if not ours or ours[-1].filename in error.detail:
        return
    place = f"{_shown(Path(ours[-1].filename), home)}:{ours[-1].lineno}"
    if place not in error.detail:
        error.detail = "\n".join(filter(None, (error.detail, f"declared at {place}")))


def _user_error(error: BaseException, path: Path, home: Path) -> UserFileError:
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{_shown(Path(error.filename), home)}:{error.lineno}"
        line = (error.text or "").strip()
    else:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if Path(frame.filename).is_relative_to(home)]
        last = ours[-1] if ours else None
        place = f"{_shown(Path(last.filename), home)}:{last.lineno}" if last else path.name
        line = (last.line or "") if last else ""
    return UserFileError(
        f"{_shown(path, home)} cannot be imported",
        detail=f"{place}: {line}\n{type(error).__name__}: {error}",
        hint=_way_out(error, home),
    )


def _way_out(error: BaseException, home: Path) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if frames and "/pyspark/" in frames[-1].filename:
        return (
            "Spark does not run yet when a project's files are read: build columns inside the"
            " function, and give a UDF its type as an object, @udf(IntegerType())"
        )
    match error:
        case SyntaxError():
            return "correct the line; the mistake may be in the one before"
        case ModuleNotFoundError(name=str(name)) if (home / FOLDER / f"{name}.py").exists():
            return f"files of a project import each other from their folder: `from {FOLDER}.{name} import …`"
        case ModuleNotFoundError():
            return f"install {error.name!r} where tailrace runs, or correct the import"
        case TypeError():
            return _parameters(str(error))
        case AttributeError(name=str(name), obj=types.ModuleType() as module) if _is_ours(module):
            near = difflib.get_close_matches(name.lower(), {n.lower() for n in dir(module)}, 1)
            known = [n for n in dir(module) if n.lower() in near]
            return f"did you mean {known[0]!r}?" if known else _help(module.__name__)
        case SystemExit():
            return "a project's file only declares: it must not end the process"
        case _:
            return "importing a project's file must not need a running database or broker"


def _parameters(message: str) -> str:
    """Where the parameters of the function that `message` begins with are told."""
    called = message.partition("(")[0].removesuffix(".__init__").rpartition(".")[2]
    for module in (
        "tailrace",
        "tailrace.sources",
        "tailrace.sinks",
        "tailrace.pipelines.declare.windows",
    ):
        if called.isidentifier() and called in dir(importlib.import_module(module)):
            return _help(f"{module}.{called}")
    return _help("tailrace")


def _help(name: str) -> str:
    return f"see what it takes: `python -c 'import tailrace; help({name})'`"


def _is_ours(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] == "tailrace"


def _shown(path: Path, home: Path) -> str:
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
