"""SQL text → sqlglot's tree, and errors that point into the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import zip_longest
from typing import TypeVar

import sqlglot
from sqlglot import Parser, Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from tailrace.pipelines.errors import SqlSyntaxError, ViewError


def _placed(
    parsed: Callable[[Parser, Token], exp.Expr],
) -> Callable[[Parser, Token], exp.Expr]:
    """The parser of a constant that keeps its place, as that of texts does."""
    return lambda parser, token: parsed(parser, token).update_positions(token)


class AnsiSpark(Spark):
    """Spark 4: CAST fails on what does not fit, only TRY_CAST gives NULL; v:path; 'it''s'."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # 'it''s' is one text

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
        STRICT_CAST = True
        _unsigned = False

        def _match_pair(self, first: TokenType, second: TokenType, advance: bool = True) -> bool:
            """`>>>` begins like `>>`; what is shifted by is marked (see `is_unsigned`)."""
            matched = bool(super()._match_pair(first, second, advance))
            if matched and advance and first == second == TokenType.GT:
                self._unsigned = bool(self._match(TokenType.GT))
            return matched

        def _parse_term(self, *how: object, **more: object) -> exp.Expr | None:
            unsigned, self._unsigned = self._unsigned, False
            term: exp.Expr | None = super()._parse_term(*how, **more)
            if unsigned and term is not None:
                term.meta["unsigned"] = True
            return term

        def _parse_plus(self) -> exp.Expr | None:
            """`+x` is positive(x), of numbers alone; a number is one without it."""
            operand: exp.Expr | None = self._parse_unary()
            if operand is None or operand.is_number:
                return operand
            return exp.Anonymous(this="positive", expressions=[operand])

        COLON_IS_VARIANT_EXTRACT = True
        PRIMARY_PARSERS = {
            **Spark.Parser.PRIMARY_PARSERS,
            **{
                kind: _placed(Spark.Parser.PRIMARY_PARSERS[kind])
                for kind in (TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.NUMBER)
            },
        }
        UNARY_PARSERS = {
            **Spark.Parser.UNARY_PARSERS,
            TokenType.PLUS: lambda self: self._parse_plus(),
        }

    class Generator(Spark.Generator):  # type: ignore[misc,valid-type]
        def datatype_sql(self, expression: exp.DataType) -> str:
            """TIME(3) as it is; the dialect knows no such type."""
            if expression.this != exp.DType.TIME:
                return str(super().datatype_sql(expression))
            digits = "".join(f"({part.name})" for part in expression.expressions)
            return f"TIME{digits}"


def _keep_words() -> None:
    """Have the parser leave calls of scalar functions as they are written, with Spark's names
    and arguments in Spark's order: its own forms drop arguments and rewrite patterns."""
    from tailrace.pipelines.incremental.sql.calls import known_functions

    parser = AnsiSpark.Parser
    typed = {"array", "struct", "named_struct", "if", "ceil", "floor", "trim", "substring", "position",
             "extract", "overlay", "initcap", "chr", "char", "cast"}  # fmt: skip
    plain = {name.upper() for name in known_functions() if name not in typed} | {"PERCENTILE"}
    for table in ("FUNCTIONS", "FUNCTION_PARSERS", "NO_PAREN_FUNCTION_PARSERS"):
        kept = {k: v for k, v in getattr(parser, table).items() if str(k) not in plain}
        setattr(parser, table, kept)


def is_unsigned(shift: exp.Expr) -> bool:
    """Whether a shift to the right was written `>>>`."""
    return bool(shift.expression.meta.get("unsigned"))


@lru_cache(1)
def dialect() -> type[AnsiSpark]:
    """The dialect, made once."""
    _keep_words()
    return AnsiSpark


Problem = TypeVar("Problem", bound=ViewError)


def parse(sql: str, view: str) -> exp.Query:
    """The query, in Spark's dialect."""
    try:
        statements = sqlglot.parse(_without_window_calls(sql), dialect=dialect())
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = int(first.get("line") or 1), int(first.get("col") or 1)
        marked = str(first.get("highlight") or "")
        width = len(marked) if 0 < len(marked) <= column and "\n" not in marked else 1
        said = str(first.get("description") or error).rstrip(".")
        raise SqlSyntaxError(
            f"the SQL of view {view!r} does not parse",
            # The parser names the last letter of what it did not expect.
            detail=f"{_plainly(said)}\n{point(sql, line, column - width + 1, width)}",
            hint=_HINT,
        ) from error
    except TokenError as error:
        raise SqlSyntaxError(
            f"the SQL of view {view!r} does not parse",
            detail=f"a text or a comment is never closed\n{_open_quote(sql)}",
            hint=_HINT,
        ) from error
    _refuse_empty_items(sql, view)
    found = [statement for statement in statements if statement is not None]
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise SqlSyntaxError(
            f"the SQL of view {view!r} is not one query" if found else f"view {view!r} has no SQL",
            detail=place(sql, found[-1]) if found else "",
            hint="a view is a single SELECT",
        )
    return found[0]


_HINT = "correct it at the mark or before it; the SQL is Spark's: docs/reference/view-sql.md"


def _plainly(said: str) -> str:
    """What the parser says, in our words where we know them."""
    if said.startswith("Expecting "):
        return f"{said.removeprefix('Expecting ')} is missing here"
    if "Unexpected token" in said:
        return "this was not expected here"
    return said[:1].lower() + said[1:]


def _open_quote(sql: str) -> str:
    """Where a text that is never closed begins."""
    rest = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", lambda m: "." * len(m[0]), sql)
    found = re.search(r"['\"`]", rest)
    at = found.start() if found else 0
    return point(sql, sql.count("\n", 0, at) + 1, at - (sql.rfind("\n", 0, at) + 1) + 1)


_AFTER_COMMA = {TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE,
                TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING, TokenType.LIMIT}  # fmt: skip


def _refuse_empty_items(sql: str, view: str) -> None:
    """`a,, b` and `a, FROM`: the parser lets them pass, Spark does not."""
    tokens = dialect()().tokenize(sql)
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.token_type == TokenType.COMMA and (
            following is None or following.token_type in _AFTER_COMMA
        ):
            at = (following or token).start
            line = sql.count("\n", 0, at) + 1
            column = at - (sql.rfind("\n", 0, at) + 1) + 1
            raise SqlSyntaxError(
                f"the SQL of view {view!r} does not parse",
                detail=f"nothing stands behind a comma\n{point(sql, line, column)}",
                hint="take the comma out, or write what is missing",
            )


_WINDOW_CALL = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\bwindow(?=\s*\()", re.I)


def _without_window_calls(sql: str) -> str:
    """`window(…)` as `tumble(…)`, of the same length: behind GROUP BY the parser takes the
    word for the WINDOW clause."""
    return _WINDOW_CALL.sub(lambda m: "tumble" if m[0].lower() == "window" else m[0], sql)


def point(sql: str, line: int, column: int, width: int = 1) -> str:
    """The line of the text with a mark under the place (column counts from 1)."""
    lines = sql.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1]
    mark = " " * max(0, column - 1) + "^" * max(1, width)
    prefix = f"line {line}: "
    return f"{prefix}{shown}\n{' ' * len(prefix)}{mark}"


def line_pointed_at(detail: str) -> int | None:
    """The line of the SQL that an error's detail shows (see `point`)."""
    found = re.search(r"^line (\d+): ", detail, re.M)
    return int(found[1]) if found else None


def place(sql: str, node: exp.Expr) -> str:
    """Where a node stands in the text; empty when the parser did not keep it."""
    spans = [n.meta for n in node.walk() if "start" in n.meta]
    if not spans:
        parent = node.parent
        while parent is not None and "start" not in parent.meta:
            parent = parent.parent
        if parent is None:
            return ""
        spans = [parent.meta]
    start = min(span["start"] for span in spans)
    end = max(span["end"] for span in spans)
    before = sql[:start]
    line = before.count("\n") + 1
    column = start - (before.rfind("\n") + 1) + 1
    end_of_line = sql.find("\n", start)
    if end_of_line != -1:
        end = min(end, end_of_line - 1)
    return point(sql, line, column, end - start + 1)
