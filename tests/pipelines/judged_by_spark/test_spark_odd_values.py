"""Operators and everyday functions on odd values, and mixed types, give what Spark gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.judged_by_spark.test_spark_functions import differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS = (Path(__file__).parent / "odd_expressions.txt").read_text().splitlines()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_odd_values_are_what_they_are_in_spark(spark: SparkSession) -> None:
    wrong = differences(spark, EXPRESSIONS)
    assert not wrong, "\n".join(wrong)
