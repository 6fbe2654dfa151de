"""A project's own functions in a session of Spark's, for batch queries that call them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tailrace.pipelines.compiler.expressions.functions import reference_of
from tailrace.pipelines.declare.functions import Function, JavaClass
from tailrace.pipelines.engine.user_calls import call
from tailrace.pipelines.spark.importable import VARIABLE, make_named_importable
from tailrace.pipelines.values.casts import cast_array
from tailrace.pipelines.values.function_references import PythonFunction
from tailrace.pipelines.values.types import parse_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jars_of(functions: Iterable[Function | JavaClass]) -> list[Path]:
    """The jars that functions are loaded from."""
    found = [one.home / jar for one in functions if isinstance(one, JavaClass) for jar in one.jars]
    return list(dict.fromkeys(found))


def register(spark: SparkSession, functions: Iterable[Function | JavaClass], home: Path) -> None:
    """Let queries of the session call the functions. Its jars must hold those of `jars_of`."""
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

    for one in functions:
        reference = reference_of(one)
        if isinstance(one, Function) and isinstance(reference, PythonFunction):
            made = arrow_udf(_columns(one, reference, home), one.returns)
            spark.udf.register(one.name, made)
        elif isinstance(one, JavaClass):
            spark.udf.registerJavaFunction(one.name, one.class_name, one.returns or None)


def _columns(declared: Function, function: PythonFunction, home: Path) -> Callable[..., Any]:
    """What Spark's worker calls: it has imported nothing of the project yet."""
    takes, returns = declared.takes, declared.returns

    def computed(*arrays: pa.Array) -> pa.Array:
        if os.environ.get(VARIABLE) != str(home):
            os.environ[VARIABLE] = str(home)
            make_named_importable()
        kinds = [one.type for one in arrays] if takes is None else map(parse_type, takes)
        given = [cast_array(one, kind) for one, kind in zip(arrays, kinds, strict=True)]
        return call(function, given, len(arrays[0]), parse_type(returns))

    return computed
