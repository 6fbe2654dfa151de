"""What of a parsed query the passes read; anything else is refused, with its place.

The parser reads the clauses of some thirty dialects and hangs them on its nodes. A pass that does
not know of one would compile the query without it. So one walk over the tree, before any pass,
compares every node and every argument with this table: what is not in it, today or in a newer
version of the parser, is an error. To teach a pass an argument is to add it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from sqlglot import exp

from tailrace.pipelines.compiler.binding.scope import Context
from tailrace.pipelines.compiler.expressions.calls import unknown_function
from tailrace.pipelines.compiler.syntax.match_recognize import (
    Definition,
    Framed,
    Recognized,
    RowCall,
    RowPattern,
    Semantics,
    Subset,
)
from tailrace.pipelines.compiler.syntax.refused import REFUSED, VOLATILE

_PAIR = ("this", "expression")
_CHAIN = ("this", "expression", "distinct", "with_", "order", "limit", "offset")

UNDERSTOOD: Mapping[type[exp.Expr], tuple[str, ...]] = {
    # Queries
    exp.Select: (
        "expressions", "from_", "joins", "where", "group", "having", "qualify", "order",
        "limit", "offset", "distinct", "with_", "laterals", "windows",
    ),
    exp.Union: (*_CHAIN, "by_name"),
    exp.Intersect: _CHAIN,
    exp.Except: _CHAIN,
    exp.Subquery: ("this", "alias", "joins", "order", "limit", "offset"),
    exp.Values: ("expressions", "alias"),
    exp.With: ("expressions", "recursive"),
    exp.CTE: ("this", "alias"),
    exp.Distinct: ("expressions",),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Where: ("this",),
    exp.Having: ("this",),
    exp.Qualify: ("this",),
    exp.Group: ("expressions", "grouping_sets", "all", "cube", "rollup"),
    exp.Cube: ("expressions",),
    exp.Rollup: ("expressions",),
    exp.GroupingSets: ("expressions",),
    # Relations
    exp.From: ("this",),
    exp.Join: ("this", "on", "side", "kind", "using", "method"),
    exp.Table: ("this", "db", "catalog", "alias", "joins", "version"),
    exp.Version: ("this", "kind", "expression"),
    exp.Lateral: ("this", "alias", "view", "outer"),
    exp.TableAlias: ("this", "columns"),
    # Row patterns
    Recognized: (
        "this", "alias", "joins", "partition_by", "order", "measures", "rows", "skip", "skip_to",
        "pattern", "within", "subsets", "definitions",
    ),
    Framed: (
        "measures", "end", "seek", "skip", "skip_to", "pattern", "subsets", "definitions",
    ),
    RowPattern: ("this",),
    Subset: ("this", "expressions"),
    Definition: _PAIR,
    RowCall: ("this", "expressions"),
    Semantics: ("this", "kind"),
    # Names and constants
    exp.Alias: ("this", "alias"),
    exp.Aliases: ("this", "expressions"),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Dot: _PAIR,
    exp.Identifier: ("this", "quoted"),
    exp.Star: ("except_",),
    exp.Var: ("this",),
    exp.Boolean: ("this",),
    exp.Null: (),
    exp.Literal: ("this", "is_string"),
    exp.HexString: ("this",),
    exp.Interval: ("this", "unit", "fraction_in_string"),
    exp.IntervalSpan: _PAIR,
    exp.DataType: ("this", "expressions", "nested", "collate"),
    exp.DataTypeParam: ("this",),
    exp.ColumnDef: ("this", "kind"),
    # Operators
    **dict.fromkeys(
        (
            exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.And, exp.Or, exp.EQ, exp.NEQ,
            exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is,
            exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift,
            exp.BitwiseRightShift, exp.Escape, exp.Collate, exp.RegexpLike, exp.PropertyEQ,
            exp.Kwarg,
        ),
        _PAIR,
    ),
    **dict.fromkeys((exp.Like, exp.ILike), (*_PAIR, "negate")),
    **dict.fromkeys((exp.Div, exp.DPipe), (*_PAIR, "safe")),
    **dict.fromkeys((exp.Neg, exp.Not, exp.Paren, exp.BitwiseNot, exp.Any, exp.All), ("this",)),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions", "query"),
    exp.Exists: ("this",),
    exp.Bracket: ("this", "expressions"),
    exp.Tuple: ("expressions",),
    exp.Lambda: ("this", "expressions"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to", "safe"),
    exp.JSONExtract: (*_PAIR, "variant_extract"),
    exp.JSONPath: ("expressions",),
    exp.JSONPathRoot: (),
    exp.JSONPathKey: ("this", "quoted"),
    exp.JSONPathSubscript: ("this",),
    # Scalar functions with a syntax of their own
    exp.Anonymous: ("this", "expressions"),
    exp.Array: ("expressions",),
    exp.Concat: ("expressions",),
    exp.Struct: ("expressions",),
    exp.Ceil: ("this", "decimals"),
    exp.Floor: ("this", "decimals"),
    exp.Chr: ("expressions",),
    exp.Extract: _PAIR,
    exp.Overlay: ("this", "expression", "from_", "for_"),
    exp.StrPosition: ("this", "substr", "position"),
    exp.Substring: ("this", "start", "length"),
    exp.Trim: ("this", "expression", "position"),
    exp.CurrentTime: ("this",),
    exp.Localtime: ("this",),
    **dict.fromkeys((exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp), ()),
    # Generators
    exp.Explode: ("this",),
    exp.Posexplode: ("this",),
    exp.Inline: ("this",),
    exp.Stack: ("this", "expressions"),
    # Aggregates
    exp.Filter: _PAIR,
    exp.WithinGroup: _PAIR,
    exp.IgnoreNulls: ("this",),
    exp.RespectNulls: ("this",),
    exp.Count: ("this", "expressions", "big_int"),
    exp.ArrayAgg: ("this", "nulls_excluded"),
    exp.GroupConcat: ("this", "separator"),
    exp.Mode: ("this", "deterministic"),
    exp.ApproxDistinct: ("this", "accuracy"),
    exp.ApproxQuantile: ("this", "quantile", "accuracy"),
    exp.ApproxTopK: ("this", "expression", "counters"),
    exp.ApproxTopKAccumulate: _PAIR,
    exp.ApproxTopKCombine: _PAIR,
    exp.Grouping: ("expressions",),
    exp.GroupingId: ("expressions",),
    **dict.fromkeys((exp.First, exp.Last), _PAIR),
    **dict.fromkeys(
        (
            exp.ArgMax, exp.ArgMin, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrAvgx,
            exp.RegrAvgy, exp.RegrCount, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx,
            exp.RegrSxy, exp.RegrSyy, exp.PercentileCont, exp.PercentileDisc,
        ),
        _PAIR,
    ),
    **dict.fromkeys(
        (
            exp.AnyValue, exp.ArrayUniqueAgg, exp.Avg, exp.BitmapConstructAgg, exp.BitmapOrAgg,
            exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.CountIf, exp.Kurtosis,
            exp.LogicalAnd, exp.LogicalOr, exp.Max, exp.Median, exp.Min, exp.Skewness, exp.Stddev,
            exp.StddevPop, exp.StddevSamp, exp.Sum, exp.Variance, exp.VariancePop,
        ),
        ("this",),
    ),
    # Window functions
    exp.Window: ("this", "partition_by", "order", "spec", "over", "alias", "framed"),
    exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
    **dict.fromkeys((exp.Lag, exp.Lead), ("this", "offset", "default")),
    exp.NthValue: ("this", "offset"),
    exp.Ntile: ("this",),
    **dict.fromkeys((exp.FirstValue, exp.LastValue), ("this",)),
    **dict.fromkeys(
        (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist), ()
    ),
}  # fmt: skip


def refuse_what_is_not_understood(context: Context, tree: exp.Expr) -> None:
    """Raise for the first node or argument of a query that no pass reads."""
    for node in tree.walk():
        known = UNDERSTOOD.get(type(node))
        if known is None:
            name = node.sql_name().lower() if isinstance(node, exp.Func) else ""
            if name in VOLATILE:
                raise context.not_incremental(
                    f"{_shown(node)} is not deterministic", node, "compute it before it is stored"
                )
            if name in REFUSED:
                raise unknown_function(context, name, node)
            raise context.not_incremental(f"{_shown(node)} is not kept incrementally", node)
        for name, value in node.args.items():
            if name not in known and _given(node, name, value):
                raise context.not_incremental(
                    f"{_clause(name, value)} is not kept incrementally here",
                    next(_nodes(value), node),
                )
        said = _CHECKS.get(type(node), _nothing)(node)
        if said:
            raise context.not_incremental(said, node)


# What the parser sets to False where a query says nothing of it. Elsewhere False says something:
# BETWEEN ASYMMETRIC, NOT INDEXED.
_DEFAULTS = {
    (exp.Lateral, "ordinality"), (exp.Div, "typed"), (exp.Array, "value_constructor"),
    (exp.Chr, "charset"), (exp.Concat, "coalesce"), (exp.JSONExtract, "requires_json"),
}  # fmt: skip


def _given(node: exp.Expr, name: str, value: object) -> bool:
    """Whether an argument says something."""
    if value is False:
        return (type(node), name) not in _DEFAULTS
    return value is not None and value != []


def _nodes(value: object) -> Iterator[exp.Expr]:
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, exp.Expr):
            yield part


def _shown(node: exp.Expr) -> str:
    """A node as it might have been written, shortened."""
    try:
        text = node.sql("spark") or node.key
    except Exception:  # a generator that cannot write what the parser read
        text = node.key
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"


def _clause(name: str, value: object) -> str:
    """An argument of a node, as a clause of SQL."""
    words = name.strip("_").replace("_", " ").upper()
    nodes = list(_nodes(value))
    parts = ", ".join(map(_shown, nodes))
    if not parts:
        return words if isinstance(value, bool) else f"{words} {value}"
    return f"{words} {parts}" if isinstance(nodes[0], exp.Condition) else parts


def _nothing(node: exp.Expr) -> str:
    return ""


def _check_join(node: exp.Expr) -> str:
    """The kinds of join that Spark has."""
    method, side, kind = (
        str(node.args.get(part) or "").upper() for part in ("method", "side", "kind")
    )
    words = " ".join(word for word in (method, side, kind) if word)
    natural = method == "NATURAL"
    if method and not natural:
        return f"a {words} JOIN is not kept incrementally"
    conditions = [part for part in ("on", "using") if node.args.get(part)]
    if natural and (conditions or kind in ("SEMI", "ANTI", "CROSS")):
        return f"a {words} JOIN has neither ON nor USING, and is INNER, LEFT, RIGHT or FULL"
    if len(conditions) > 1:
        return "a join has ON or USING, not both"
    if (side, kind) not in _JOINS:
        return f"there is no {words} JOIN"
    return ""


_JOINS = {
    *(("", kind) for kind in ("", "INNER", "CROSS", "SEMI", "ANTI")),
    *((side, kind) for side in ("LEFT", "RIGHT", "FULL") for kind in ("", "OUTER")),
    ("LEFT", "SEMI"), ("LEFT", "ANTI"),
}  # fmt: skip


def _check_in(node: exp.Expr) -> str:
    if not node.expressions and node.args.get("query") is None:
        return "IN () of nothing is no condition"
    return ""


def _check_table(node: exp.Expr) -> str:
    """A table is a name or a call."""
    if not isinstance(node.this, exp.Identifier | exp.Func | exp.Dot):
        return f"{_shown(node)} is no table"
    if node.args.get("joins") and isinstance(node.parent, exp.Join):
        return "a join inside a join stands in parentheses"
    return ""


_CLAUSES = ("where", "group", "having", "order", "limit", "offset")
_BEHIND = ("order", "limit", "offset")


def _check_select(node: exp.Expr) -> str:
    """The clauses in Spark's order."""
    begins = [(_begin(node.args[name]), name) for name in _CLAUSES if node.args.get(name)]
    known = [(at, name) for at, name in begins if at is not None]
    for (before, first), (at, second) in pairwise(known):
        if at < before:
            return f"{second.upper()} stands before {first.upper()}"
    return ""


def _begin(node: exp.Expr) -> int | None:
    return min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=None)


def _check_chain(node: exp.Expr) -> str:
    """ORDER BY and LIMIT of one side of a UNION stand in parentheses."""
    for side in (node.this, node.expression):
        if isinstance(side, exp.Select) and any(side.args.get(name) for name in _BEHIND):
            return f"ORDER BY and LIMIT of one side of {node.key.upper()} stand in parentheses"
    return ""


def _check_with(node: exp.Expr) -> str:
    names = [item.alias.lower() for item in node.expressions]
    twice = next((name for name in names if names.count(name) > 1), "")
    return f"WITH has two queries named {twice!r}" if twice else ""


def _check_group(node: exp.Expr) -> str:
    sets = any(node.args.get(part) for part in ("rollup", "cube", "grouping_sets"))
    if node.args.get("all") and (sets or node.expressions):
        return "GROUP BY ALL with grouping sets or keys"
    if any(isinstance(part, exp.Tuple) for part in node.expressions) and not sets:
        return "GROUP BY (…) of several columns, or of none, is not kept incrementally"
    return ""


def _check_qualify(node: exp.Expr) -> str:
    select = node.parent
    parts = [node, *(select.expressions if isinstance(select, exp.Select) else ())]
    if not any(part.find(exp.Window) for part in parts):
        return "QUALIFY needs a window function"
    return ""


def _check_interval(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    if unit is not None and not isinstance(unit, exp.Var | exp.IntervalSpan):
        return f"{_shown(unit)} is no unit of an interval"
    return ""


def _check_extract(node: exp.Expr) -> str:
    return "" if isinstance(node.this, exp.Var) else f"{_shown(node.this)} is no part of a time"


_WITH_PARAMETERS = (
    exp.DType.CHAR, exp.DType.VARCHAR, exp.DType.DECIMAL, exp.DType.TIME, exp.DType.GEOMETRY, exp.DType.GEOGRAPHY,
)  # fmt: skip
_LITERALS = (
    exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ, exp.DType.TIME,
)  # fmt: skip


def _check_type(node: exp.Expr) -> str:
    kind = node.this
    if node.expressions and not node.args.get("nested") and kind not in _WITH_PARAMETERS:
        return f"{_shown(node)} takes no parameter"
    if node.meta.get("literal") and kind not in _LITERALS:
        return f"{_shown(node)} before a text is no constant of Spark's"
    return ""


_CHECKS: Mapping[type[exp.Expr], Callable[[exp.Expr], str]] = {
    exp.Select: _check_select,
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), _check_chain),
    exp.With: _check_with,
    exp.Group: _check_group,
    exp.Qualify: _check_qualify,
    exp.Join: _check_join,
    exp.Table: _check_table,
    exp.In: _check_in,
    exp.Interval: _check_interval,
    exp.Extract: _check_extract,
    exp.DataType: _check_type,
}
