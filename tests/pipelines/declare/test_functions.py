"""A project's own functions in the SQL of views: Python by values and by columns, Java and Scala."""

from __future__ import annotations

import datetime
import random
import subprocess
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc
import pyspark
import pytest

import tailrace as tr
from tailrace.errors import TailraceError
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.pipelines.compiler.expressions.functions import reference_of
from tailrace.pipelines.declare.functions import Function, JavaClass, of_pyspark
from tailrace.pipelines.errors import DeclarationError, EvaluationError, SqlTypeError
from tailrace.pipelines.spark import java
from tailrace.pipelines.ticks.session_functions import register
from tailrace.pipelines.values.function_references import PythonFunction
from tailrace.testing.ticks import MemoryTables, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE = Decimal("1.21")
T = table(
    "t",
    "id INT, s STRING, n BIGINT, d DECIMAL(10,2), at TIMESTAMP, day DATE, xs ARRAY<INT>,"
    " m MAP<STRING, INT>, st STRUCT<p: INT, q: STRING>, y BINARY, f DOUBLE, k BOOLEAN",
    ["id"],
)
U = datetime.UTC
ROWS: list[dict[str, Any]] = [
    {"id": 1, "s": "Ann@Example.ORG", "n": 7, "d": Decimal("1.25"),
     "at": datetime.datetime(2024, 2, 29, 12, 34, 56, 789, U), "day": datetime.date(1969, 12, 31),
     "xs": [3, None, 1], "m": {"a": 1, "b": None}, "st": {"p": 4, "q": "z"}, "y": b"\0\xff",
     "f": -0.5, "k": True},
    {"id": 2},
    {"id": 3, "s": "", "n": -(1 << 40), "d": Decimal("-9.99"), "xs": [], "m": {},
     "st": {"p": None, "q": None}, "y": b"", "f": float("nan"), "k": False},
]  # fmt: skip


def _helper(text: str) -> str:
    return text.rpartition("@")[2]


@tr.function("STRING")
def domain(email: str | None) -> str | None:
    return None if email is None else _helper(email).lower()


@tr.function("DECIMAL(14,4)", takes=["DECIMAL(10,2)"])
def gross(net: Decimal | None) -> Decimal | None:
    return None if net is None else net * RATE


@tr.function("BIGINT", vectorized="arrow")
def doubled(numbers: pa.Array) -> pa.Array:
    return pc.multiply(numbers, 2)


@tr.function("DOUBLE", takes=["DOUBLE", "DOUBLE"], vectorized="pandas")
def added(one: pd.Series, other: pd.Series) -> pd.Series:
    return one + other


@tr.function("STRING")
def everything(*values: Any) -> str:
    return "|".join(f"{type(value).__name__}:{value}" for value in values)


@tr.function("STRUCT<p: INT, q: STRING>")
def turned(value: Any) -> Any:
    return None if value is None else {"q": str(value.p), "p": len(value["q"] or "")}


@tr.function("MAP<STRING, ARRAY<INT>>")
def grouped(values: list[int | None] | None) -> Any:
    found: dict[str, list[int]] = {}
    for value in values or ():
        found.setdefault("odd" if (value or 0) % 2 else "even", []).append(value or 0)
    return found


@tr.function("INT")
def strict(text: str | None) -> Any:
    if text == "bad":
        raise ValueError(f"no number in {text}")
    return "seven" if text == "wrong" else len(text or "")


OURS: list[Function] = [domain, gross, doubled, added, everything, turned, grouped, strict]


def _views(sql: str, *functions: Function | JavaClass, **others: str) -> MemoryTables:
    views = [ViewDefinition(name, text) for name, text in {"v": sql, **others}.items()]
    return MemoryTables(compile_views(views, [T], functions or OURS))


def _values(*expressions: str, functions: list[Any] | None = None) -> list[tuple[Any, ...]]:
    shown = ", ".join(f"{text} AS x{number}" for number, text in enumerate(expressions))
    memory = _views(f"SELECT id, {shown} FROM t", *(functions or ()))
    for row in ROWS:
        memory.upsert("t", row)
    memory.tick()
    rows = sorted(memory.rows("v"), key=lambda row: row["id"])
    return [tuple(row[f"x{number}"] for number in range(len(expressions))) for row in rows]


EXPRESSIONS = [
    "domain(s)",
    "gross(d)",
    "doubled(n)",
    "added(f, CAST(d AS DOUBLE))",
    "turned(st)",
    "grouped(xs)",
    "upper(domain(concat(s, 'x')))",
    "soundex(domain(s))",
    "CASE WHEN s IS NULL THEN -1 ELSE doubled(n) END",
    "size(grouped(array(1, 2, 3)))",
    "everything(n, k, day, s, xs)",
    "everything(d)",
]
OF_JAVA = ["plausible(s)", "both(n, soundex(s))", "transform(xs, x -> both(x, 'y'))", "typed(s)"]


def test_functions_of_python_give_values_and_types() -> None:
    assert _values("domain(s)", "gross(d)", "doubled(n)", "added(f, n)", "turned(st)")[:2] == [
        ("example.org", Decimal("1.5125"), 14, 6.5, {"p": 1, "q": "4"}),
        (None, None, None, None, None),
    ]
    assert _values("domain(NULL)", "DOMAIN('a@B')") == [(None, "b")] * 3
    given = _values("everything(at, day, m, st, y, xs)")[0][0]
    assert given == (
        "datetime:2024-02-29 12:34:56.000789|date:1969-12-31|dict:{'a': 1, 'b': None}"
        "|Struct:(4, 'z')|bytes:b'\\x00\\xff'|list:[3, None, 1]"
    )


def test_a_function_stays_one() -> None:
    assert domain("A@B.c") == "b.c"


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_functions_give_what_the_same_functions_give_in_spark(
    spark: SparkSession, jars: Path
) -> None:
    from pyspark.sql.functions import arrow_udf, pandas_udf, udf  # type: ignore[attr-defined]

    own = {
        "values": lambda body, kind: udf(body, kind, useArrow=False),
        "arrow": arrow_udf,
        "pandas": pandas_udf,
    }
    frame = spark.createDataFrame(
        [tuple(row.get(field.name) for field in T.schema) for row in ROWS],
        "id INT, s STRING, n BIGINT, d DECIMAL(10,2), at TIMESTAMP, day DATE, xs ARRAY<INT>,"
        " m MAP<STRING, INT>, st STRUCT<p: INT, q: STRING>, y BINARY, f DOUBLE, k BOOLEAN",
    )
    frame.createOrReplaceTempView("t")
    javas = [_java(jars, "plausible", "Plausible", "INT"), _java(jars, "both", "Both", "STRING")]
    javas.append(_java(jars, "typed", "Typed", ""))
    if not JAVAC.exists():
        javas = []
    expressions = [*EXPRESSIONS, *(OF_JAVA if javas else [])]
    here = _values(*expressions, functions=[*OURS, *javas])
    spark.sql(f"ADD JAR '{jars}/lib/one.jar'")
    register(spark, javas, Path.cwd())
    for direct in (True, False):
        if direct:  # by PySpark's own decorators
            for one in OURS:
                spark.udf.register(one.name, own[one.form](one.body, one.returns))
        else:  # as `view verify` does it
            register(spark, OURS, Path.cwd())
        rows = spark.sql(f"SELECT {', '.join(expressions)} FROM t ORDER BY id").collect()
        for ours, theirs in zip(here, rows, strict=True):
            for text, one, other in zip(expressions, ours, theirs, strict=True):
                assert _plain(one) == _plain(other), (text, direct)


def _plain(value: Any) -> Any:
    """Entries of maps, and structs, as dicts; NaN equal to itself."""
    if hasattr(value, "asDict"):
        return value.asDict()
    if value in ([], {}):
        return "empty"  # a map or an array
    if isinstance(value, list) and isinstance(value[0], tuple):
        return dict(value)
    return "NaN" if value != value else value


def test_explain_says_who_evaluates() -> None:
    memory = _views("SELECT id, domain(s) AS a, n + 1 AS b, soundex(s) AS c FROM t")
    told = explain(memory.graph, "v")
    assert "evaluated by python: domain(`s`)" in told
    assert "evaluated by spark: soundex(`s`)" in told
    assert "evaluated by arrow: the rest" in told


def test_functions_work_in_every_clause_and_rows_are_taken_back() -> None:
    memory = _views(
        "SELECT domain(s) AS d, count(*) AS n, sum(doubled(n)) AS total FROM t"
        " WHERE domain(s) <> '' GROUP BY domain(s) HAVING sum(doubled(n)) > 2"
    )
    memory.upsert("t", {"id": 1, "s": "a@x", "n": 1})
    memory.upsert("t", {"id": 2, "s": "b@X", "n": 2})
    memory.upsert("t", {"id": 3, "s": "none@", "n": 9})
    memory.tick()
    assert memory.rows("v") == [{"d": "x", "n": 2, "total": 6}]
    memory.delete("t", {"id": 2})
    memory.tick()
    assert memory.rows("v") == []


def test_an_exception_names_function_arguments_row_and_line_and_the_other_views_go_on() -> None:
    memory = _views("SELECT id, strict(s) AS x FROM t", w="SELECT id, domain(s) AS d FROM t")
    memory.upsert("t", {"id": 1, "s": "good"})
    memory.upsert("t", {"id": 2, "s": "bad"})
    with pytest.raises(EvaluationError) as told:
        memory.attempt()
    assert told.value.message == "function strict raised ValueError: no number in bad"
    assert "its arguments were ('bad')" in told.value.detail
    assert "test_functions.py" in told.value.detail
    assert "row: id = 2, s = 'bad'" in told.value.detail
    memory.upsert("t", {"id": 2, "s": "wrong"})
    with pytest.raises(EvaluationError, match="strict returned 'seven', which is no INT") as told:
        memory.attempt()
    assert "id = 2" in told.value.detail


def test_an_error_of_sparks_or_of_arrows_names_the_row() -> None:
    for text in ("1 DIV n", "bin(n) || 1 DIV n"):
        memory = _views(f"SELECT id, {text} AS x FROM t")
        for number in range(40):
            memory.upsert("t", {"id": number, "n": number - 31})
        with pytest.raises(EvaluationError) as told:
            memory.attempt()
        assert "row: id = 31, n = 0" in told.value.detail, text


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("domain(s, s)", "domain takes 1 argument, not 2"),
        ("gross(s, 1)", "gross takes 1 argument, not 2"),
        ("added(xs, n)", "ARRAY<INT>"),
        ("domain(x => s)", "in their order"),
        ("domain(parse_json(s))", "cannot take a VARIANT"),
        ("domain(n - n, day - day)", "takes 1 argument"),
        ("transform(xs, x -> doubled(x))", "in an expression that Spark computes"),
    ],
)
def test_wrong_calls_are_refused_at_their_place(sql: str, says: str) -> None:
    with pytest.raises(TailraceError) as told:
        _views(f"SELECT id, {sql} AS x FROM t")
    assert says in told.value.message
    assert "^" in told.value.detail


def test_an_unknown_function_hints_at_one_of_the_projects() -> None:
    with pytest.raises(TailraceError, match="unknown function") as told:
        _views("SELECT id, doubld(n) AS x FROM t")
    assert "did you mean 'doubled'?" in told.value.hint


@pytest.mark.parametrize("form", ["short", "text"])
def test_a_function_of_columns_must_return_a_column_that_fits(form: str) -> None:
    memory = _views("SELECT id, broken(n) AS x FROM t", _broken(form))
    memory.upsert("t", {"id": 1, "n": 1})
    with pytest.raises(EvaluationError, match="function broken returned"):
        memory.tick()


def _short(numbers: pa.Array) -> pa.Array:
    return numbers.slice(1)


def _text(numbers: pa.Array) -> pa.Array:
    return pa.array(["x"] * len(numbers))


def _broken(form: str) -> Function:
    body = _short if form == "short" else _text
    return tr.function("BIGINT", name="broken", vectorized="arrow")(body)


# What is declared ----------------------------------------------------------------------------


def _random(n: int) -> float:
    return random.random() * n


def _today(n: int) -> str:
    return f"{datetime.datetime.now()} {n}"


def _calls_random(n: int) -> float:
    return _random(n)


def _hashed(text: str) -> int:
    return hash(text)


def _seeded(n: int) -> float:
    return random.Random(n).random()


@pytest.mark.parametrize("body", [_random, _today, _calls_random, _hashed])
def test_what_gives_another_answer_each_time_is_refused(body: Any) -> None:
    with pytest.raises(DeclarationError, match="another answer each time"):
        tr.function("DOUBLE")(body)


def test_what_is_steady_is_not_refused() -> None:
    assert tr.function("DOUBLE")(_seeded)(3) == random.Random(3).random()


def test_wrong_declarations_are_refused() -> None:
    for wrong in (
        lambda: tr.function("NOTHING")(_seeded),
        lambda: tr.function("VARIANT")(_seeded),
        lambda: tr.function("INT", takes=["INT", "INT"])(_seeded),
        lambda: tr.function("INT", vectorized="numpy"),
        lambda: tr.function("INT", version=0)(_seeded),
        lambda: tr.function("INT", name="a b")(_seeded),
        lambda: tr.function("INT")(lambda x: x),
        lambda: tr.function(_seeded),  # type: ignore[arg-type]
        lambda: tr.java_function("f", "com.example.F", jars="/abs.jar"),
        lambda: tr.java_function("f", "com.example F", jars="a.jar"),
        lambda: tr.java_function("f", "com.example.F", jars=[]),
    ):
        with pytest.raises(DeclarationError):
            wrong()


def test_functions_of_pyspark_are_functions_of_views() -> None:
    from pyspark.sql.functions import udf
    from pyspark.sql.types import IntegerType, StringType

    found = of_pyspark(udf(domain.body, StringType(), useArrow=False), "pipelines/shop.py:3")
    assert found is not None
    assert (found.name, found.returns, found.form) == ("domain", "string", "values")
    assert _values("domain(s)", functions=[found])[0] == ("example.org",)
    assert of_pyspark(_helper, "x.py:1") is None
    with pytest.raises(DeclarationError, match="not deterministic"):
        of_pyspark(udf(_helper, IntegerType(), useArrow=False).asNondeterministic(), "x.py:1")


def _operators(function: Function) -> set[str]:
    graph = compile_views([ViewDefinition("v", "SELECT id, f(n) AS x FROM t WHERE f(n) > 0")], [T], [function])  # fmt: skip
    return {node.id for node in graph.nodes}


def _loaded(tmp_path: Path, name: str, text: str) -> Function:
    """A function as a file of that text declares it."""
    import importlib.util
    import sys

    path = tmp_path / f"{name}.py"
    path.write_text(f"import tailrace as tr\n{text}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = module.f
    assert isinstance(found, Function)
    return found


def test_a_function_whose_code_changed_is_another_operator(tmp_path: Path) -> None:
    plain = "@tr.function('BIGINT')\ndef f(n):\n    return help(n) + K\n"
    texts = {
        "same": f"def help(n):\n    return n\nK = 1\n{plain}",
        "again": f"K = 1\n\n\ndef help(n):\n    return n\n{plain}",
        "helper": f"def help(n):\n    return n + 1\nK = 1\n{plain}",
        "constant": f"def help(n):\n    return n\nK = 2\n{plain}",
        "version": f"def help(n):\n    return n\nK = 1\n{plain}".replace("('BIGINT')", "('BIGINT', version=2)"),
        "body": f"def help(n):\n    return n\nK = 1\n{plain}".replace("+ K", "- K"),
    }  # fmt: skip
    found = {
        name: _operators(_loaded(tmp_path, f"functions_{name}", text))
        for name, text in texts.items()
    }
    assert found["same"] == found["again"]  # another file, another order: the same code
    for other in ("helper", "constant", "version", "body"):
        assert found["same"] != found[other], other


HELP = "def help(n):\n    return n + 1\n"
DECLARED = "@tr.function('BIGINT')\ndef f(n):\n    return "
# How a function of `shop.py` reaches `help`, or the constant, of `money.py`.
WAYS: dict[str, tuple[str, str]] = {
    "imported": (f"from ways.money import help\n{DECLARED}help(n)", HELP),
    "cached": (
        f"from ways.money import cached\n{DECLARED}cached(n)",
        "import functools\n@functools.cache\ndef cached(n):\n    return n + 1\n",
    ),
    "lru_cache by call": (
        f"from ways.money import cached\n{DECLARED}cached(n)",
        f"import functools\n{HELP}cached = functools.lru_cache(maxsize=5)(help)\n",
    ),
    "partial": (
        f"import functools\nfrom ways.money import help\nplus = functools.partial(help)\n{DECLARED}plus(n)",
        HELP,
    ),
    "argument of a partial": (
        f"from ways.money import plus\n{DECLARED}plus(n)",
        "import functools, operator\nplus = functools.partial(operator.add, 0 + 1)\n",
    ),
    "dict": (f"from ways.money import help\nBY = {{'a': help}}\n{DECLARED}BY['a'](n)", HELP),
    "nested": (f"from ways.money import help\nBY = [(1, {{help}})]\n{DECLARED}max(BY[0][1])(n)", HELP),
    "default": (
        "from ways.money import help\n@tr.function('BIGINT')\ndef f(n, by=(help,)):\n    return by[0](n)",
        HELP,
    ),
    "object": (
        f"from ways.money import Rate\nRATE = Rate()\n{DECLARED}RATE.help(n)",
        "class Rate:\n    def help(self, n):\n        return n + 1\n",
    ),
    "value in an object": (
        f"from ways.money import RATE\n{DECLARED}n + RATE.by",
        "class Rate:\n    def __init__(self, by):\n        self.by = by\nRATE = Rate(0 + 1)\n",
    ),
    "object in a list": (
        f"from ways.money import Rate\nRATES = [Rate()]\n{DECLARED}RATES[0].help(n)",
        "class Rate:\n    __slots__ = ('x',)\n    def help(self, n):\n        return n + 1\n",
    ),
    "base class": (
        f"from ways.money import Base\nclass Rate(Base):\n    pass\n{DECLARED}Rate().help(n)",
        "class Base:\n    def help(self, n):\n        return n + 1\n",
    ),
    "in a class": (
        f"from ways.money import help\nclass Rate:\n    by = {{1: help}}\n{DECLARED}Rate.by[1](n)", HELP,
    ),
    "bound": (
        f"from ways.money import Rate\nby = Rate().help\n{DECLARED}by(n)",
        "class Rate:\n    def help(self, n):\n        return n + 1\n",
    ),
    "wrapper": (
        f"from ways.money import plus\n@plus\ndef kept(n):\n    return n\n{DECLARED}kept(n)",
        "import functools\ndef plus(of):\n    @functools.wraps(of)\n    def made(n):\n        return n + 1\n"
        "    return made\n",
    ),
    "wrapped": (
        f"import functools\nfrom ways.money import help\ndef plain(of):\n    @functools.wraps(of)\n"
        f"    def made(n):\n        return made.__wrapped__(n)\n    return made\nkept = plain(help)\n{DECLARED}kept(n)",
        HELP,
    ),
    "which object": (
        f"from ways.money import BY, first, second\n{DECLARED}n + (BY['a'].by or (first, second).index(1))",
        "class Rate:\n    def __init__(self, by):\n        self.by = by\nfirst, second = Rate(1), Rate(2)\n"
        "BY = {'a': second if 0 + 1 == 2 else first}\n",
    ),
    "package": (f"import ways.money\n{DECLARED}ways.money.help(n)", HELP),
    "module": (f"from ways import money\n{DECLARED}money.help(n)", HELP),
    "module's import": (f"from ways import other\n{DECLARED}other.help(n)", HELP),
    "module's module": (f"from ways import other\n{DECLARED}other.money.help(n)", HELP),
    "in the call": (f"{DECLARED}__builtins__ and g(n)\ndef g(n):\n    from ways.money import help\n    return help(n)", HELP),
    "module in the call": (f"{DECLARED}g(n)\ndef g(n):\n    from ways import money\n    return money.help(n)", HELP),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_change_is_noticed_wherever_it_hides(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import linecache
    import sys

    text, money = WAYS[way]

    def operators(place: str, change: bool) -> set[str]:
        home = tmp_path / place / "ways"  # without `__init__.py`, as the folder of pipelines is
        home.mkdir(parents=True)
        changed = money.replace("n + 1", "n + 2").replace("0 + 1", "0 + 2") if change else money
        assert change == (changed != money)
        (home / "money.py").write_text(changed)
        (home / "other.py").write_text(
            f"from ways import money\n{'from ways.money import help' if 'def help' in money else ''}\n"
        )
        (home / "shop.py").write_text(f"import tailrace as tr\n{text}\n")
        with monkeypatch.context() as patched:
            patched.syspath_prepend(str(tmp_path / place))
            try:
                function = importlib.import_module("ways.shop").f
                assert function(1) == (3 if change else 2)
                return _operators(function)
            finally:
                for name in [name for name in sys.modules if name.split(".")[0] == "ways"]:
                    del sys.modules[name]
                linecache.clearcache()

    first = operators("first", change=False)
    assert operators("elsewhere", change=False) == first
    assert operators("changed", change=True) != first


def test_a_worker_without_the_function_or_with_another_one_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from tailrace.pipelines.engine import user_calls

    made = _loaded(
        tmp_path, "functions_worker", "@tr.function('BIGINT')\ndef f(n):\n    return n\n"
    )
    reference = reference_of(made)
    monkeypatch.setattr(user_calls, "_known", {})
    arrays = [pa.array([1])]
    assert user_calls.call(reference, arrays, 1, pa.int64()).to_pylist() == [1]
    monkeypatch.setattr(user_calls, "_known", {})
    _loaded(tmp_path, "functions_worker", "@tr.function('BIGINT')\ndef f(n):\n    return -n\n")
    with pytest.raises(EvaluationError, match="function f is another one in this process"):
        user_calls.call(reference, arrays, 1, pa.int64())
    del sys.modules["functions_worker"]
    with pytest.raises(EvaluationError, match="function f is missing in this process") as told:
        user_calls.call(reference, arrays, 1, pa.int64())
    assert "functions_worker" in told.value.detail


def test_a_new_version_is_not_computed_by_what_was_loaded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from tailrace.pipelines.engine import user_calls

    monkeypatch.setattr(user_calls, "_known", {})
    made = _loaded(
        tmp_path, "functions_version", "@tr.function('BIGINT')\ndef f(n):\n    return n\n"
    )
    reference = reference_of(made)
    assert isinstance(reference, PythonFunction)
    user_calls.remember(reference, lambda n: -n)  # with another library, say
    arrays = [pa.array([1])]
    assert user_calls.call(reference, arrays, 1, pa.int64()).to_pylist() == [-1]
    later = replace(reference, version=2)
    assert user_calls.call(later, arrays, 1, pa.int64()).to_pylist() == [1]


PROJECT = """
import tailrace as tr
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType
from helpers.texts import tidy

people = tr.topic("people", schema="id INT, s STRING", key="id")

@tr.function("INT")
def letters(text):
    return len(tidy(text or ""))

@udf(StringType(), useArrow=False)
def shout(text):
    return (text or "").upper()

counted = tr.view("counted", "SELECT id, Letters(s) AS n, shout(s) AS loud FROM people", key="id")
"""


def test_functions_of_a_projects_files_are_found_and_those_of_one_name_refused(
    tmp_path: Path,
) -> None:
    from tailrace.pipelines.reading.catalog import topic_table
    from tailrace.project.load import load

    (tmp_path / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "texts.py").write_text("def tidy(text):\n    return text.strip()\n")
    (tmp_path / "pipelines").mkdir()
    shop = tmp_path / "pipelines" / "shop.py"
    shop.write_text(PROJECT)
    found = load(tmp_path)
    assert set(found.functions) == {"letters", "shout"}
    tables = [topic_table(topic) for topic in found.topics.values()]
    graph = compile_views(found.views.values(), tables, found.functions.values())
    memory = MemoryTables(graph)
    memory.upsert("people", {"id": 1, "s": " ab "})
    memory.tick()
    assert memory.rows("counted") == [{"id": 1, "n": 2, "loud": " AB "}]
    again = PROJECT.split("people =")[0] + "@tr.function('INT')\ndef LETTERS(s):\n    return 1\n"
    (tmp_path / "pipelines" / "zoo.py").write_text(again)
    with pytest.raises(TailraceError, match="two functions are called 'LETTERS'") as told:
        load(tmp_path)
    assert "shop.py" in told.value.detail
    (tmp_path / "pipelines" / "zoo.py").write_text(again.replace("LETTERS", "upper"))
    with pytest.raises(DeclarationError, match="upper is a function of Spark's"):
        load(tmp_path)


# Java and Scala ------------------------------------------------------------------------------

CLASSES = {
    "Plausible": "public class Plausible implements org.apache.spark.sql.api.java.UDF1<Object, Object> {"
    " public Object call(Object s) { if (\"bad\".equals(s)) throw new IllegalStateException(\"bad \" + s);"
    " return s == null ? null : Integer.valueOf(((String) s).length() * FACTOR); } }",
    "Both": "public class Both implements org.apache.spark.sql.api.java.UDF2<Object, Object, Object> {"
    " public Object call(Object a, Object b) { return a + \"/\" + b; } }",
    "Next": "public class Next extends scala.runtime.AbstractFunction1 {"
    " public Object apply(Object n) { return n == null ? null : Long.valueOf(((Long) n).longValue() + 1); } }",
    "Nothing": "public class Nothing { }",
}  # fmt: skip


TYPED = (
    "public class Typed implements org.apache.spark.sql.api.java.UDF1<String, Integer> {"
    " public Integer call(String s) { return s == null ? null : Integer.valueOf(s.length()); } }"
)
JAVAC = (
    java.find().home / "bin" / "javac"
)  # Java for running alone has none, and Janino no generics


def _compile(place: Path, files: list[str]) -> None:
    classes = str(Path(pyspark.__file__).parent / "jars" / "*")
    words = [str(JAVAC), "-nowarn", "-cp", classes, "-d", str(place), *files]
    if not JAVAC.exists():
        maker = place / "Make.java"
        maker.write_text(
            "import java.io.File; public class Make { public static void main(String[] a) throws Exception {"
            " org.codehaus.janino.Compiler c = new org.codehaus.janino.Compiler();"
            " c.setDestinationDirectory(new File(a[0]), false); File[] f = new File[a.length - 1];"
            " for (int i = 1; i < a.length; i++) f[i - 1] = new File(a[i]); c.compile(f); } }"
        )
        program = str(java.find().home / "bin" / "java")
        words = [program, "-cp", classes, "org.codehaus.janino.SimpleCompiler", str(maker), "Make",
                 str(place), *files]  # fmt: skip
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's directory with two jars that Janino, among Spark's own, has compiled."""
    home = tmp_path_factory.mktemp("project")
    (home / "lib").mkdir()
    for name, factor in (("one", "1"), ("two", "2")):
        place = tmp_path_factory.mktemp(name)
        files = []
        for class_name, text in {**CLASSES, **({"Typed": TYPED} if JAVAC.exists() else {})}.items():
            path = place / f"{class_name}.java"
            path.write_text(text.replace("FACTOR", factor))
            files.append(str(path))
        _compile(place, files)
        with zipfile.ZipFile(home / "lib" / f"{name}.jar", "w") as jar:
            for path in sorted(place.glob("*.class")):
                if path.stem != "Make":
                    jar.write(path, path.name)
    return home


def _java(home: Path, name: str, class_name: str, returns: str, jar: str = "one") -> JavaClass:
    return tr.java_function(name, class_name, jars=f"lib/{jar}.jar", returns=returns).of(home)


@pytest.mark.timeout(600)
def test_functions_of_java_and_scala_are_sparks(jars: Path) -> None:
    ours = [
        _java(jars, "plausible", "Plausible", "INT"),
        _java(jars, "both", "Both", "STRING"),
        _java(jars, "following", "Next", "BIGINT"),
    ]
    found = _values(
        "plausible(s)", "both(n, plausible(s))", "following(n)", "soundex(both('a', s)) || upper(s)",
        "transform(xs, x -> both(x, 'y'))",
        functions=ours,
    )  # fmt: skip
    assert found[0] == (15, "7/15", 8, "A525ANN@EXAMPLE.ORG", ["3/y", "null/y", "1/y"])
    assert found[1] == (None, "null/null", None, None, None)
    memory = _views("SELECT id, plausible(s) AS x FROM t", *ours)
    assert "evaluated by spark: plausible(`s`)" in explain(memory.graph, "v")
    memory.upsert("t", {"id": 1, "s": "good"})
    memory.upsert("t", {"id": 2, "s": "bad"})
    with pytest.raises(EvaluationError) as told:
        memory.attempt()
    assert "plausible" in told.value.message
    assert "tailrace_function" not in told.value.render()
    assert "row: id = 2, s = 'bad'" in told.value.detail


@pytest.mark.timeout(600)
def test_two_jars_of_one_name_do_not_meet(jars: Path) -> None:
    one = _java(jars, "plausible", "Plausible", "INT")
    two = _java(jars, "plausible", "Plausible", "INT", "two")
    assert _values("plausible(s)", functions=[one])[0] == (15,)
    assert _values("plausible(s)", functions=[two])[0] == (30,)
    assert reference_of(one) != reference_of(two)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("class_name", "call", "says"),
    [
        ("Missing", "f(s)", "no class Missing"),
        ("Nothing", "f(s)", "implements neither"),
        ("Plausible", "f(s, s)", "f takes 1 argument, not 2"),
    ],
)
def test_java_functions_that_do_not_load_are_refused_at_their_place(
    jars: Path, class_name: str, call: str, says: str
) -> None:
    with pytest.raises(SqlTypeError) as told:
        _views(f"SELECT id, {call} AS x FROM t", _java(jars, "f", class_name, "INT"))
    assert says in told.value.message
    assert "tailrace_function" not in told.value.render()
    assert "^" in told.value.detail


@pytest.mark.timeout(600)
def test_a_missing_jar_is_an_error_that_names_it(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tailrace.pipelines.spark.catalyst import functions

    with pytest.raises(DeclarationError, match="a jar of function 'f' cannot be read"):
        reference_of(_java(jars, "f", "Plausible", "INT", "none"))
    memory = _views("SELECT id, f(s) AS x FROM t", _java(jars, "f", "Plausible", "INT"))
    memory.upsert("t", ROWS[0])
    monkeypatch.setattr(functions, "_homes", [])
    with pytest.raises(EvaluationError, match=r"function f: lib/one\.jar is missing on this host"):
        memory.attempt()
