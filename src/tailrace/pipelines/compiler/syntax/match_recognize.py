"""MATCH_RECOGNIZE (…), read by our own parser: sqlglot's drops offsets and clauses of it.

The result is one node for the relation that the clause makes, with every part of the clause in
its arguments, so that the passes after this one see all of it (see `understood`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, cast

from sqlglot import Parser, Token, TokenType, exp

from tailrace.pipelines.engine.patterns.grammar import PatternError, Tree, parse_pattern

NAVIGATIONS = ("FIRST", "LAST", "PREV", "NEXT")
_CALLS = (*NAVIGATIONS, "CLASSIFIER", "MATCH_NUMBER")
_SEMANTICS = ("RUNNING", "FINAL")


class Recognized(exp.Expression):
    """The relation that MATCH_RECOGNIZE makes of `this`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True, "alias": False, "joins": False, "partition_by": False, "order": False,
        "measures": False, "rows": False, "skip": False, "skip_to": False, "pattern": True,
        "within": False, "subsets": False, "definitions": False,
    }  # fmt: skip


class Framed(exp.Expression):
    """The row pattern of a window: `end` rows behind the current one are searched (None: all)."""

    arg_types: ClassVar[dict[str, bool]] = {
        "measures": False, "end": False, "seek": False, "skip": False, "skip_to": False,
        "pattern": True, "subsets": False, "definitions": False,
    }  # fmt: skip


class RowPattern(exp.Expression):
    """The text of a PATTERN; its tree is in `meta`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def tree(self) -> Tree:
        return cast(Tree, self.meta["tree"])


class Subset(exp.Expression):
    """SUBSET this = (expressions)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class Definition(exp.Expression):
    """DEFINE this AS expression."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class RowCall(exp.Expression):
    """FIRST, LAST, PREV, NEXT, CLASSIFIER and MATCH_NUMBER of a match."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}


class Semantics(exp.Expression):
    """RUNNING or FINAL before a call."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


def mark_clauses(tokens: list[Token]) -> list[Token]:
    """The tokens, with the word for a keyword where a clause begins."""
    marked = list(tokens)
    for at, (token, following) in enumerate(pairwise(tokens)):
        named = token.token_type == TokenType.VAR and token.text.upper() == "MATCH_RECOGNIZE"
        if named and following.token_type == TokenType.L_PAREN:
            marked[at] = Token(
                TokenType.MATCH_RECOGNIZE, token.text, token.line, token.col, token.start,
                token.end, token.comments,
            )  # fmt: skip
    return marked


def pattern_ranges(tokens: Sequence[Token]) -> list[range]:
    """Where the texts of patterns stand: what is no SQL."""
    found: list[range] = []
    inside = -1
    for at, token in enumerate(tokens):
        framed = _is_word(token, "FOLLOWING") or (
            at > 0 and _is_word(token, "ROW") and _is_word(tokens[at - 1], "CURRENT")
        )
        clause = token.token_type == TokenType.MATCH_RECOGNIZE
        if clause or framed or token.text.upper() == "MATCH_RECOGNIZE":
            inside = at
        begins = token.text.upper() == "PATTERN" and inside >= 0
        if begins and at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN:
            depth = 0
            for end in range(at + 1, len(tokens)):
                kind = tokens[end].token_type
                depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
                if not depth:
                    found.append(range(at + 1, end + 1))
                    inside = -1
                    break
    return found


def _is_word(token: Token, word: str) -> bool:
    quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return not quoted and token.text.upper() == word


_Parser: Any = Parser  # whose methods it has differ from dialect to dialect


class MatchParser(_Parser):  # type: ignore[misc]
    """What a parser of Spark's SQL is given to read the clause."""

    _recognizing = False
    _framed: tuple[exp.Expr, ...] = ()  # the row pattern of the window that is being read

    def _parse_table(self, *how: Any, **more: Any) -> exp.Expr | None:
        before, self._recognizing = self._recognizing, False
        try:
            table: exp.Expr | None = super()._parse_table(*how, **more)
            while table is not None and self._match(TokenType.MATCH_RECOGNIZE):
                table = self._parse_recognized(table)
                if more.get("joins"):
                    for join in self._parse_joins():
                        table.append("joins", join)
            return table
        finally:
            self._recognizing = before

    def _parse_select(self, *how: Any, **more: Any) -> exp.Expr | None:
        before, self._recognizing = self._recognizing, False
        try:
            selected: exp.Expr | None = super()._parse_select(*how, **more)
            return selected
        finally:
            self._recognizing = before

    def _parse_column_parts_fast(self) -> exp.Expr | None:
        if self._recognizing and self._curr.text.upper() in _SEMANTICS and self._begins_call():
            return None
        column: exp.Expr | None = super()._parse_column_parts_fast()
        return column

    def _parse_function(self, *how: Any, **more: Any) -> exp.Expr | None:
        token = self._curr
        if not self._recognizing or not token or token.token_type == TokenType.IDENTIFIER:
            call: exp.Expr | None = super()._parse_function(*how, **more)
            return call
        word, following = token.text.upper(), self._next
        opens = bool(following) and following.token_type == TokenType.L_PAREN
        if word in _SEMANTICS and following and not opens and self._begins_call():
            self._advance()
            inner = self._parse_function()
            if inner is None:
                self.raise_error(f"Expecting a call behind {word}")
            return Semantics(this=inner, kind=word).update_positions(token)
        if word in _CALLS and opens:
            self._advance(2)
            arguments = (
                []
                if self._match(TokenType.R_PAREN, advance=False)
                else self._parse_csv(self._parse_disjunction)
            )
            self._match_r_paren()
            return RowCall(this=word, expressions=arguments).update_positions(token)
        return cast("exp.Expr | None", super()._parse_function(*how, **more))

    def _begins_call(self) -> bool:
        """Whether a word and ( come behind the current one."""
        at = self._index + 2
        return bool(at < len(self._tokens) and self._tokens[at].token_type == TokenType.L_PAREN)

    # Windows ------------------------------------------------------------------------------

    def _parse_column(self) -> exp.Expr | None:
        column: exp.Expr | None = super()._parse_column()
        over = isinstance(column, exp.Column) and self._match(TokenType.OVER, advance=False)
        return self._parse_window(column) if over else column  # a measure

    def _parse_window(self, *how: Any, **more: Any) -> exp.Expr | None:
        before, self._framed = self._framed, ()
        try:
            window: exp.Expr | None = super()._parse_window(*how, **more)
            found = window.find(exp.Window) if window is not None else None
            framed: exp.Expr
            for framed in self._framed:
                assert found is not None
                found.set("framed", framed)
            return window
        finally:
            self._framed = before

    def _parse_partition_and_order(self) -> Any:
        parts = super()._parse_partition_and_order()
        if self._has_pattern():
            before, self._recognizing = self._recognizing, True
            try:
                self._framed = (self._parse_framed(),)
            finally:
                self._recognizing = before
        return parts

    def _has_pattern(self) -> bool:
        """Whether PATTERN ( stands before the ) of what is being read."""
        depth = 0
        for token, following in pairwise(self._tokens[self._index :]):
            depth += (token.token_type == TokenType.L_PAREN) - (
                token.token_type == TokenType.R_PAREN
            )
            if depth < 0:
                return False
            opens = following.token_type == TokenType.L_PAREN
            if not depth and opens and _is_word(token, "PATTERN"):
                return True
        return False

    def _parse_framed(self) -> Framed:
        word = self._curr
        parts: dict[str, Any] = {}
        if self._match_words("MEASURES"):
            parts["measures"] = self._parse_csv(self._parse_measure)
        frame = self._curr
        if not self._match_words("ROWS", "BETWEEN", "CURRENT", "ROW", "AND"):
            self.raise_error(
                "the frame of a window with a PATTERN is ROWS BETWEEN CURRENT ROW AND …", frame
            )
        if self._match_words("CURRENT", "ROW"):
            parts["end"] = exp.Literal.number(0)
        elif not self._match_words("UNBOUNDED", "FOLLOWING"):
            parts["end"] = self._parse_number()
            if parts["end"] is None or not self._match_words("FOLLOWING"):
                self.raise_error("Expecting CURRENT ROW, n FOLLOWING or UNBOUNDED FOLLOWING")
        self._match_words("EXCLUDE", "NO", "OTHERS")
        for wrong in ("ONE", "ALL"):
            if self._match_words(wrong):
                self.raise_error(
                    "in a window every row is shown: no ROW PER MATCH clause", self._prev
                )
        parts["skip"], parts["skip_to"] = self._parse_after_match()
        if not self._match_words("INITIAL") and self._match_words("SEEK"):
            parts["seek"] = True
        self._parse_pattern_parts(parts)
        made = Framed(**{name: part for name, part in parts.items() if part})
        return made.update_positions(word)

    # The clause ---------------------------------------------------------------------------

    def _parse_recognized(self, relation: exp.Expr) -> exp.Expr:
        word = self._prev
        self._match_l_paren()
        self._recognizing = True
        parts: dict[str, Any] = {"this": relation}
        if self._match(TokenType.PARTITION_BY):
            parts["partition_by"] = self._parse_csv(self._parse_disjunction)
        if self._match(TokenType.ORDER_BY, advance=False):
            parts["order"] = self._parse_order()
        if self._match_words("MEASURES"):
            parts["measures"] = self._parse_csv(self._parse_measure)
        parts["rows"] = self._parse_rows_per_match()
        parts["skip"], parts["skip_to"] = self._parse_after_match()
        for start in ("INITIAL", "SEEK"):
            if self._match_words(start):
                self.raise_error(f"the word {start} belongs to a pattern in a WINDOW", self._prev)
        self._parse_pattern_parts(parts)
        self._recognizing = False
        if not self._match(TokenType.R_PAREN):
            self.raise_error("Expecting )")
        made = Recognized(**{name: part for name, part in parts.items() if part})
        made.update_positions(word)
        alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
        if alias is not None:
            made.set("alias", alias)
        return made

    def _parse_pattern_parts(self, parts: dict[str, Any]) -> None:
        """PATTERN, WITHIN, SUBSET and DEFINE."""
        if not self._match_words("PATTERN"):
            self.raise_error("Expecting PATTERN (…)")
        parts["pattern"] = self._parse_pattern_text()
        if self._match_words("WITHIN"):
            parts["within"] = self._parse_within()
        if self._match_words("SUBSET"):
            parts["subsets"] = self._parse_csv(self._parse_subset)
        if self._match_words("DEFINE"):
            parts["definitions"] = self._parse_csv(self._parse_definition)

    def _match_words(self, *words: str) -> bool:
        """Whether these words come next; they are read then."""
        for at, word in enumerate(words):
            place = self._index + at
            if place >= len(self._tokens) or not _is_word(self._tokens[place], word):
                return False
        self._advance(len(words))
        return True

    def _parse_variable(self) -> exp.Identifier:
        token = self._curr
        named = self._parse_id_var()
        if not isinstance(named, exp.Identifier):
            self.raise_error("Expecting a variable")
        return cast(exp.Identifier, named.update_positions(token))

    def _parse_measure(self) -> exp.Expr:
        value = self._parse_disjunction()
        if value is None:
            self.raise_error("Expecting a measure")
        if not self._match(TokenType.ALIAS):
            self.raise_error("Expecting AS and the name of the measure")
        named = self._parse_variable()
        return exp.Alias(this=value, alias=named)

    def _parse_rows_per_match(self) -> exp.Var | None:
        begin = self._curr
        if self._match_words("ONE", "ROW", "PER", "MATCH"):
            return exp.Var(this="one").update_positions(begin)
        if not self._match_words("ALL", "ROWS", "PER", "MATCH"):
            return None
        for words, name in (
            (("SHOW", "EMPTY", "MATCHES"), "all"),
            (("OMIT", "EMPTY", "MATCHES"), "omit empty"),
            (("WITH", "UNMATCHED", "ROWS"), "unmatched"),
        ):
            if self._match_words(*words):
                return exp.Var(this=name).update_positions(begin)
        return exp.Var(this="all").update_positions(begin)

    def _parse_after_match(self) -> tuple[exp.Var | None, exp.Identifier | None]:
        begin = self._curr
        if not self._match_words("AFTER", "MATCH", "SKIP"):
            return None, None
        if self._match_words("PAST", "LAST", "ROW"):
            return exp.Var(this="last row").update_positions(begin), None
        if self._match_words("TO", "NEXT", "ROW"):
            return exp.Var(this="next row").update_positions(begin), None
        if not self._match_words("TO"):
            self.raise_error("Expecting PAST LAST ROW, TO NEXT ROW, TO FIRST, TO LAST or TO")
        to = "last"
        for word in ("FIRST", "LAST"):
            following = self._next
            alone = not following or following.text.upper() in ("PATTERN", "INITIAL", "SEEK")
            if not alone and self._match_words(word):
                to = word.lower()
                break
        named = self._parse_variable()
        return exp.Var(this=to).update_positions(begin), named

    def _parse_pattern_text(self) -> RowPattern:
        opened = self._curr
        if not self._match(TokenType.L_PAREN):
            self.raise_error("Expecting (")
        depth, begin = 1, opened.end + 1
        letters = [" "] * (len(self.sql) - begin)
        while True:
            token = self._curr
            if (
                not token
                or token.token_type == TokenType.SENTINEL
                or self._index >= len(self._tokens)
                or (token.token_type == TokenType.VAR and token.text.upper() == "DEFINE")
            ):
                self.raise_error("the PATTERN ( is never closed", opened)
            depth += (token.token_type == TokenType.L_PAREN) - (
                token.token_type == TokenType.R_PAREN
            )
            if not depth:
                break
            # What is no token is a comment, or nothing.
            letters[token.start - begin : token.end + 1 - begin] = self.sql[
                token.start : token.end + 1
            ]
            self._advance()
        closed = self._curr
        self._advance()
        text = "".join(letters)[: closed.start - begin]
        try:
            tree = parse_pattern(text)
        except PatternError as error:
            at = begin + error.start
            near = [t for t in self._tokens if t.start <= at <= t.end] or [closed]
            hint = f": {error.hint}" if error.hint else ""
            self.raise_error(f"{error.message}{hint}", near[0])
        made = RowPattern(this=exp.Literal.string(text.strip()))
        made.meta.update(
            tree=tree, start=begin, end=closed.start - 1, line=opened.line, col=opened.col
        )
        return made

    def _parse_within(self) -> exp.Expr:
        value = self._parse_disjunction()
        if not isinstance(value, exp.Interval):
            self.raise_error("Expecting INTERVAL behind WITHIN")
        return cast(exp.Expr, value)

    def _parse_subset(self) -> Subset:
        named = self._parse_variable()
        if not self._match(TokenType.EQ):
            self.raise_error("Expecting = ( and the variables of the subset")
        self._match_l_paren()
        members = self._parse_csv(self._parse_variable)
        self._match_r_paren()
        return Subset(this=named, expressions=members)

    def _parse_definition(self) -> Definition:
        named = self._parse_variable()
        if not self._match(TokenType.ALIAS):
            self.raise_error("Expecting AS and the condition of the variable")
        condition = self._parse_disjunction()
        if condition is None:
            self.raise_error("Expecting a condition")
        return Definition(this=named, expression=condition)
