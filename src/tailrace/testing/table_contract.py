"""What sinks that keep tables promise beyond every sink: about the table they find.

The target must offer `execute(statement)`, which runs SQL there and gives the rows.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tailrace.records.stream_columns import COLUMNS_TOPIC, encode_versions
from tailrace.sinks.base import view_shape
from tailrace.sinks.dead_letters import ListedDeadLetters
from tailrace.sinks.errors import ShapeError
from tailrace.sinks.registry import make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.changelogs import MemoryLog, TickWriter, random_project, write_random_tick
from tailrace.testing.crash import kill_at_line
from tailrace.testing.sink_contract import SinkContract


def describe_stream(log: MemoryLog, topic: str, *versions: Sequence[tuple[str, str]]) -> None:
    """Say what the columns of a stream's topic are, as the stream does."""
    log.create(COLUMNS_TOPIC)
    partition = log.topics[COLUMNS_TOPIC][0]
    partition.append(topic.encode(), encode_versions([tuple(one) for one in versions]))


def stream_rows(writer: TickWriter, topic: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as a stream keyed by `id` writes them."""
    for row in rows:
        key = orjson.dumps({"id": row["id"]})
        writer.log.topics[topic][0].append(key, orjson.dumps(row))
        writer.contents[topic][key] = dict(row)


class TableContract(SinkContract):
    """`SinkContract` and the policies for tables."""

    widens = True
    whole_kills = range(80, 480, 80)

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

    def test_columns_grow_with_the_view_if_that_is_asked_for(self, place: Any) -> None:
        writer = TickWriter(MemoryLog())
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "INT"), ("p", "DECIMAL(6,2)")])
        writer.tick({"v": [({"id": 1}, {"id": 1, "n": 5, "p": "1.50"})]})
        copy = self.copy(place, "v", schema_change="widen")
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

    def test_a_users_column_is_never_altered_unasked(self, place: Any) -> None:
        if not self.widens:
            pytest.skip("every column of this target takes every number")
        for view, policy in (("va", "add"), ("vp", "park")):
            writer = TickWriter(MemoryLog())
            writer.declare(view, ["id"], [("id", "BIGINT"), ("n", "BIGINT")])
            copy = self.copy(place, view, schema_change=policy)
            table = self.table(copy)
            place.execute(f"CREATE TABLE {table} (id BIGINT NOT NULL PRIMARY KEY, n INTEGER)")
            writer.tick({view: [({"id": 1}, {"id": 1, "n": 5})]})
            with pytest.raises(ShapeError) as parked:
                self.deliver(place, copy, writer)
            assert "'n'" in parked.value.message
            assert "change the column to bigint" in parked.value.hint.lower()
            assert 'schema_change="widen"' in parked.value.hint
            # Nothing was lost meanwhile: with a column that takes it, the copy goes on.
            place.execute(f"ALTER TABLE {table} DROP COLUMN n")
            place.execute(f"ALTER TABLE {table} ADD COLUMN n BIGINT")
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

    def test_a_streams_types_reach_the_users_table_as_they_are(self, place: Any) -> None:
        writer = TickWriter(MemoryLog())
        columns = [("id", "INT"), ("n", "SMALLINT"), ("p", "DECIMAL(6,2)"), ("day", "DATE")]
        writer.declare("s", ["id"], columns)  # for what is compared with the copy
        copy = replace(self.copy(place, "s"), source="stream", key=("id",))
        table = self.table(copy)
        place.execute(
            f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, n SMALLINT, "
            "p DECIMAL(6,2), day DATE)"
        )
        describe_stream(writer.log, "s", columns)
        rows: list[dict[str, Any]] = [
            {"id": 1, "n": 2, "p": "1.50", "day": "2026-11-18"},
            {"id": 2, "n": None, "p": None, "day": None},
        ]
        stream_rows(writer, "s", rows)
        delivery = self.deliver(place, copy, writer)
        assert delivery.refused == 0
        assert delivery.goal(0).shape.columns == tuple(columns)
        self.assert_in_step(place, copy, writer)
        if not self.widens:
            return
        describe_stream(writer.log, "s", columns, [("id", "BIGINT"), *columns[1:]])
        stream_rows(writer, "s", [{"id": 1 << 40, "n": 3, "p": "2.00", "day": None}])
        with pytest.raises(ShapeError, match="'id'"):
            self.deliver(place, copy, writer)

    def test_a_users_own_table_of_a_view_of_one_row_is_mended_in_place(self, place: Any) -> None:
        writer = self._one_row()
        copy = self.copy(place, "v", create=False)
        table = self.table(copy)
        place.execute(
            f"CREATE TABLE {table} (n BIGINT NOT NULL, name VARCHAR(50) NOT NULL, "
            "PRIMARY KEY (n, name))"
        )
        self._write_as_before(place, copy, writer, [3, 4, 5])
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        place.execute(f"INSERT INTO {table} (n, name) VALUES (8, 'x')")
        sink = make_sink(copy, place.surroundings)
        with Verifier(copy.name, sink, writer.log, view_shape(writer.views["v"])) as verifier:
            found = verifier.compare()
            assert found.keys == (b"{}",)
            assert verifier.repair(found.keys) == 1
            assert verifier.compare().in_step
        sink.close()
        self.assert_in_step(place, copy, writer)

    def test_a_table_that_was_dropped_is_filled_again(self, place: Any) -> None:
        writer = random_project(8, 4)
        copy = self.copy(place, "orders")
        self.deliver(place, copy, writer)
        place.execute(f"DROP TABLE {self.table(copy)}")
        write_random_tick(writer, random.Random(4))
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

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

    def test_a_kill_never_shows_half_of_a_tick_that_is_wanted_whole(self, place: Any) -> None:
        """Every tick moves amounts between rows: their sum tells a tick torn apart."""
        chance = random.Random(8)
        writer = TickWriter(MemoryLog())
        writer.log.chunk_records = 3
        writer.declare("v", ["id"], [("id", "BIGINT"), ("n", "BIGINT")])
        amounts = dict.fromkeys(range(12), 100)
        copy = self.copy(place, "v", whole=True, batch_rows=2)

        def move() -> None:
            for _ in range(4):
                one, other = chance.sample(range(12), 2)
                amounts[one], amounts[other] = amounts[one] - 7, amounts[other] + 7
            writer.tick({"v": [({"id": i}, {"id": i, "n": n}) for i, n in amounts.items()]})

        move()
        self.deliver(place, copy, writer)
        for line in self.whole_kills:
            move()
            move()
            kill_at_line(lambda: self.deliver(place, copy, writer), self.files, line)
            rows = self.held(place, copy, writer).values()
            assert sum(row["n"] for row in rows) == 1200
        self.deliver(place, copy, writer)
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
