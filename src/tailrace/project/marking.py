"""How the marks of a project (`marks`) are made from what it declares.

A stream, a sink or an event topic that has code of the user's changes with that code: with the
file it is in, but for the views, topics, sources and other streams that the file declares, and
with every file of the project that this one imports, wherever in it. Comments and the layout of
a file are no change. What is imported by a computed name is not seen.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import hashlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.config import EnvironmentValue
from tailrace.facts.declare import Place as EventsPlace
from tailrace.masking import Secret
from tailrace.pipelines.declare import Pattern, Percolation, Place, Stream, Topic, View
from tailrace.project.marks import RESTARTING, Marks
from tailrace.sources.declare import MySQL, Postgres, SQLite

if TYPE_CHECKING:
    from tailrace.project.load import Project


def marks_of(project: Project) -> Marks:
    """The marks of everything that `project` declares."""
    code = _Code(project.directory)
    settings = project.settings
    return Marks(
        views={
            name: _mark(view.sql, view.policy, view.key) for name, view in project.views.items()
        },
        streams={name: _stream(stream, code) for name, stream in project.streams.items()},
        topics={name: _mark(_words(topic, code)) for name, topic in project.topics.items()},
        sources={name: _mark(_words(source, code)) for name, source in project.sources.items()},
        sinks={
            name: _mark(copy.subject, copy.topic, copy.key, _words(copy.declaration, code))
            for name, copy in project.sinks.items()
        },
        events={
            name: _mark(_words(declared, code), code.of_file(_file(declared.declared_at)))
            for name, declared in project.events.items()
        }
        | {
            f"reaction {name}": _mark(
                reaction.start, reaction.partitions, code.of_file(_file(reaction.declared_at))
            )
            for name, reaction in project.reactions.items()
        },
        waiting={
            f"pattern {name}": _mark(_words(pattern, code))
            for name, pattern in project.patterns.items()
        }
        | {
            f"percolation {name}": _mark(_words(declared, code))
            for name, declared in project.percolations.items()
        }
        | {f"edge {name}": _mark(_words(edge, code)) for name, edge in project.edges.items()}
        | {
            f"mirror {name}": _mark(
                repr(plan), settings.clusters.get(plan.source), settings.clusters.get(plan.target)
            )
            for name, plan in project.mirrors.items()
        },
        sections={
            **{name: _mark(_words(getattr(settings, name), code)) for name in RESTARTING},
            "tick": _mark(_words(settings.tick, code)),
            "topics": _mark(_words(settings.topics, code)),
        },
        indexes=_mark(*((name, view.indexes) for name, view in sorted(project.views.items()))),
    )


def stream_marks(project: Project) -> dict[str, str]:
    """The marks of the streams alone."""
    code = _Code(project.directory)
    return {name: _stream(stream, code) for name, stream in project.streams.items()}


def _stream(stream: Stream, code: _Code) -> str:
    fields = [
        (one.name, getattr(stream, one.name))
        for one in dataclasses.fields(stream)
        if one.name not in ("function", "declared_at", "to", "inputs")
    ]
    inputs = [
        (type(one).__name__, one.name) if isinstance(one, View | Stream) else _words(one, code)
        for one in stream.inputs
    ]
    return _mark(_words(fields, code), inputs, code.of_function(stream.function, stream.name))


def _mark(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _file(place: Any) -> Path | None:
    return None if place is None else Path(place.file)


def _words(value: Any, code: _Code, depth: int = 0) -> str:
    """A declaration as text that is the same in every process."""
    if depth > 20:
        return type(value).__qualname__
    deeper = depth + 1
    match value:
        case Place() | EventsPlace():
            return ""  # moving a declaration is no change
        case Secret():
            return _mark(value.reveal())
        case EnvironmentValue():
            return f"${value.name}={value.default!r}"
        case View() | Stream() | Pattern() | Percolation() if depth:
            return f"{type(value).__name__} {value.name}"
        case None | bool() | int() | float() | str() | bytes():
            return repr(value)
        case Mapping():
            items = sorted((repr(name), _words(item, code, deeper)) for name, item in value.items())
            return repr(items)
        case set() | frozenset():
            return repr(sorted(_words(item, code, deeper) for item in value))
        case list() | tuple():
            return repr([_words(item, code, deeper) for item in value])
        case type():
            return f"{value.__module__}.{value.__qualname__} {code.of_module(value.__module__)}"
    if dataclasses.is_dataclass(value):
        named = [
            (one.name, _words(getattr(value, one.name), code, deeper))
            for one in dataclasses.fields(value)
        ]
        return f"{type(value).__qualname__} {named}"
    if callable(value) and hasattr(value, "__code__"):
        return code.of_function(value, "")
    if isinstance(value, functools.partial):
        return _words((value.func, value.args, value.keywords), code, deeper)
    module = type(value).__module__
    if module.partition(".")[0] in sys.stdlib_module_names:
        shown = repr(value)  # a path, a number, a duration
        return type(value).__qualname__ if " at 0x" in shown else shown
    inside = getattr(value, "__dict__", None)
    return f"{module}.{type(value).__qualname__} {_words(inside, code, deeper)} {code.of_module(module)}"


class _Code:
    """Texts of the project's Python files, by what they import of each other."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._trees: dict[Path, ast.Module | None] = {}
        self._whole: dict[Path, str] = {}

    def of_function(self, function: Any, stream: str) -> str:
        """The mark of a function's file and what that imports; see above for what is left out."""
        module = getattr(function, "__module__", "") or ""
        path = self._path_of(module)
        named = f"{module}.{getattr(function, '__qualname__', '')}"
        if path is None:
            return named
        tree = self._tree(path)
        statements = [] if tree is None else tree.body
        known = vars(sys.modules[module])
        own = [
            ast.dump(_undeclared(one, known))
            for one in statements
            if not _declares_another(one, known, stream)
        ]
        return _mark(named, own, [self._text(one) for one in self._imported(path)])

    def of_module(self, module: str) -> str:
        """The mark of a module of the project's and what it imports; "" for any other."""
        return self.of_file(self._path_of(module))

    def of_file(self, path: Path | None) -> str:
        """The same of a file."""
        if path is None or not path.is_relative_to(self._home):
            return ""
        return _mark(self._text(path), [self._text(one) for one in self._imported(path)])

    def _path_of(self, module: str) -> Path | None:
        found = getattr(sys.modules.get(module), "__file__", None)
        path = None if found is None else Path(found)
        return path if path is not None and path.is_relative_to(self._home) else None

    def _tree(self, path: Path) -> ast.Module | None:
        if path not in self._trees:
            try:
                self._trees[path] = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                self._trees[path] = None
        return self._trees[path]

    def _text(self, path: Path) -> str:
        if path not in self._whole:
            tree = self._tree(path)
            self._whole[path] = f"{path} " + ("" if tree is None else _mark(ast.dump(tree)))
        return self._whole[path]

    def _imported(self, path: Path) -> list[Path]:
        """Every file of the project that a file imports, and those that these do."""
        found: set[Path] = set()
        waiting = [path]
        while waiting:
            tree = self._tree(waiting.pop())
            for one in () if tree is None else self._files(_imports(tree, self._package(path))):
                if one not in found and one != path:
                    found.add(one)
                    waiting.append(one)
        return sorted(found)

    def _package(self, path: Path) -> str:
        return ".".join(path.parent.relative_to(self._home).parts)

    def _files(self, modules: Iterable[str]) -> Iterable[Path]:
        for module in modules:
            place = self._home.joinpath(*module.split("."))
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                if path.is_file():
                    yield path


def _imports(tree: ast.Module, package: str) -> set[str]:
    """The names of modules that may be imported by a file, at any place in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found.update(name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parts = package.split(".") if package else []
                base = parts[: len(parts) - level + 1] if level else []
                whole = ".".join([*base, *([module] if module else [])])
                found.add(whole)
                found.update(f"{whole}.{name.name}" for name in names)
    found.discard("")
    # Importing a.b.c runs a and a.b too.
    return {".".join(name.split(".")[:end]) for name in found for end in range(1, 9)}


def _undeclared(statement: ast.stmt, known: Mapping[str, Any]) -> ast.stmt:
    """The function of a stream without `@tr.stream(…)`, which has its own mark."""
    if not isinstance(statement, ast.FunctionDef):
        return statement
    if not isinstance(known.get(statement.name), Stream):
        return statement
    left = copy.copy(statement)
    left.decorator_list = [one for one in statement.decorator_list if not _is_stream(one)]
    return left


def _is_stream(decorator: ast.expr) -> bool:
    match decorator:
        case ast.Call(func=ast.Attribute(attr="stream") | ast.Name(id="stream")):
            return True
    return False


def _declares_another(statement: ast.stmt, known: Mapping[str, Any], stream: str) -> bool:
    """Whether a statement of a file does nothing but declare something that has its own mark."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return isinstance(known.get(name), View | Topic | Postgres | SQLite | MySQL)
        case ast.FunctionDef(name=name):
            value = known.get(name)
            return isinstance(value, Stream) and value.name != stream
    return False
