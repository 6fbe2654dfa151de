"""A declared pattern of events → its graph.

What the user wrote becomes the clause MATCH_RECOGNIZE that it resembles, which is bound as in a
view; its PATTERN has grammar of its own (see `patterns.steps`).

    topic ──► stream ──► events ──► told      records of `<name>`
                            └─────► told      records of `<name>.timeouts`
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from tailrace.errors import TailraceError
from tailrace.pipelines.compiler.binding.catalog import Catalog
from tailrace.pipelines.compiler.binding.match_recognize import Names, bind_recognized, canonical
from tailrace.pipelines.compiler.binding.query import QueryBinder
from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.compiler.lowering.lower import Lowering
from tailrace.pipelines.compiler.lowering.match_recognize import lowered
from tailrace.pipelines.compiler.plans.plan import Field, Match, Plan, Project
from tailrace.pipelines.compiler.syntax.match_recognize import Definition, Recognized
from tailrace.pipelines.compiler.syntax.parse import parse, point
from tailrace.pipelines.compiler.syntax.understood import refuse_what_is_not_understood
from tailrace.pipelines.engine.expression import Call, Column, Expression, Literal
from tailrace.pipelines.engine.graph import Edge, Graph, Projection, TableInput, ViewPlan
from tailrace.pipelines.engine.operators.event_patterns import (
    ABOUT,
    FIRST,
    KIND,
    LAST,
    MATCH_ID,
    REACHED,
    ROWS,
    TIMEOUT,
    EventPattern,
    Told,
)
from tailrace.pipelines.engine.patterns.grammar import PatternError, tokens, variables_of
from tailrace.pipelines.engine.patterns.program import Program, compile_pattern
from tailrace.pipelines.engine.patterns.steps import (
    ARROWS,
    MARK,
    Steps,
    before_name,
    parse_steps,
    until_name,
)
from tailrace.pipelines.engine.unforeseen import unforeseen
from tailrace.pipelines.errors import SqlNameError, SqlSyntaxError, SqlTypeError, ViewError
from tailrace.pipelines.values import types
from tailrace.pipelines.values.columns import MICROS, OFFSET, PARTITION, PLACED, TIME
from tailrace.pipelines.values.types import ddl

_INPUT = "events"
_SKIPS = {"past last row": "PAST LAST ROW", "to next row": "TO NEXT ROW"}
_ROWS = {
    "one": "ONE ROW PER MATCH", "all": "ALL ROWS PER MATCH",
    "all, unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
    "all, no empty": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
}  # fmt: skip
OWN = ("match_id", "op")  # the first columns of what a pattern tells
TIMEOUT_COLUMNS = ("reached", "rows", "first_at", "last_at")


class PatternLike(Protocol):
    """A declared pattern (`tailrace.pipelines.declare.Pattern`)."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def order_by(self) -> str: ...
    @property
    def match(self) -> str: ...
    @property
    def define(self) -> Mapping[str, str]: ...
    @property
    def select(self) -> Mapping[str, str]: ...
    @property
    def subsets(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def until(self) -> Mapping[str, str]: ...
    @property
    def within_ms(self) -> int | None: ...
    @property
    def gap_ms(self) -> int | None: ...
    @property
    def contiguity(self) -> str: ...
    @property
    def skip(self) -> str: ...
    @property
    def rows(self) -> str: ...
    @property
    def every(self) -> int: ...
    @property
    def timeouts(self) -> bool: ...
    @property
    def early(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long a pattern waits for rows that are late: see `EventPattern`."""

    lateness_ms: int | None = None
    keep_ms: int | None = None


def compile_events(
    pattern: PatternLike, table: TableInput, waiting: Waiting | None = None
) -> Graph:
    """The graph of one pattern over the rows of `table`.

    Raises an error that names the part at fault, as it stands in the declaration.
    """
    try:
        return _Compiler(pattern, table, waiting or Waiting()).graph()
    except ViewError as error:
        error.message = error.message.replace(f"view {pattern.name!r}", f"pattern {pattern.name!r}")
        error.view = pattern.name
        raise
    except TailraceError:
        raise
    except Exception as defect:
        raise unforeseen(defect, f"compiling pattern {pattern.name!r}") from defect


def refuse_wrong_words(pattern: PatternLike) -> None:
    """Raise what is wrong with a pattern whatever the columns of its input are."""
    empty = TableInput(_INPUT, _INPUT, pa.schema([]), kind="stream")
    compiler = _Compiler(pattern, empty, Waiting())
    compiler.check_variables()
    compiler.skip()


class _Compiler:
    def __init__(self, pattern: PatternLike, table: TableInput, waiting: Waiting) -> None:
        self.pattern, self.waiting = pattern, waiting
        self.table = replace(table, kind="stream")
        self.steps = self._steps()
        self.columns = {name.lower() for name in self.table.schema.names}

    # Texts --------------------------------------------------------------------------------

    def _steps(self) -> Steps:
        pattern = self.pattern
        try:
            steps = parse_steps(
                pattern.match, pattern.contiguity, [self._canonical(n) for n in pattern.until]
            )
        except PatternError as error:
            raise self._wrong(error.message, error.start, error.end, error.hint) from error
        if (steps.absent or steps.before) and pattern.within_ms is None:
            raise self._wrong(
                "a first or last '!' without within=", 0, len(pattern.match),
                'say how long the absence lasts: within="10 minutes"',
            )  # fmt: skip
        return steps

    def _wrong(self, message: str, start: int, end: int, hint: str = "") -> SqlSyntaxError:
        text = self.pattern.match
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        error = SqlSyntaxError(
            f"pattern {self.pattern.name!r}: match=: {message}",
            detail=point(text, line, column, max(end - start, 1)),
            hint=hint or "docs/reference/patterns.md has the grammar",
        )
        error.view = self.pattern.name
        return error

    def _canonical(self, name: str) -> str:
        """The variable that a name in the declaration means."""
        quoted = {
            token.text[1:-1]
            for token in tokens(self.pattern.match, ARROWS)
            if token.kind == "quoted"
        }
        return name if name in quoted else name.upper()

    def _spelled(self) -> dict[str, str]:
        """How the user writes a variable, by its name."""
        written: dict[str, str] = {}
        for token in tokens(self.pattern.match, ARROWS):
            if token.kind == "name":
                written.setdefault(token.text.upper(), token.text)
        shown = {name: written.get(name, name) for name in self.steps.variables}
        return shown if len({*shown.values()}) == len(shown) else {n: n for n in shown}

    def _text(self) -> str:
        """The clause that the declaration resembles, a line for each part."""
        pattern = self.pattern

        def quoted(name: str) -> str:
            return "`" + name.replace("`", "``") + "`"

        def listed(word: str, parts: list[str]) -> list[str]:
            return [word, *(f"  {p}{',' if n < len(parts) else ''}" for n, p in enumerate(parts, 1))] if parts else []  # fmt: skip

        defined = [f"{quoted(self._canonical(n))} AS {c}" for n, c in pattern.define.items()]
        for name, condition in pattern.until.items():
            defined.append(f"{quoted(until_name(self._canonical(name)))} AS {condition}")
        lines = [
            f"SELECT * FROM {quoted(self.table.topic)} MATCH_RECOGNIZE (",
            *listed("PARTITION BY", [quoted(one) for one in pattern.key]),
            f"ORDER BY {TIME}",
            *listed("MEASURES", [f"{what} AS {quoted(n)}" for n, what in pattern.select.items()]),
            _ROWS[pattern.rows],
            f"AFTER MATCH SKIP {self.skip()}",
            "PATTERN (X)",
            *listed("SUBSET", [
                f"{quoted(name.upper())} = ({', '.join(quoted(self._canonical(m)) for m in members)})"
                for name, members in pattern.subsets.items()
            ]),
            *listed("DEFINE", defined),
            ")",
        ]  # fmt: skip
        return "\n".join(lines)

    def skip(self) -> str:
        given = " ".join(self.pattern.skip.split())
        if given in _SKIPS:
            return _SKIPS[given]
        words = given.split(" ")
        if len(words) == 3 and words[0] == "to" and words[1] in ("first", "last"):
            return f"TO {words[1].upper()} `{self._canonical(words[2])}`"
        if len(words) == 2 and words[0] == "to":
            return f"TO `{self._canonical(words[1])}`"
        raise ViewError(
            f"pattern {self.pattern.name!r}: unknown skip {self.pattern.skip!r}",
            hint='"past last row", "to next row", "to first b" or "to last b"',
        )

    # Trees --------------------------------------------------------------------------------

    def graph(self) -> Graph:
        pattern, steps = self.pattern, self.steps
        self._check_names()
        context = Context(pattern.name, self._text())
        self._check_expressions()
        tree = parse(context.sql, pattern.name)
        self._refuse_queries(context, tree)
        refuse_what_is_not_understood(context, tree)
        node = tree.find(Recognized)
        assert node is not None
        added = [until_name(name) for name in steps.ending]
        added += [before_name(name) for name in steps.before]
        variables = (*steps.variables, *added, *steps.skipped)
        numbers = {name: number for number, name in enumerate(variables)}
        every = tuple(range(len(steps.variables) + len(added)))
        spelled = self._spelled()
        names = Names(context, variables, every=every, spelled=spelled)
        node.args["pattern"].meta["tree"] = steps.tree
        node.args["pattern"].meta["ready"] = (names, self._program(variables, spelled))
        self._subsets(context, names, node)
        self._adapt(context, names, node)
        binder = QueryBinder(context, Catalog([self.table], {}), _no_view)
        project = bind_recognized(binder, node, {})
        match = _match_of(project)
        if pattern.within_ms is not None:
            match = replace(match, within=(match.order[0][0], pattern.within_ms * 1000))
        unlike = {
            numbers[name]: tuple(numbers[one] for one in refused)
            for name, refused in steps.skipped.items()
        }
        self._check_before(match)
        return self._lower(project, match, unlike)

    def _program(self, variables: tuple[str, ...], spelled: Mapping[str, str]) -> Program:
        steps = self.steps
        try:
            made = compile_pattern(steps.tree, variables)
        except PatternError as error:
            raise self._wrong(error.message, 0, len(self.pattern.match), error.hint) from error
        before = tuple(variables.index(before_name(name)) for name in steps.before)
        names = tuple(spelled.get(name, name) for name in variables)
        hidden = len(steps.variables) if len(variables) > len(steps.variables) else 0
        return replace(made, variables=names, hidden=hidden, before=before)

    def _check_names(self) -> None:
        pattern = self.pattern
        taken = {name.lower() for name in (*OWN, *pattern.key)}
        for name in pattern.select:
            if name.lower() in taken or (pattern.timeouts and name in TIMEOUT_COLUMNS):
                raise SqlNameError(
                    f"pattern {pattern.name!r}: select= names {name!r}, which what it tells has "
                    "already",
                    hint="give it another name",
                )
            taken.add(name.lower())
        for name in pattern.key:
            if name.lower() not in self.columns or name.startswith("__"):
                known = list(self.table.recorded.names)
                near = difflib.get_close_matches(name, known, 1)
                raise SqlNameError(
                    f"pattern {pattern.name!r}: key= names {name!r}, which is no column of "
                    f"{self.table.topic}",
                    hint=f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(known)}",
                )
        self.check_variables()

    def _check_expressions(self) -> None:
        """Refuse what is no expression, each by itself: in the clause the next would be blamed."""
        pattern = self.pattern
        given = (("select", pattern.select), ("define", pattern.define), ("until", pattern.until))
        for what, texts in given:
            for name, text in texts.items():
                clause = (
                    f"SELECT * FROM t MATCH_RECOGNIZE (MEASURES\n{text}\nAS m PATTERN (X)) AS r"
                )
                try:
                    tree = parse(clause, pattern.name)
                except ViewError:
                    tree = None
                node = tree.find(Recognized) if tree is not None else None
                if node is None or len(node.args.get("measures") or ()) != 1:
                    error = SqlSyntaxError(
                        f"pattern {pattern.name!r}: {what}= {name!r} is no expression of SQL",
                        detail=point(text, 1, 1, max(len(text.splitlines()[0]), 1)),
                        hint="the SQL is Spark's: docs/reference/view-sql.md",
                    )
                    error.view = pattern.name
                    raise error

    def check_variables(self) -> None:
        """Refuse conditions of variables that there are none of."""
        pattern = self.pattern
        variables = {*self.steps.variables}
        for what, given in (("define", pattern.define), ("until", pattern.until)):
            for name in given:
                if self._canonical(name) not in variables:
                    near = difflib.get_close_matches(self._canonical(name), variables, 1)
                    listed = ", ".join(self._spelled().values())
                    raise SqlNameError(
                        f"pattern {pattern.name!r}: {what}= names {name!r}, which is no variable "
                        "of match=",
                        detail=point(pattern.match, 1, 1, max(len(pattern.match), 1)),
                        hint=f"did you mean {self._spelled()[near[0]]!r}?"
                        if near
                        else f"match= has: {listed}",
                    )

    def _refuse_queries(self, context: Context, tree: exp.Expr) -> None:
        for query in tree.find_all(exp.Select, exp.Exists, exp.SetOperation):
            if query is not tree:
                raise context.not_incremental(
                    "a query inside a pattern of events", query,
                    "its answer would change what was told: use MATCH_RECOGNIZE in a view",
                )  # fmt: skip

    def _subsets(self, context: Context, names: Names, node: Recognized) -> None:
        for subset in node.args.get("subsets") or ():
            name = canonical(subset.this)
            if names.known(name):
                raise context.name_error(f"subsets= {subset.this.name}: the name is taken", subset)
            members = [names.of(member, "subsets=") for member in subset.expressions]
            names.subsets[name] = tuple(sorted({number for one in members for number in one}))

    def _adapt(self, context: Context, names: Names, node: Recognized) -> None:
        """Say what only patterns of events say in the words of the clause."""
        for part in (*(node.args.get("measures") or ()), *(node.args.get("definitions") or ())):
            for counted in list(part.find_all(exp.Count)):
                one = counted.this
                if isinstance(one, exp.Column) and len(one.parts) == 1:
                    name = self._canonical(one.name)
                    if names.known(name) and one.name.lower() not in self.columns:
                        table = exp.to_identifier(name, quoted=True)
                        counted.set("this", exp.Column(this=exp.Star(), table=table))
            self._name_quoted(names, part)
        conditions: dict[str, exp.Expr] = {
            canonical(one.this): one.expression for one in node.args.get("definitions") or ()
        }
        for name in self.steps.before:
            if name in conditions:
                conditions[before_name(name)] = _renamed(conditions[name], name, before_name(name))
        for name in self.steps.ending:
            ends = conditions[until_name(name)]
            conditions[until_name(name)] = _renamed(ends, name, until_name(name))
            goes_on = exp.Not(
                this=exp.Coalesce(this=exp.Paren(this=ends.copy()), expressions=[exp.false()])
            )
            before = conditions.get(name)
            conditions[name] = (
                goes_on
                if before is None
                else exp.And(this=exp.Paren(this=before), expression=goes_on)
            )
        if self.pattern.gap_ms is not None:
            self._keep_close(conditions)
        made = [
            Definition(this=exp.to_identifier(name, quoted=True), expression=condition)
            for name, condition in conditions.items()
        ]
        given = node.args.get("definitions") or ()
        known = {canonical(one.this): one for one in given}
        for one in made:  # errors point to where the user's stands
            if one.name in known:
                one.meta.update(known[one.name].meta)
                one.this.meta.update(known[one.name].this.meta)
        node.set("definitions", made)

    def _name_quoted(self, names: Names, part: exp.Expr) -> None:
        """Write a name that is a quoted variable's as it is quoted in match=."""
        for column in part.find_all(exp.Column):
            table = column.args.get("table")
            if isinstance(table, exp.Identifier) and not table.args.get("quoted"):
                name = self._canonical(table.name)
                if name in names.variables and name != table.name.upper():
                    table.set("quoted", True)

    def _keep_close(self, conditions: dict[str, exp.Expr]) -> None:
        """The time between a row and the one before it in the match, or one that is skipped, is
        at most the gap."""
        assert self.pattern.gap_ms is not None
        most = exp.Literal.number(self.pattern.gap_ms * 1000)

        def last(steps: int) -> exp.Expr:
            from tailrace.pipelines.compiler.syntax.match_recognize import RowCall

            return RowCall(this="LAST", expressions=[exp.column(MICROS), exp.Literal.number(steps)])

        taken = dict.fromkeys(one.name for one in variables_of(self.steps.tree))
        if self.steps.absent:
            taken.pop(next(reversed(self.steps.skipped)))  # an absence lasts for all the time
        for name in taken:
            own = exp.column(MICROS, table=exp.to_identifier(name, quoted=True))
            before = last(0 if name.startswith(MARK) else 1)
            close = exp.Or(
                this=exp.Is(this=before.copy(), expression=exp.Null()),
                expression=exp.LTE(
                    this=exp.Sub(this=own, expression=before.copy()), expression=most.copy()
                ),
            )
            known = conditions.get(name)
            conditions[name] = (
                close
                if known is None
                else exp.And(this=exp.Paren(this=known), expression=exp.Paren(this=close))
            )

    def _check_before(self, match: Match) -> None:
        for name, number in zip(self.steps.before, match.program.before, strict=True):
            if match.definitions[number].before is not None:
                raise ViewError(
                    f"pattern {self.pattern.name!r}: the condition of {self._spelled()[name]!r}, "
                    "which may not come first, looks at other variables",
                    hint="nothing was matched before it: name its own columns alone",
                )

    # Operators ----------------------------------------------------------------------------

    def _lower(self, project: Plan, match: Match, unlike: Mapping[int, tuple[int, ...]]) -> Graph:
        pattern, table = self.pattern, self.table
        lowering = Lowering()
        assert isinstance(project, Project)
        items = [
            (field, bound)
            for field, bound in zip(project.fields, project.expressions, strict=True)
            if not field.name.startswith("__")
        ]
        wanted = {f.id for f in (*match.shown, *match.measures)}
        hidden = {f.id for f in match.shown if f.name in PLACED.names}
        places = [_column_of(match.input, name) for name in (MICROS, PARTITION, OFFSET)]
        made = lowered(lowering, match, wanted - hidden, [p.column for p in places], unlike)
        operator, port = made.operator, made.port
        if self.pattern.every and operator.rows not in ("one", "all"):
            raise ViewError(
                f'pattern {pattern.name!r}: rows={pattern.rows!r} with matches="every"',
                hint='rows="one" or rows="all"',
            )
        carried = {name: at for at, name in enumerate(operator.carried)}
        time, partition, offset = (carried[port.name(place.column)] for place in places)
        schema = pa.schema([*ABOUT, *operator.schema])
        events = EventPattern(
            pattern.name,
            table.topic,
            operator,
            (time, partition, offset),
            schema,
            self.waiting.lateness_ms,
            self.waiting.keep_ms,
            None if pattern.gap_ms is None else pattern.gap_ms * 1000,
            pattern.early,
            pattern.timeouts,
            pattern.every,
        )
        source = lowering.add(events, [lowering.edge(port, operator.partition)], schema, None)
        shown = [(f.name, _over(bound, made.columns)) for f, bound in items]
        views = {pattern.name: self._told(lowering, source, pattern.name, shown, False)}
        if pattern.timeouts:
            name = f"{pattern.name}.timeouts"
            views[name] = self._told(lowering, source, name, shown, True)
        tables = {table.topic: table}
        nodes = tuple(lowering.nodes.values())
        return Graph(tables, nodes, views)

    def _told(
        self, lowering: Lowering, source: str, name: str,
        shown: list[tuple[str, Expression]], timed_out: bool,
    ) -> ViewPlan:  # fmt: skip
        kind = Column(KIND, types.BIGINT)
        timeout = Literal(TIMEOUT, types.BIGINT)
        where = Call("=" if timed_out else "<>", (kind, timeout), types.BOOLEAN)
        op: Expression = Literal("timeout", types.STRING)
        if not timed_out:
            unmatched = Call("=", (kind, Literal(2, types.BIGINT)), types.BOOLEAN)
            words = (unmatched, Literal("unmatched", types.STRING), Literal("match", types.STRING))
            op = Call("case", words, types.STRING)
        columns: list[tuple[str, Expression]] = [
            ("match_id", Column(MATCH_ID, types.STRING)), ("op", op)
        ]  # fmt: skip
        if timed_out:
            kinds = (types.STRING, types.BIGINT, types.TIMESTAMP, types.TIMESTAMP)
            held = (REACHED, ROWS, FIRST, LAST)
            about = [
                (told, Column(column, of))
                for told, column, of in zip(TIMEOUT_COLUMNS, held, kinds, strict=True)
            ]
            key = [one for one in shown if one[0] in self.pattern.key]
            columns += [*key, *about, *(one for one in shown if one not in key)]
        else:
            columns += shown
        schema = pa.schema([(column, bound.type) for column, bound in columns])
        edge = Edge(source, Projection(tuple(columns), where), None)
        node = lowering.add(Told(name, schema), [edge], schema, None)
        known = {column.lower(): column for column, _ in columns}
        return ViewPlan(
            name, node, tuple(known[one.lower()] for one in self.pattern.key),
            tuple((column, ddl(bound.type)) for column, bound in columns), "", events=True,
        )  # fmt: skip


def _match_of(plan: Plan) -> Match:
    while not isinstance(plan, Match):
        plan = plan.input  # type: ignore[union-attr]
    return plan


def _column_of(plan: Plan, name: str) -> Field:
    return next(field for field in plan.fields if field.name == name)


def _over(bound: Expression, columns: Mapping[str, Expression]) -> Expression:
    from tailrace.pipelines.engine.expression import substitute

    return substitute(bound, dict(columns))


def _renamed(condition: exp.Expr, variable: str, other: str) -> exp.Expr:
    """The condition with another variable in the place of one."""
    made = condition.copy()
    for column in made.find_all(exp.Column):
        table = column.args.get("table")
        if isinstance(table, exp.Identifier) and canonical(table) == variable:
            column.set("table", exp.to_identifier(other, quoted=True))
    return made


def _no_view(name: str, node: exp.Table) -> Plan:
    raise AssertionError(f"{name} in a pattern")


def bind_order(name: str, order_by: str, table: TableInput) -> Expression:
    """The event time of a row: a column or an expression of SQL; texts are read as times."""
    context = Context(name, f"SELECT {order_by} AS at FROM {_INPUT}")
    binder = QueryBinder(
        context, Catalog([replace(table, name=_INPUT, topic=_INPUT, kind="stream")], {}), _no_view
    )
    try:
        tree = parse(context.sql, name)
        refuse_what_is_not_understood(context, tree)
        plan = binder.query(tree, {}, None)
        flow = Lowering().flow(plan, {f.id for f in plan.fields})
        bound = flow.columns[plan.fields[0].id]
        if bound.type in (types.STRING, types.TIMESTAMP_NTZ, types.DATE):
            context = Context(name, f"SELECT try_cast({order_by} AS TIMESTAMP) AS at FROM {_INPUT}")
            binder = QueryBinder(context, binder.catalog, _no_view)
            plan = binder.query(parse(context.sql, name), {}, None)
            flow = Lowering().flow(plan, {f.id for f in plan.fields})
            bound = flow.columns[plan.fields[0].id]
    except ViewError as error:
        error.message = error.message.replace(f"view {name!r}", f"pattern {name!r}: order_by=")
        error.view = name
        raise
    if bound.type != types.TIMESTAMP:
        refused = SqlTypeError(
            f"pattern {name!r}: order_by={order_by!r} is {ddl(bound.type)}: not a time",
            hint="a TIMESTAMP, or an expression that gives one: timestamp_seconds(paid_at)",
        )
        refused.view = name
        raise refused
    return bound


def ordered(name: str, order_by: str, table: TableInput) -> TableInput:
    """The input of a pattern: its rows carry their event times and places."""
    taken = [one for one in table.schema.names if one.lower() in PLACED.names]
    if taken:
        raise SqlNameError(
            f"pattern {name!r}: {table.topic} has a column {taken[0]!r}, which patterns use",
            hint="rename it, or read a view's topic without it",
        )
    order = bind_order(name, order_by, table)
    schema = pa.schema([*table.schema, *PLACED])
    return replace(table, schema=schema, kind="stream", key=(), order=order, time=TIME)
