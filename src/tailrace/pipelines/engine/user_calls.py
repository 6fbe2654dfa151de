"""Calls of a project's own functions of Python, in the process that runs the operators.

A function is found by the name of its module, like everything of a project that Spark's workers run,
and its code must be the code that the view was compiled with: a worker that has another one refuses.

Values are what PySpark gives to such a function: NULL is None, a TIMESTAMP a datetime without a zone
in UTC, a struct a tuple with names, a map a dict. What it returns must fit its type exactly.
"""

from __future__ import annotations

import functools
import importlib
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tailrace.pipelines.engine.code import digest
from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.values.function_references import PythonFunction
from tailrace.pipelines.values.types import ddl

_SHOWN = 120  # characters of an argument in an error
_known: dict[tuple[str, str, str, int], Callable[..., Any]] = {}


class Struct(tuple[Any, ...]):
    """A struct as PySpark's `Row` shows it: a tuple whose parts have names."""

    _names: tuple[str, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Struct:
        made = cls(values.values())
        made._names = tuple(values)
        return made

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            return self[self._names.index(name)]
        raise AttributeError(name)

    def __getitem__(self, at: Any) -> Any:
        return super().__getitem__(self._names.index(at) if isinstance(at, str) else at)

    def asDict(self) -> dict[str, Any]:  # noqa: N802, as Spark calls it
        return dict(zip(self._names, self, strict=True))


def remember(function: PythonFunction, body: Callable[..., Any]) -> None:
    """Spare this process the search for a function that it has loaded."""
    _known[_place(function)] = body


def call(
    function: PythonFunction, arrays: Sequence[pa.Array], count: int, kind: pa.DataType
) -> pa.Array:
    """The values of a function, `count` of them."""
    if not count:
        return pa.array([], kind)
    body = _found(function)
    if function.form == "values":
        return _by_row(function, body, arrays, count, kind)
    return _by_column(function, body, arrays, count, kind)


def _found(function: PythonFunction) -> Callable[..., Any]:
    place = _place(function)
    if place in _known:
        return _known[place]
    where = f"{function.module}.{function.attribute}"
    try:
        module = importlib.import_module(function.module)
        _look_at(module)
        value: Any = module
        for part in function.attribute.split("."):
            value = getattr(value, part)
    except Exception as problem:
        raise EvaluationError(
            f"function {function.name} is missing in this process",
            detail=f"{where}: {problem}",
            hint="the project's files, and what they import, must be on every host of the cluster",
        ) from problem
    body = body_of(value)
    if not isinstance(body, types.FunctionType) or _digest(body) != function.code:
        raise EvaluationError(
            f"function {function.name} is another one in this process",
            detail=f"{where} in {getattr(sys.modules[function.module], '__file__', '')} is not what "
            "the view was compiled with",
            hint="every host of the cluster needs the same files; start the project again",
        )
    _known[place] = body
    return body


def _look_at(module: types.ModuleType) -> None:
    """Name the code of all functions of a module before one is called: a call may change objects
    that others use too, which were the same when the views were compiled."""
    for value in list(vars(module).values()):
        body = body_of(value)
        if body is not value:
            _digest(body)


@functools.lru_cache(maxsize=1024)
def _digest(body: types.FunctionType) -> str:
    return digest(body)


def _place(function: PythonFunction) -> tuple[str, str, str, int]:
    # The version, too: it is another one where something changed that the code does not show.
    return function.module, function.attribute, function.code, function.version


def body_of(value: Any) -> Any:
    """The plain function in a declared one: Tailrace's or PySpark's."""
    for name in ("body", "func"):
        inner = getattr(value, name, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return value


def _by_row(
    function: PythonFunction,
    body: Callable[..., Any],
    arrays: Sequence[pa.Array],
    count: int,
    kind: pa.DataType,
) -> pa.Array:
    columns = [python_values(array) for array in arrays]
    rows: Iterator[tuple[Any, ...]] = zip(*columns, strict=True) if columns else iter([()] * count)
    found = []
    given: tuple[Any, ...] = ()
    try:
        for given in rows:
            found.append(body(*given))
    except Exception as problem:
        raise _raised(function, problem, given) from problem
    try:
        return pa.array(found, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    return pa.concat_arrays(
        [
            pa.array([], kind),
            *(
                _fitting(function, value, given, kind)
                for value, given in zip(
                    found, zip(*columns, strict=True) if columns else [()] * count, strict=True
                )
            ),
        ]
    )


def _fitting(
    function: PythonFunction, value: Any, given: tuple[Any, ...], kind: pa.DataType
) -> pa.Array:
    try:
        return pa.array([_plain(value, kind)], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise EvaluationError(
            f"function {function.name} returned {_shown(value)}, which is no {ddl(kind)}",
            detail=f"its arguments were ({', '.join(map(_shown, given))}): {problem}",
            hint="declare the type that it returns, or return a value of that type",
        ) from problem


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value in the form that Arrow takes: structs by the names of their parts."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if isinstance(value, Mapping):
            parts = [value.get(field.name) for field in kind]
        else:
            parts = list(value)
            if len(parts) != len(kind):
                raise ValueError(f"{len(parts)} parts for {len(kind)} fields")
        return {f.name: _plain(part, f.type) for f, part in zip(kind, parts, strict=True)}
    if pa.types.is_map(kind):
        entries = value.items() if isinstance(value, Mapping) else value
        return [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in entries]
    if pa.types.is_list(kind):
        return [_plain(part, kind.value_type) for part in value]
    return value.item() if type(value).__module__ == "numpy" else value


def _by_column(
    function: PythonFunction,
    body: Callable[..., Any],
    arrays: Sequence[pa.Array],
    count: int,
    kind: pa.DataType,
) -> pa.Array:
    given: list[Any] = list(arrays)
    if function.form == "pandas":
        given = [array.to_pandas() for array in arrays]
    try:
        found = body(*given)
        if function.form == "pandas":
            found = pa.Array.from_pandas(found, type=kind)
    except Exception as problem:
        raise _raised(function, problem, None) from problem
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if not isinstance(found, pa.Array) or len(found) != count:
        what = f"{len(found)} values" if isinstance(found, pa.Array) else type(found).__name__
        raise EvaluationError(
            f"function {function.name} returned {what} for {count} rows",
            detail=f"{function.module}.{function.attribute} is declared to take columns",
            hint="a function of columns returns one as long as those it is given",
        )
    try:
        return found if found.type == kind else found.cast(kind)
    except pa.ArrowException as problem:
        raise EvaluationError(
            f"function {function.name} returned {found.type}, which is no {ddl(kind)}",
            detail=str(problem),
            hint="declare the type that it returns, or return a column of that type",
        ) from problem


def python_values(array: pa.Array) -> list[Any]:
    """The values of a column as PySpark gives them to a function."""
    change = _change(array.type)
    values = array.to_pylist()
    return values if change is None else [None if v is None else change(v) for v in values]


def _change(kind: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return lambda moment: moment.replace(tzinfo=None)
    if pa.types.is_struct(kind):
        inner = [(field.name, _change(field.type)) for field in kind]
        return lambda value: Struct.of({n: _changed(c, value[n]) for n, c in inner})
    if pa.types.is_map(kind):
        keys, items = _change(kind.key_type), _change(kind.item_type)
        return lambda value: {_changed(keys, k): _changed(items, v) for k, v in value}
    if pa.types.is_list(kind):
        part = _change(kind.value_type)
        return None if part is None else lambda value: [_changed(part, v) for v in value]
    return None


def _changed(change: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if change is None or value is None else change(value)


def _raised(
    function: PythonFunction, problem: Exception, given: tuple[Any, ...] | None
) -> EvaluationError:
    frames = traceback.extract_tb(problem.__traceback__)
    last = frames[-1] if frames else None
    lines = []
    if given is not None:
        lines.append(f"its arguments were ({', '.join(map(_shown, given))})")
    if last is not None:
        lines.append(f"{last.filename}:{last.lineno}: {last.line or ''}".rstrip(": "))
    words = str(problem) or "without a message"
    return EvaluationError(
        f"function {function.name} raised {type(problem).__name__}: {words}",
        detail="\n".join(lines),
        hint="correct the row, or let the function return None for it",
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
