"""Functions of a project's own that the SQL of its views may call.

    @tr.function("STRING")
    def domain(email):
        return None if email is None else email.rpartition("@")[2].lower()

    plausible = tr.java_function("plausible", "com.example.Plausible", jars="lib/checks.jar")

A function must give the same answer for the same arguments, always: what it once gave lies in the
state of views, and is taken back by asking again.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from tailrace.pipelines.declare import Place, caller
from tailrace.pipelines.declare.unsteady import unsteady
from tailrace.pipelines.errors import DeclarationError

FORMS = ("arrow", "pandas")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CLASS = re.compile(r"[\w$]+(\.[\w$]+)*")
# PySpark's kinds of functions (`PythonEvalType`), by how they are called.
_OF_PYSPARK = {100: "values", 101: "values", 200: "pandas", 250: "arrow"}


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of Python in the SQL of views. Calling it calls the Python function.

    `form` says what it is given: "values" of one row, or whole columns as "arrow" arrays or "pandas"
    series. `takes` are the types of its arguments in Spark's DDL, to which they are cast; without them
    it takes what it is given.
    """

    name: str
    returns: str
    body: Callable[..., Any] = field(repr=False)
    takes: tuple[str, ...] | None = None
    form: str = "values"
    version: int = 1
    declared_at: Place | None = field(default=None, compare=False)

    def __call__(self, *given: Any) -> Any:
        return self.body(*given)

    @property
    def counts(self) -> tuple[int, int | None]:
        """How many arguments it takes, at least and at most."""
        if self.takes is not None:
            return len(self.takes), len(self.takes)
        return _counts(self.body)


@dataclass(frozen=True, slots=True)
class JavaClass:
    """A function of Java or Scala in the SQL of views: a class that implements one of Spark's
    `org.apache.spark.sql.api.java.UDF0` to `UDF22`, or a function of Scala."""

    name: str
    class_name: str
    jars: tuple[str, ...]
    returns: str = ""
    version: int = 1
    declared_at: Place | None = field(default=None, compare=False)
    home: Path = field(default=Path(), compare=False)  # the project's directory

    takes: ClassVar[None] = None  # Spark looks
    counts: ClassVar[None] = None

    def of(self, home: Path) -> JavaClass:
        """The same in a project's directory."""
        return replace(self, home=home)


def function(
    returns: str,
    *,
    takes: str | Sequence[str] | None = None,
    name: str | None = None,
    vectorized: str | None = None,
    version: int = 1,
) -> Callable[[Callable[..., Any]], Function]:
    """Declare a function of Python that the SQL of views may call by its name.

    `returns`, and `takes` with one type for each argument, are types in Spark's DDL ("DECIMAL(10,2)").
    With `vectorized="arrow"` or `"pandas"` it is given whole columns and returns one; else the values
    of one row, None for NULL. Raise `version` where the function changes in a way that its code does
    not show, so that the views that use it are filled again.
    """
    place = caller()

    def declared(body: Callable[..., Any]) -> Function:
        return function_at(
            place,
            body,
            returns,
            takes=takes,
            name=name,
            form=vectorized or "values",
            version=version,
        )

    if callable(returns):
        raise _wrong(
            place, "a function of views needs the type that it returns", '@tr.function("STRING")'
        )
    if vectorized is not None and vectorized not in FORMS:
        raise _wrong(place, f"unknown form {vectorized!r}", f"one of {', '.join(FORMS)}")
    return declared


def function_at(
    place: Place,
    body: Callable[..., Any],
    returns: str,
    *,
    takes: str | Sequence[str] | None = None,
    name: str | None = None,
    form: str = "values",
    version: int = 1,
) -> Function:
    """`function`, for whoever declares one on a user's behalf."""
    if not isinstance(body, types.FunctionType) or "<" in body.__qualname__:
        shown = getattr(body, "__qualname__", repr(body))
        raise _wrong(
            place,
            f"{shown} cannot be a function of views",
            "workers find it by its name: define it with `def` at the top of a file",
        )
    called = body.__name__ if name is None else name
    _check_name(place, called)
    kinds = (takes,) if isinstance(takes, str) else None if takes is None else tuple(takes)
    for text in (returns, *(kinds or ())):
        _check_type(place, called, text)
    _check_version(place, called, version)
    least, most = _counts(body)
    if kinds is not None and (len(kinds) < least or (most is not None and len(kinds) > most)):
        raise _wrong(
            place,
            f"function {called!r} is declared with {len(kinds)} types of arguments and does not take as many",
            "one type for each argument",
        )
    found = unsteady(body)
    if found is not None:
        raise _wrong(
            place,
            f"function {called!r} gives another answer each time: it uses {found}",
            "a view asks again for rows that leave: give it what it needs as an argument, `now()` too",
        )
    return Function(called, returns, body, kinds, form, version, place)


def java_function(
    name: str,
    class_name: str,
    *,
    jars: str | Sequence[str],
    returns: str = "",
    version: int = 1,
) -> JavaClass:
    """Declare a function of Java or Scala that the SQL of views may call by its name.

    The class implements one of Spark's `org.apache.spark.sql.api.java.UDF0` to `UDF22`, as for
    `spark.udf.registerJavaFunction`, or a function of Scala. `jars` are named from the project's
    directory. `returns` is its type in Spark's DDL, which a Java class says itself.
    """
    place = caller()
    _check_name(place, name)
    if not _CLASS.fullmatch(str(class_name)):
        raise _wrong(place, f"{class_name!r} is no name of a class", '"com.example.Plausible"')
    paths = tuple([jars] if isinstance(jars, str) else jars)
    if not paths or not all(paths):
        raise _wrong(place, f"function {name!r} has no jar", 'jars="lib/checks.jar"')
    for path in paths:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise _wrong(
                place,
                f"the jar {path} of function {name!r} is not in the project's directory",
                "put it there: it travels with the project",
            )
    if returns:
        _check_type(place, name, returns)
    _check_version(place, name, version)
    return JavaClass(name, class_name, paths, returns, version, place)


def of_pyspark(value: Any, where: str) -> Function | None:
    """A function that PySpark's `udf`, `pandas_udf` or `arrow_udf` has made; None for anything else."""
    if not isinstance(value, types.FunctionType):
        return None
    kind, body = getattr(value, "evalType", None), getattr(value, "func", None)
    if not isinstance(kind, int) or body is None:
        return None
    file, _, line = where.rpartition(":")
    place = Place(file or where, int(line) if line.isdigit() else 1)
    name = getattr(getattr(value, "_unwrapped", None), "_name", body.__name__)
    made: Any = value
    if not made.deterministic:
        raise _wrong(
            place, f"function {name!r} is not deterministic", "views ask again for rows that leave"
        )
    if kind not in _OF_PYSPARK:
        raise _wrong(
            place, f"function {name!r} is of a kind that views cannot call",
            "functions of values, of pandas series or of Arrow arrays work",
        )  # fmt: skip
    return function_at(
        place, body, made.returnType.simpleString(), name=name, form=_OF_PYSPARK[kind]
    )


def _counts(body: Callable[..., Any]) -> tuple[int, int | None]:
    least = most = 0
    unbounded = False
    for one in inspect.signature(body).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            unbounded = True
        elif one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            most += 1
            least += one.default is one.empty
    return least, None if unbounded else most


def _check_name(place: Place, name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong(place, f"{name!r} cannot be the name of a function", "letters, digits and '_'")


def _check_type(place: Place, name: str, text: object) -> None:
    # Declarations are importable without Arrow.
    from tailrace.pipelines.values.topic_schema import KNOWN_TYPES
    from tailrace.pipelines.values.types import ddl, has_variant, is_time, parse_type

    hint = f'"STRING", "DECIMAL(10,2)"; types: {KNOWN_TYPES}'
    if not isinstance(text, str):
        raise _wrong(place, f"function {name!r}: {text!r} is no type", hint)
    try:
        kind = parse_type(text)
    except ValueError as reason:
        raise _wrong(place, f"function {name!r}: {reason}", hint) from reason
    if has_variant(kind) or is_time(kind):
        raise _wrong(
            place, f"function {name!r} cannot take or return {ddl(kind)}", "STRING crosses, for one"
        )


def _check_version(place: Place, name: str, version: object) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _wrong(
            place, f"the version of function {name!r} is {version!r}", "a whole number from 1"
        )


def _wrong(place: Place, message: str, hint: str) -> DeclarationError:
    return DeclarationError(message, detail=f"declared at {place}", hint=hint)
