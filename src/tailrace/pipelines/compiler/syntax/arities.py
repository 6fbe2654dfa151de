"""How many arguments Spark's functions take, as Spark 4.3 says when it is given another number.

A rule that reads its first argument would take no notice of a second one. Those that take a unit in
front, such as `datediff(DAY, a, b)`, count their arguments themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_MOST = 8  # from here on: as many as one likes
_GROUPS = {
    "0": """
        e pi
    """,
    "0 1 2": """
        make_ym_interval unix_timestamp
    """,
    "0 1 2 3 4": """
        make_dt_interval
    """,
    "0 1 2 3 4 5 6 7": """
        make_interval
    """,
    "0 1 2 3 4 5 6 7 8 +": """
        array concat
    """,
    "0 2 4 6 8 +": """
        named_struct
    """,
    "1": """
        abs bigint binary boolean char_length character_length collation date day
        dayofmonth dayofweek dayofyear decimal double float hll_sketch_estimate int
        isnan isnotnull isnull last_day lcase len length lower month negative nullifzero
        positive quarter smallint string timestamp tinyint ucase unix_micros unix_millis
        unix_seconds upper weekday weekofyear window_time year zeroifnull
    """,
    "1 2": """
        ceil ceiling floor ltrim round rtrim to_date to_timestamp to_timestamp_ltz
        to_timestamp_ntz to_unix_timestamp trim try_to_date try_to_timestamp
    """,
    "1 2 3 4 5 6 7 8 +": """
        coalesce concat_ws hour minute second
    """,
    "2": """
        add_months collate contains date_part date_sub date_trunc datepart endswith
        equal_null extract ifnull left mod nullif nvl right startswith trunc
    """,
    "2 3": """
        hll_union like replace substr substring
    """,
    "2 3 4": """
        window
    """,
    "2 3 4 5 6 7 8 +": """
        greatest least
    """,
    "3": """
        nvl2 split_part
    """,
}

ARITIES: dict[str, frozenset[int]] = {
    name: frozenset(int(count) for count in counts.split() if count != "+")
    for counts, names in _GROUPS.items()
    for name in names.split()
}


# What the parser makes of calls of aggregates tells no longer what stood in them: it drops
# arguments, or takes them for clauses.
_AGGREGATES: dict[type[exp.Expr], tuple[int, int]] = {
    exp.ArrayAgg: (1, 1), exp.ArrayUniqueAgg: (1, 1), exp.ApproxDistinct: (1, 2), exp.Mode: (0, 2),
    **dict.fromkeys((exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue), (1, 2)),
}  # fmt: skip
_WITH_A_WORD = (
    exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.Mode
)  # fmt: skip
_WORST_ERROR = 0.391  # of approx_count_distinct


def wrong_arguments(made: exp.Expr, arguments: Sequence[exp.Expr]) -> str | None:
    """What is wrong with the arguments of an aggregate's call, as they stand in the query."""
    if isinstance(made, exp.IgnoreNulls | exp.RespectNulls):
        made = made.this
    known = _AGGREGATES.get(type(made))
    if known is None:
        return None
    assert isinstance(made, exp.Func)
    name = str(made.sql_name()).lower()
    least, most = known
    if not least <= len(arguments) <= most:
        return f"wrong number of arguments for {name}"
    if len(arguments) == 2:
        given = arguments[1]
        if isinstance(made, _WITH_A_WORD) and not isinstance(given, exp.Boolean):
            return f"the second argument of {name} is true or false"
        if isinstance(made, exp.ApproxDistinct) and not _is_error(given):
            return f"the error that {name} allows is a constant such as 0.05, below {_WORST_ERROR}"
    return None


def _is_error(given: exp.Expr) -> bool:
    if isinstance(given, exp.Null):
        return True  # its type is judged with those of other arguments
    if isinstance(given, exp.Cast) and given.to.this == exp.DType.DOUBLE:
        given = given.this  # 0.05D
    if not isinstance(given, exp.Literal) or str(given.this).isdigit():
        return False
    try:
        return 0 < float(given.this) <= _WORST_ERROR
    except ValueError:
        return False


def takes(name: str, count: int) -> bool:
    """Whether a function takes that many arguments; True of one that is not known here."""
    known = ARITIES.get(name)
    if known is None:
        return True
    return count in known or (_MOST in known and count > _MOST)
