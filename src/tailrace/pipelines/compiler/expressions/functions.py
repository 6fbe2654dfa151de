"""Calls of the project's own functions: which one a name means, and what it takes and gives."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from tailrace.pipelines.compiler.expressions.spark_calls import by_spark
from tailrace.pipelines.declare.functions import Function, JavaClass
from tailrace.pipelines.engine.code import digest
from tailrace.pipelines.engine.expression import PYTHON, Call, Expression, Literal
from tailrace.pipelines.engine.user_calls import remember
from tailrace.pipelines.errors import DeclarationError
from tailrace.pipelines.spark.catalyst.functions import content_of, remember_home
from tailrace.pipelines.values import types as value_types
from tailrace.pipelines.values.function_references import JavaFunction, PythonFunction

if TYPE_CHECKING:
    from tailrace.pipelines.compiler.binding.scope import Context
    from tailrace.pipelines.compiler.expressions.scalar import ExpressionBinder


FunctionLike: TypeAlias = Function | JavaClass


def reference_of(function: FunctionLike) -> PythonFunction | JavaFunction:
    """Which function it is, for graphs and workers; DeclarationError where a jar is missing."""
    if isinstance(function, JavaClass):
        return _of_jars(function)
    body = function.body
    assert isinstance(body, types.FunctionType)
    found = PythonFunction(
        _digest(body), function.form, function.version, function.name,
        body.__module__, body.__qualname__,
    )  # fmt: skip
    remember(found, body)
    return found


def _of_jars(function: JavaClass) -> JavaFunction:
    remember_home(function.home)
    try:
        contents = tuple(content_of(function.home / jar) for jar in function.jars)
    except OSError as problem:
        raise DeclarationError(
            f"a jar of function {function.name!r} cannot be read: {problem.strerror}",
            detail=f"{problem.filename}; declared at {function.declared_at}",
            hint='name it from the project\'s directory: jars="lib/checks.jar"',
        ) from problem
    return JavaFunction(
        function.class_name,
        function.returns,
        contents,
        function.version,
        function.name,
        function.jars,
    )


@functools.lru_cache(maxsize=1024)
def _digest(body: types.FunctionType) -> str:
    return digest(body)


def refuse_names_of_sparks(function: FunctionLike) -> None:
    """Refuse the name of one of the functions that the compiler itself knows."""
    from tailrace.pipelines.compiler.binding.aggregates import KNOWN
    from tailrace.pipelines.compiler.expressions.calls import known_functions

    if function.name.lower() in KNOWN or function.name.lower() in known_functions():
        raise DeclarationError(
            f"{function.name} is a function of Spark's",
            detail=f"declared at {function.declared_at}",
            hint="give yours another name",
        )


def own_function(context: Context, node: exp.Expr) -> FunctionLike | None:
    """The project's function that a call names."""
    if not context.functions or not isinstance(node, exp.Func):
        return None
    name = node.name if isinstance(node, exp.Anonymous) else node.meta.get("name", node.sql_name())
    return context.functions.get(str(name).lower())


def bind_own(binder: ExpressionBinder, function: FunctionLike, node: exp.Expr) -> Expression:
    """A call of it."""
    context = binder.context
    raw = _arguments(node)
    named = next((part for part in raw if isinstance(part, exp.Kwarg | exp.Star)), None)
    if named is not None:
        raise context.type_error(f"{function.name} takes its arguments in their order", named)
    given = [binder.bind(part) for part in raw]
    _check_count(context, function, len(given), node)
    if function.takes is not None:
        wanted = [value_types.parse_type(text) for text in function.takes]
        given = [
            binder.coerce(value, kind, part)
            for value, kind, part in zip(given, wanted, raw, strict=True)
        ]
    reference = reference_of(function)
    which = Literal(reference, value_types.NULL)
    if isinstance(reference, JavaFunction):
        places = ", ".join(f"{{{place + 1}}}" for place in range(len(given)))
        return by_spark(binder, f"{{0}}({places})", [which, *given], node)
    for value, part in zip(given, raw, strict=True):
        context.held(value.type, part)
        if value_types.has_variant(value.type):
            raise context.type_error(
                f"{function.name} cannot take a {value_types.ddl(value.type)}", part,
                "give it the text: to_json(…), or parts of it: variant_get(…)",
            )  # fmt: skip
    return Call(PYTHON, (which, *given), value_types.parse_type(function.returns))


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for key in node.arg_types:
        value = node.args.get(key)
        found += [
            part
            for part in (value if isinstance(value, list) else [value])
            if isinstance(part, exp.Expr)
        ]
    return found


def _check_count(context: Context, function: FunctionLike, given: int, node: exp.Expr) -> None:
    if function.counts is None:
        return  # Spark looks
    least, most = function.counts
    if given >= least and (most is None or given <= most):
        return
    count = (
        f"{least}"
        if least == most
        else f"{least} or more"
        if most is None
        else f"{least} to {most}"
    )
    noun = "argument" if count == "1" else "arguments"
    raise context.type_error(
        f"{function.name} takes {count} {noun}, not {given}", node, "see its declaration"
    )
