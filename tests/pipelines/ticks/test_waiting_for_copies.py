"""A view waits until the first copies of its tables are whole, whatever their names are."""

from __future__ import annotations

import orjson
import pytest

from tailrace.pipelines.reading.reader import Range, Records
from tailrace.pipelines.ticks.planner import Planner, parse_cuts
from tailrace.pipelines.ticks.seed_from_state import is_copied
from tailrace.pipelines.ticks.tick_row import Tick
from tailrace.records.topic_names import topic_name

NAMES = [
    ("public", "orders"),
    ("public", "Größe"),
    ("public", "a.b"),
    ("my.schema", "t"),
    ("public", "_x41_"),
    ("public", "n" * 200),
]


class Transactions:
    """A log that has nothing but the cuts of `shop`."""

    def __init__(self, topic: str, *copying: list[str]) -> None:
        texts = [
            orjson.dumps(
                {
                    "status": "CUT",
                    "source": "shop",
                    "position": f"pg:shop:{number:016X}",
                    "offsets": {topic: {"0": number}},
                    "copying": names,
                }
            )
            for number, names in enumerate(copying, 1)
        ]
        self.records = Records("shop.transactions", 0, list(range(len(texts))), values=texts)

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        return {0: (0, 100)}

    def read(self, ranges: list[Range]) -> list[Records]:
        (wanted,) = ranges
        held = self.records
        return [
            Records(held.topic, 0, [offset], values=[held.values[offset]])
            for offset in range(wanted.start, wanted.end)
        ]


@pytest.mark.parametrize(("schema", "table"), NAMES)
def test_a_tick_ends_at_no_cut_in_the_middle_of_a_first_copy(schema: str, table: str) -> None:
    topic = topic_name("shop", schema, table)
    log = Transactions(topic, [f"{schema}.{table}"], [])
    first, second = parse_cuts(log.records)
    planner = Planner({"shop": frozenset({topic})}, frozenset())
    planner.add([first])
    assert planner.plan(Tick("p"), log, 100) is None  # type: ignore[arg-type]
    planner.add([second])
    plan = planner.plan(Tick("p"), log, 100)  # type: ignore[arg-type]
    assert plan is not None
    assert plan.inputs[topic] == {0: 2}


@pytest.mark.parametrize(("schema", "table"), NAMES)
def test_a_fill_does_not_begin_at_half_a_copy(schema: str, table: str) -> None:
    topic = topic_name("shop", schema, table)
    log = Transactions(topic, [f"{schema}.{table}"], [])
    for following, whole in ((1, False), (2, True)):
        running = Tick("p", inputs={"shop.transactions": {0: following}})
        assert is_copied([topic], running, log) is whole  # type: ignore[arg-type]
