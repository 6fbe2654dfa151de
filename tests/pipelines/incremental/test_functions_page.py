"""The reference lists exactly the functions that views compute."""

from __future__ import annotations

import re
from pathlib import Path

from tailrace.pipelines.incremental.sql.calls import known_functions

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "view-sql.md"


def test_the_reference_lists_exactly_what_works() -> None:
    listed = PAGE.read_text().split("<!-- functions:")[1]
    names = re.findall(r"`(\w+)`", listed.split("\n", 1)[1])
    assert len(names) == len(set(names))
    assert sorted(names) == known_functions()
