"""Functions that stand guard: AES, assert_true, raise_error.

aes_encrypt draws a vector where none is given, another each time: it needs one here, or ECB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental import types
from tailrace.pipelines.incremental.expression import Call, Expression, Literal
from tailrace.pipelines.incremental.library import guarded
from tailrace.pipelines.incremental.sql.typed_calls import wants

if TYPE_CHECKING:
    from tailrace.pipelines.incremental.sql.calls import Rule
    from tailrace.pipelines.incremental.sql.expressions import ExpressionBinder


def _aes(name: str) -> Rule:
    encrypts = name == "aes_encrypt"
    kinds = (types.BINARY, types.BINARY, types.STRING, types.STRING, types.BINARY, types.BINARY)

    def rule(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
        wants(binder, given, node, 2, 6 if encrypts else 5)
        if not guarded.available():
            raise binder.context.not_incremental(
                f"{name} needs the package cryptography", node, "pip install 'tailrace[ciphers]'"
            )
        for value in given[:2]:
            if value.type not in (types.BINARY, types.STRING, types.NULL):
                raise binder.context.type_error(
                    f"{name} takes bytes, not {types.ddl(value.type)}", node
                )
        bound = [binder.coerce(v, k, node) for v, k in zip(given, kinds, strict=False)]
        defaults = ("GCM", "DEFAULT")[max(len(bound) - 2, 0) :]
        bound += [Literal(text, types.STRING) for text in defaults]
        mode, padding = bound[2:4]
        if isinstance(mode, Literal) and isinstance(padding, Literal):
            try:
                if None not in (mode.value, padding.value):
                    guarded.checked_mode(str(mode.value), str(padding.value))
            except EvaluationError as error:
                if not name.startswith("try_"):
                    raise binder.context.type_error(error.message, node, error.hint) from error
        if encrypts and len(bound) < 5:
            bound.append(Literal(b"", types.BINARY))
            if not (isinstance(mode, Literal) and str(mode.value).upper() in ("ECB", "NONE")):
                raise binder.context.not_incremental(
                    "aes_encrypt draws another vector each time", node,
                    "give it one as the fifth argument, or take the mode ECB",
                )  # fmt: skip
        return Call(name, tuple(bound), types.BINARY)

    return rule


def _raise_error(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    wants(binder, given, node, 1, 1)
    return Call("raise_error", (binder.coerce(given[0], types.STRING, node),), types.NULL)


def _assert_true(binder: ExpressionBinder, given: list[Expression], node: exp.Expr) -> Expression:
    """NULL where the condition holds, else the error."""
    wants(binder, given, node, 1, 2)
    condition = given[0]
    if condition.type == types.NULL:
        condition = binder.coerce(condition, types.BOOLEAN, node)
    if condition.type != types.BOOLEAN:
        raise binder.context.type_error(
            f"{types.ddl(condition.type)} where a condition is needed", node
        )
    said = f"'{node.expressions[0].sql('spark')}' is not true!"
    message = given[1:] or [Literal(said, types.STRING)]
    failed = _raise_error(binder, message, node)
    return Call("case", (condition, Literal(None, types.NULL), failed), types.NULL)


GUARDED: dict[str, Rule] = {
    **{name: _aes(name) for name in ("aes_encrypt", "aes_decrypt", "try_aes_decrypt")},
    "raise_error": _raise_error,
    "assert_true": _assert_true,
}
