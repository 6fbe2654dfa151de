"""What sinks that keep tables promise beyond every sink: about the table they find.

The target must offer `execute(statement)`, which runs SQL there and gives the rows.
"""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.sinks.dead_letters import ListedDeadLetters
from tailrace.sinks.errors import ShapeError
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.testing.sink_contract import SinkContract


class TableContract(SinkContract):
    """`SinkContract` and the policies for tables."""

    mark = '"'
    widens = True

    def table(self, copy: Any) -> str:
        """The copy's table as SQL names it."""
        return str(copy.declaration.table)

    def test_a_sink_told_to_park_stops_at_a_new_column_until_it_is_there(self, place: Any) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        copy = self.copy(place, "v", schema_change="park")
        self.deliver(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING"), ("size", "BIGINT")])
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "b", "size": 7})]})
        with pytest.raises(ShapeError) as parked:
            self.deliver(place, copy, writer)
        assert "size" in parked.value.message
        assert "name" in parked.value.detail
        assert "schema_change" in parked.value.hint
        place.execute(f"ALTER TABLE {self.table(copy)} ADD COLUMN size BIGINT")
        self.deliver(place, copy, writer)
        writer.contents["v"][b'{"id":1}']["size"] = None
        self.assert_in_step(place, copy, writer)

    def test_columns_grow_with_the_view(self, place: Any) -> None:
        writer = TickWriter(MemoryLog())
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "INT"), ("p", "DECIMAL(6,2)")])
        writer.tick({"v": [({"id": 1}, {"id": 1, "n": 5, "p": "1.50"})]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "BIGINT"), ("p", "DECIMAL(14,2)")])
        writer.tick({"v": [({"id": 2}, {"id": 2, "n": 1 << 40, "p": "123456789012.25"})]})
        delivery = self.deliver(place, copy, writer)
        assert delivery.refused == 0
        self.assert_in_step(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "STRING"), ("p", "DECIMAL(14,2)")])
        writer.tick({"v": [({"id": n}, {"id": n, "n": f"x{n}", "p": "1.00"}) for n in (1, 2, 3)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_sink_told_to_park_does_not_widen(self, place: Any) -> None:
        if not self.widens:
            pytest.skip("every column of this target takes every number")
        writer = TickWriter(MemoryLog())
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "INT")])
        writer.tick({"v": [({"id": 1}, {"id": 1, "n": 5})]})
        copy = self.copy(place, "v", schema_change="park")
        self.deliver(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "BIGINT")])
        writer.tick({"v": [({"id": 2}, {"id": 2, "n": 6})]})
        with pytest.raises(ShapeError) as parked:
            self.deliver(place, copy, writer)
        assert "'n'" in parked.value.message
        assert "schema_change" in parked.value.hint

    def test_a_table_that_is_not_there_is_not_made_unasked(self, place: Any) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        copy = self.copy(place, "v", create=False)
        with pytest.raises(ShapeError):
            self.deliver(place, copy, writer)
        place.execute(
            f"CREATE TABLE {self.table(copy)} (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(50))"
        )
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_values_that_do_not_fit_the_users_table_are_put_aside(self, place: Any) -> None:
        if not self.widens:
            pytest.skip("every column of this target takes every value")
        writer = self._simple()
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING"), ("n", "INT")])
        copy = self.copy(place, "v")
        place.execute(
            f"CREATE TABLE {self.table(copy)} (id BIGINT NOT NULL PRIMARY KEY, "
            "name VARCHAR(50), n INT CHECK (n < 100))"
        )
        rows = [{"id": i, "name": "a", "n": i} for i in range(5)] + [
            {"id": 9, "name": "b", "n": 100}
        ]
        writer.tick({"v": [({"id": row["id"]}, row) for row in rows]})
        delivery = self.deliver(place, copy, writer)
        letters = delivery._dead_letters
        assert isinstance(letters, ListedDeadLetters)
        assert [letter.row["id"] for letter in letters.letters.values()] == [9]
        letter = next(iter(letters.letters.values()))
        assert letter.error["detail"]
        assert letter.error["code"] == "rows-refused"
        del writer.contents["v"][b'{"id":9}']
        self.assert_in_step(place, copy, writer)

    def test_a_row_of_four_megabytes_arrives(self, place: Any) -> None:
        writer = self._simple()
        large = "é'\\" * (1 << 20)
        writer.tick(
            {"v": [({"id": 1}, {"id": 1, "name": large}), ({"id": 2}, {"id": 2, "name": "a"})]}
        )
        copy = self.copy(place, "v")
        delivery = self.deliver(place, copy, writer)
        assert delivery.refused == 0
        self.assert_in_step(place, copy, writer)
