"""The reference lists exactly the functions that Arrow computes, and those that are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.binding.aggregates import KNOWN, NAMES, RANKING
from tailrace.pipelines.compiler.binding.generators import GENERATORS
from tailrace.pipelines.compiler.expressions.calls import known_functions
from tailrace.pipelines.compiler.syntax.refused import REFUSED, VOLATILE
from tailrace.pipelines.errors import SqlNameError, ViewError
from tailrace.pipelines.spark.catalyst.client import functions
from tailrace.testing.ticks import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGGREGATES = {name for name in REFUSED if name.startswith("approx_top_k_")}
STATUS = Path(__file__).parents[3] / "docs" / "status.md"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "view-sql.md"


def test_the_reference_lists_exactly_what_arrow_computes() -> None:
    listed = PAGE.read_text().split("<!-- functions:")[1]
    names = re.findall(r"`(\w+)`", listed.split("\n", 1)[1])
    assert len(names) == len(set(names))
    assert sorted(names) == known_functions()


def test_the_reference_names_what_is_refused_with_the_reason() -> None:
    page = PAGE.read_text().split("<!-- refused:")[1].split("<!-- functions:")[0]
    listed: dict[str, str] = {}
    for line in page.splitlines():
        if line.startswith("| `"):
            _, names, reason, _ = line.split("|")
            found = re.findall(r"`(\w+)`", names)
            assert not listed.keys() & set(found)
            listed |= dict.fromkeys(found, reason.strip().replace("`", ""))
    assert listed == REFUSED


@pytest.mark.parametrize("name", sorted(REFUSED.keys() - VOLATILE - AGGREGATES))
def test_a_refusal_says_why(name: str) -> None:
    """Whichever way the parser reads it, in SELECT or in FROM."""
    known = table("t", "id BIGINT, s STRING", ["id"])
    reasons = []
    for sql in (f"SELECT {name}(s) AS x FROM t", f"SELECT {name}() AS x FROM t",
                f"SELECT * FROM {name}()"):  # fmt: skip
        with pytest.raises(ViewError) as caught:
            compile_views([ViewDefinition("v", sql)], [known])
        reasons.append(caught.value.hint)
    assert REFUSED[name] in reasons


# Words of the language, and the clock, which have pages and tests of their own.
LANGUAGE = {
    "and", "or", "not", "in", "between", "case", "when", "cast", "if", "div", "struct", "grouping",
    "grouping_id", "session_window", "now", "curdate", "current_date", "current_timestamp",
    "localtimestamp", "localtime", "current_time", "range",
}  # fmt: skip


@pytest.mark.spark
def test_every_function_of_spark_is_computed_or_refused_by_name(spark: SparkSession) -> None:
    theirs = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    words = {name for name in theirs if name[0].isalpha()}
    ours = {*known_functions(), *KNOWN, *NAMES, *RANKING, *GENERATORS, *LANGUAGE}
    assert REFUSED.keys() & ours == set()
    assert words - ours - set(functions()) <= REFUSED.keys() <= words


def test_a_function_that_nobody_has_is_an_error_with_the_nearest_name() -> None:
    known = table("t", "id BIGINT, s STRING", ["id"])
    with pytest.raises(SqlNameError) as caught:
        compile_views([ViewDefinition("v", "SELECT id, levenshtien(s, s) AS x FROM t")], [known])
    assert "did you mean 'levenshtein'?" in (caught.value.hint or "")
    assert "^" in caught.value.detail


@pytest.mark.spark
def test_the_readme_says_how_many_are_computed(spark: SparkSession) -> None:
    """Those that have a name; operators are below."""
    every = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    theirs = {name for name in every if name[0].isalpha()}
    stated = re.search(r"(\d+) of Spark's (\d+) functions", STATUS.read_text())
    assert stated is not None
    assert (int(stated[1]), int(stated[2])) == (len(theirs) - len(REFUSED), len(theirs))


@pytest.mark.spark
def test_every_operator_of_spark_is_known(spark: SparkSession) -> None:
    theirs = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    signs = {name for name in theirs if not name[0].isalpha()}
    known = table("t", "id BIGINT, n INT, b BOOLEAN, s STRING", ["id"])
    for sign in sorted(signs):
        sides = {"!": "! b", "~": "~ n", "||": "s || s"}.get(sign, f"n {sign} n")
        compile_views([ViewDefinition("v", f"SELECT id, {sides} AS x FROM t")], [known])
