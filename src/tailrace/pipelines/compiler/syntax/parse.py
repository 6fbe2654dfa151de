"""SQL text → sqlglot's tree, and errors that point into the text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import zip_longest
from typing import Any, ClassVar, TypeVar

import sqlglot
from sqlglot import Parser, Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from tailrace.pipelines.compiler.syntax.arities import wrong_arguments
from tailrace.pipelines.compiler.syntax.match_recognize import (
    MatchParser,
    Recognized,
    mark_clauses,
    pattern_ranges,
)
from tailrace.pipelines.compiler.syntax.spark_words import KEYWORDS, PARSED_FUNCTIONS
from tailrace.pipelines.errors import SqlSyntaxError, ViewError


def _placed(
    parsed: Callable[[Parser, Token], exp.Expr],
) -> Callable[[Parser, Token], exp.Expr]:
    """The parser of a constant that keeps its place, as that of texts does."""
    return lambda parser, token: parsed(parser, token).update_positions(token)


_SIZED = (["VARCHAR"], ["CHAR"], ["CHARACTER"])


def _of_spark(text: str) -> bool:
    """Whether words, or signs, are of Spark's SQL."""
    return all(word in KEYWORDS or not word[:1].isalpha() for word in text.upper().split())


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


class OnlySpark(AnsiSpark):
    """Spark's SQL and nothing of other dialects: their words are names, their forms are errors."""

    class Tokenizer(AnsiSpark.Tokenizer):
        KEYWORDS = {
            word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if _of_spark(word)
        }

    def tokenize(self, sql: str, *how: object, **more: object) -> list[Token]:
        return mark_clauses(super().tokenize(sql, *how, **more))  # type: ignore[arg-type]

    class Parser(MatchParser, AnsiSpark.Parser):
        MODIFIABLES = (*AnsiSpark.Parser.MODIFIABLES, Recognized)
        # MATCH_RECOGNIZE belongs to a relation, not to the query around it.
        QUERY_MODIFIER_PARSERS = {
            kind: parsed
            for kind, parsed in AnsiSpark.Parser.QUERY_MODIFIER_PARSERS.items()
            if kind != TokenType.MATCH_RECOGNIZE
        }

        def _match_text_seq(self, *texts: str, advance: bool = True) -> bool:
            return all(map(_of_spark, texts)) and bool(
                super()._match_text_seq(*texts, advance=advance)
            )

        def _match_texts(self, texts: Collection[str], advance: bool = True) -> bool:
            known = [text for text in texts if _of_spark(text)]
            return bool(super()._match_texts(known, advance=advance))

        def _match_pair(self, first: TokenType, second: TokenType, advance: bool = True) -> bool:
            """Behind `FILTER (` stands WHERE."""
            matched = bool(super()._match_pair(first, second, advance))
            if matched and advance and first == TokenType.FILTER:
                self._needed(self._match(TokenType.WHERE, advance=False), "WHERE")
            return matched

        def _needed(self, found: object, what: str) -> None:
            """An error at the next word unless it was found. (`raise_error` is the parser's.)"""
            if not found:
                self.raise_error(f"Expecting {what}")

        def _parse_id_var(
            self, any_token: bool = True, tokens: Collection[TokenType] | None = None
        ) -> exp.Expr | None:
            """A name is no text: not `AS 'x'`."""
            if self._match(TokenType.STRING, advance=False):
                return None
            named: exp.Expr | None = super()._parse_id_var(any_token, tokens)
            return named

        def _parse_string_as_identifier(self) -> exp.Identifier | None:
            return None

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            """`xs[0]`; there is no `[1, 2]`."""
            begins = self._match(TokenType.L_BRACKET, advance=False)
            self._needed(this is not None or not begins, "array(…)")
            taken: exp.Expr | None = super()._parse_bracket(this)
            return taken

        def validate_expression(self, expression: Any, args: Any = None) -> Any:
            """A call with the arguments that stand in it; the base class judges what became
            of them."""
            if args is not None and (wrong := wrong_arguments(expression, args)):
                self.raise_error(wrong)
            return super().validate_expression(expression, args)

        ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Expr]]] = {}

        def _parse_using_identifiers(self) -> list[exp.Expr]:
            names: list[exp.Expr] = self._parse_wrapped_id_vars()
            return names

        def _parse_table_parts(self, *how: object, **more: object) -> exp.Expr | None:
            """A table's name, without the star that other dialects take behind it."""
            table: exp.Expr | None = super()._parse_table_parts(*how, **more)
            self._needed(not self._match(TokenType.STAR, advance=False), "no * here")
            return table

        def _parse_star_op(self, *keywords: str) -> list[exp.Expr] | None:
            """`* EXCEPT (…)`, which others call EXCLUDE."""
            named = [word for word in keywords if word != "EXCLUDE"]
            listed: list[exp.Expr] | None = super()._parse_star_op(*named)
            return listed

        def _parse_limit(self, *how: object, **more: object) -> exp.Expr | None:
            """LIMIT n, without `LIMIT offset, n`."""
            limit: exp.Expr | None = super()._parse_limit(*how, **more)
            several = isinstance(limit, exp.Limit) and limit.args.get("offset")
            self._needed(not several, "LIMIT n OFFSET m")
            return limit

        def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr | None:
            """OFFSET n, without ROWS."""
            offset: exp.Expr | None = super()._parse_offset(this)
            rows = offset is not this and self._prev.text.upper() in ("ROW", "ROWS")
            self._needed(not rows, "OFFSET n without ROWS")
            return offset

        def _parse_extract(self, *how: object, **more: object) -> exp.Expr:
            """EXTRACT(unit FROM time), without a comma."""
            begin = self._index
            part: exp.Expr = super()._parse_extract(*how, **more)
            words = self._tokens[begin : self._index]
            self._needed(any(w.token_type == TokenType.FROM for w in words), "FROM")
            return part

        def _parse_substring(self, *how: object, **more: object) -> exp.Expr:
            """SUBSTRING(text FROM place [FOR count]), or with commas."""
            begin = self._index
            part: exp.Expr = super()._parse_substring(*how, **more)
            words = {word.token_type for word in self._tokens[begin : self._index]}
            self._needed(TokenType.FROM in words or TokenType.FOR not in words, "FROM")
            return part

        def _parse_types(self, *how: object, **more: object) -> exp.Expr | None:
            """A type, without `BIGINT[]` and TIMESTAMP WITH TIME ZONE."""
            begin = self._index
            kind: exp.Expr | None = super()._parse_types(*how, **more)
            words = [token.text.upper() for token in self._tokens[begin : self._index]]
            self._needed(not isinstance(kind, exp.Cast), "CAST(… AS …)")
            if isinstance(kind, exp.DataType):
                self._needed("[" not in words, "ARRAY<…>")
                self._needed(words not in _SIZED, "a length, or STRING,")
                zoned = words[-2:] == ["TIME", "ZONE"] and words[-3] == "WITH"
                self._needed(not zoned, "TIMESTAMP, which has a time zone")
                kind.meta["literal"] = self._match(TokenType.STRING, advance=False)
            return kind


def _keep_words() -> None:
    """Have the parsers leave calls of scalar functions as they are written, with Spark's names
    and arguments in Spark's order: their own forms drop arguments and rewrite patterns."""
    from tailrace.pipelines.compiler.expressions.calls import known_functions

    typed = {"array", "struct", "named_struct", "if", "ceil", "floor", "trim", "substring", "position",
             "extract", "overlay", "initcap", "chr", "char", "cast"}  # fmt: skip
    plain = {name.upper() for name in known_functions() if name not in typed} | {"PERCENTILE"}
    for table in ("FUNCTIONS", "FUNCTION_PARSERS", "NO_PAREN_FUNCTION_PARSERS"):
        parsed = {k: v for k, v in getattr(AnsiSpark.Parser, table).items() if str(k) not in plain}
        setattr(AnsiSpark.Parser, table, parsed)
        kept = {name: made for name, made in parsed.items() if str(name) in PARSED_FUNCTIONS}
        setattr(OnlySpark.Parser, table, kept)


def is_unsigned(shift: exp.Expr) -> bool:
    """Whether a shift to the right was written `>>>`."""
    return bool(shift.expression.meta.get("unsigned"))


@lru_cache(1)
def dialect() -> type[OnlySpark]:
    """The dialect, made once."""
    _keep_words()
    return OnlySpark


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
    _refuse_by_words(sql, view)
    found = [statement for statement in statements if statement is not None]
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise SqlSyntaxError(
            f"the SQL of view {view!r} is not one query" if found else f"view {view!r} has no SQL",
            detail=place(sql, found[-1]) if found else "",
            hint="a view is a single SELECT",
        )
    query = found[0]
    for select in query.find_all(exp.Select):
        hint = select.args.get("hint")
        if hint is not None and all(isinstance(part, _HINTS) for part in hint.expressions):
            select.set("hint", None)  # it says how to compute, never what; its names are no tables
    return query


_HINTS = (exp.Anonymous, exp.Column, exp.JoinHint, exp.Func, exp.Var)


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


def _refuse_by_words(sql: str, view: str) -> None:
    """What the parser lets pass and leaves no trace of, and Spark does not: `a,, b`, `a, FROM`,
    a query without SELECT, hints behind anything else, `{fn …}`, and 0x1F."""
    tokens = dialect()().tokenize(sql)
    patterns = pattern_ranges(tokens)
    for at, (token, following) in enumerate(zip_longest(tokens, tokens[1:])):
        if any(at in pattern for pattern in patterns):
            continue
        said = _wrong_words(sql, token, following)
        if said:
            raise _does_not_parse(sql, view, (following or token).start, *said)
    for at, token in enumerate(tokens):
        begins = at == 0 or tokens[at - 1].token_type in (TokenType.L_PAREN, TokenType.UNION)
        if token.token_type == TokenType.FROM and begins and not _selects(tokens[at:]):
            raise _does_not_parse(sql, view, token.start, "a query needs SELECT", "SELECT … FROM …")
        if [word.token_type for word in tokens[at : at + 3]] in _ALL_AS_COLUMN:
            raise _does_not_parse(
                sql, view, tokens[at + 1].start, "ALL is no column", "write `all`"
            )


def _wrong_words(sql: str, token: Token, following: Token | None) -> tuple[str, str] | None:
    kind, behind = token.token_type, following.token_type if following else None
    if kind == TokenType.COMMA and (behind is None or behind in _AFTER_COMMA):
        return "nothing stands behind a comma", "take the comma out, or write what is missing"
    if kind == TokenType.SELECT and behind in _NO_ITEM:
        return "nothing is selected", "write what is missing"
    if behind == TokenType.HINT and kind != TokenType.SELECT:
        return "a hint stands behind SELECT", "take it out"
    if behind == TokenType.PIPE_GT:
        return "|> is not kept incrementally", "write the query as SELECT … FROM …"
    if behind == TokenType.L_BRACE:
        return "this was not expected here", "Spark's SQL has no braces"
    if behind == TokenType.HEX_STRING and following and sql[following.start] == "0":
        return "this is no number", "write X'1F' for bytes, conv('1F', 16, 10) for a number"
    return _out_of_range(sql, token) if kind == TokenType.NUMBER else None


_LARGEST = {"FLOAT": Decimal("3.4028234663852886e38"), "DOUBLE": Decimal(sys.float_info.max)}


def _out_of_range(sql: str, number: Token) -> tuple[str, str] | None:
    """What Spark says of 1e39F and 1e309; CAST('1e309' AS DOUBLE) is Infinity there."""
    text = number.text.lower()
    behind = sql[number.start + len(text) : number.end + 1].upper()  # its suffix
    kind = {"F": "FLOAT", "D": "DOUBLE"}.get(behind)
    if kind is None and "e" in text and not behind:
        kind = "DOUBLE"
    try:
        if kind is not None and Decimal(text) > _LARGEST[kind]:
            return f"{number.text} is out of the range of {kind}", "DOUBLE 'Infinity' is infinite"
    except InvalidOperation:
        pass  # a name that begins with digits
    return None


def _selects(tokens: list[Token]) -> bool:
    """Whether SELECT comes before the query ends that begins with these."""
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0 or (not depth and token.token_type in _SETS):
            return False
        if not depth and token.token_type == TokenType.SELECT:
            return True
    return False


_ALL_AS_COLUMN = [
    [before, TokenType.ALL, TokenType.COMMA] for before in (TokenType.SELECT, TokenType.L_PAREN)
]
_SETS = {TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT}
_NO_ITEM = {None, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE, *_SETS}


def _does_not_parse(sql: str, view: str, at: int, said: str, hint: str) -> SqlSyntaxError:
    line = sql.count("\n", 0, at) + 1
    column = at - (sql.rfind("\n", 0, at) + 1) + 1
    return SqlSyntaxError(
        f"the SQL of view {view!r} does not parse",
        detail=f"{said}\n{point(sql, line, column)}",
        hint=hint,
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
