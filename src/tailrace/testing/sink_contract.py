"""What every sink promises, as tests. Subclass `SinkContract` in a test module.

    class TestMySink(SinkContract):
        def target(self, directory): return MyTarget(directory)

A `Target` knows how to declare the sink, how to look at its copy from outside, and how
to take the target down; the suite does the rest over a log in memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tailrace.records.partitioner import partition_for
from tailrace.records.rows import python_rows
from tailrace.sinks.base import Batch, Readable, Shape, Sink, SinkPosition, view_shape
from tailrace.sinks.changes import Collector
from tailrace.sinks.dead_letters import ListedDeadLetters
from tailrace.sinks.declare import Declaration
from tailrace.sinks.delivery import Delivery, DeliverySettings
from tailrace.sinks.errors import (
    SinkAheadError,
    SinkFencedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.changelogs import MemoryLog, TickWriter, random_project, write_random_tick
from tailrace.testing.crash import kill_at_line
from tailrace.testing.side_by_side_contract import SideBySide

Row = dict[str, Any]
COLUMNS = (
    ("id", "BIGINT"),
    ("name", "STRING"),
    ("price", "DECIMAL(10,2)"),
    ("at", "TIMESTAMP"),
    ("day", "DATE"),
    ("open", "BOOLEAN"),
    ("share", "DOUBLE"),
    ("raw", "BINARY"),
    ("tags", "ARRAY<STRING>"),
)
FULL = {
    "id": 1,
    "name": 'it\'s "quoted", né\n\ttab \\ NULL',
    "price": "12.50",
    "at": "2026-11-15T10:20:30.123456Z",
    "day": "2026-02-28",
    "open": True,
    "share": 0.1,
    "raw": "AAEC/w==",
    "tags": ["a", 'b"', "c\\"],
}
EMPTY = {name: None for name, _ in COLUMNS} | {"id": 2}


class Target:
    """One kind of target, for one test."""

    surroundings: Surroundings

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.surroundings = Surroundings(directory)

    def declare(self, view: str, **options: Any) -> Declaration:
        """The declaration of a copy of `view`; `options` go to it."""
        raise NotImplementedError

    def rows(self, copy: Copy) -> list[Row] | None:
        """All rows of the copy as JSON values, read from outside; None: by `Readable`."""
        return None

    def take_down(self) -> None:
        """Make the target unreachable."""
        pytest.skip("this target cannot be taken down in a test")

    def bring_up(self) -> None:
        """Undo `take_down`."""

    def refused_row(self) -> Row | None:
        """A row of the shape (id BIGINT, name STRING) that this target does not take,
        after `prepare_refusal`; None if it takes everything."""
        return None

    def prepare_refusal(self, copy: Copy) -> None:
        """Make the target refuse `refused_row`, before the sink is first opened."""

    def close(self) -> None:
        """Let go of what the target holds."""


class SinkContract(SideBySide):
    """The promises. Flags say which do not apply to a target."""

    keeps_nulls_in_keys = True
    keeps_null_lists = True
    adds_columns = True
    replaces_generations = True
    repairs = True
    moves = True
    forks = True
    kill_lines = range(3, 1400, 97)
    files = ("tailrace/sinks",)

    def target(self, directory: Path) -> Target:
        raise NotImplementedError

    @pytest.fixture
    def place(self, tmp_path: Path) -> Any:
        made = self.target(tmp_path)
        yield made
        made.close()

    # ------------------------------------------------------------------ tools

    def copy(self, place: Target, view: str, **options: Any) -> Copy:
        return Copy(f"{view}.copy", view, view, "view", (), place.declare(view, **options))

    def deliver(
        self,
        place: Target,
        copy: Copy,
        writer: TickWriter,
        prepare: Callable[[Delivery], None] | None = None,
    ) -> Delivery:
        """Bring a copy up to date with a fresh sink, as after a restart."""
        delivery = Delivery(
            copy,
            make_sink(copy, place.surroundings),
            writer.log,
            writer.project,
            ListedDeadLetters(),
            settings=DeliverySettings(most_refused=50),
        )
        if prepare is not None:
            prepare(delivery)
        try:
            delivery.step(0)
        finally:
            delivery.close()
        return delivery

    def held(self, place: Target, copy: Copy, writer: TickWriter) -> dict[bytes, Row]:
        """The copy as it is, by key."""
        view = writer.views[copy.subject]
        rows = place.rows(copy)
        if rows is None:
            sink: Sink = make_sink(copy, place.surroundings)
            assert isinstance(sink, Readable)
            try:
                tables = list(sink.scan(view_shape(view)))
            finally:
                sink.close()
            rows = [row for table in tables for row in python_rows(table)]
        found = {orjson.dumps({name: row[name] for name in view.key}): row for row in rows}
        assert len(found) == len(rows), "a key is there twice"
        return found

    def assert_in_step(self, place: Target, copy: Copy, writer: TickWriter) -> None:
        assert self.held(place, copy, writer) == writer.contents[copy.subject]

    # ------------------------------------------------------------------ promises

    def test_the_copy_equals_the_view(self, place: Target) -> None:
        writer = random_project(1, 12)
        for view in ("totals", "orders"):
            copy = self.copy(place, view)
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

    def test_the_copy_follows_tick_by_tick(self, place: Target) -> None:
        chance = random.Random(7)
        writer = random_project(7, 1, keys=12, changes=8)
        copy = self.copy(place, "orders")
        for _ in range(6):
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)
            write_random_tick(writer, chance, keys=12, changes=8)

    def test_small_batches_give_the_same_copy(self, place: Target) -> None:
        writer = random_project(3, 6, keys=10)
        writer.log.chunk_records = 5
        copy = self.copy(place, "orders", batch_rows=5)
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_the_last_change_of_a_key_wins(self, place: Target) -> None:
        writer = self._simple()
        copy = self.copy(place, "v")
        key = {"id": 1}
        writer.tick(
            {"v": [(key, {"id": 1, "name": "a"}), (key, None), (key, {"id": 1, "name": "b"})]}
        )
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "x"}), ({"id": 2}, None)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        writer.tick({"v": [(key, None)]})
        writer.tick({"v": [(key, {"id": 1, "name": "c"})]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_changes_that_leave_nothing_move_the_position(self, place: Target) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        copy = self.copy(place, "v")
        delivery = self.opened(place, copy, writer)
        delivery.step(0)
        for number in (7, 8):
            writer.tick({"v": [({"id": number}, None)]})
            delivery.step(0)
            writer.tick({})
            delivery.step(0)
        last = writer.tick({"v": [({"id": 2}, {"id": 2, "name": "b"})]})
        delivery.step(0)
        delivery.close()
        sink = make_sink(copy, place.surroundings)
        held = sink.position()
        sink.close()
        assert held is not None
        assert held.offsets == last.ends["v"]
        self.assert_in_step(place, copy, writer)

    def test_every_type_arrives_as_it_was(self, place: Target) -> None:
        writer = TickWriter(MemoryLog())
        writer.declare("v", ["id"], COLUMNS)
        writer.tick({"v": [({"id": 1}, dict(FULL)), ({"id": 2}, dict(EMPTY))]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_view_of_one_row_has_one_row(self, place: Target) -> None:
        writer = self._one_row()
        copy = self.copy(place, "v")
        rows: list[Row | None] = [
            {"n": 5, "name": "a"},
            {"n": 6, "name": None},
            {"n": None, "name": None},
            {"n": None, "name": "b"},
            None,
            {"n": 7, "name": "b"},
            {"n": 5, "name": "a"},
        ]
        for row in rows:
            writer.tick({"v": [({}, row)]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)
        writer.tick({"v": [({}, {"n": n, "name": "c"}) for n in range(3)]})
        writer.tick({"v": [({}, None), ({}, {"n": 9, "name": "d"})]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        delivery = self.opened(place, copy, writer)
        delivery.replay(0)
        delivery.close()
        self.assert_in_step(place, copy, writer)

    def test_a_view_that_comes_to_have_one_row_keeps_none_of_the_old(self, place: Target) -> None:
        if not self.replaces_generations:
            pytest.skip("this target cannot hold two copies")
        columns = [("n", "BIGINT"), ("name", "STRING")]
        copy = self.copy(place, "v")
        writer = TickWriter(MemoryLog())
        for generation, key in enumerate((["n"], []), 1):
            writer.declare("v", key, columns, generation=generation)
            rows = [{"n": n, "name": f"{generation}"} for n in range(3)]
            writer.tick({"v": [({name: row[name] for name in key}, row) for row in rows]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

    def test_values_of_the_past_in_a_view_of_one_row_are_removed(self, place: Target) -> None:
        """Older versions took all columns of such a view for its key."""
        for view, changed in (("v", False), ("w", True)):
            writer = self._one_row(view)
            copy = self.copy(place, view)
            self._write_as_before(place, copy, writer, [3, 4, 5])
            if changed:
                writer.tick({view: [({}, {"n": 6, "name": "a"})]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)
            writer.tick({view: [({}, {"n": 4, "name": "a"})]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)
            writer.tick({view: [({}, None)]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

    def test_a_wrong_view_of_one_row_is_found_and_repaired(self, place: Target) -> None:
        writer = self._one_row()
        writer.tick({"v": [({}, {"n": 5, "name": "a"})]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        shape = view_shape(writer.views["v"])
        sink = make_sink(copy, place.surroundings)
        if not isinstance(sink, Readable):
            pytest.skip("this target cannot be read back")
        sink.open(shape)
        position = sink.position()
        assert position is not None
        collector = Collector(shape, wrapped=False, latest=True)
        collector.offsets, collector.partitions = [1 << 30], [0]
        collector.keys, collector.values = [b"{}"], [b'{"n":6,"name":"changed"}']
        sink.apply(collector.make(position)[0])
        self.settle(sink)
        with Verifier(copy.name, sink, writer.log, shape) as verifier:
            found = verifier.compare()
            assert [(one.key, one.found) for one in found.differences] == [
                ({}, {"n": 6, "name": "changed"})
            ]
            if self.repairs:
                assert verifier.repair(found.keys) == 1
                self.settle(sink)
                assert verifier.compare().in_step
        sink.close()

    def _one_row(self, view: str = "v") -> TickWriter:
        writer = TickWriter(MemoryLog())
        writer.declare(view, [], [("n", "BIGINT"), ("name", "STRING")])
        return writer

    def _write_as_before(
        self, place: Target, copy: Copy, writer: TickWriter, values: list[int]
    ) -> None:
        """Deliver a view of one row as older versions did: under all columns as key."""
        view = copy.subject
        sink = make_sink(copy, place.surroundings)
        if not isinstance(sink, Readable):
            pytest.skip("this target keeps nothing")
        info = writer.views[view]
        shape = Shape(info.columns, tuple(name for name, _ in info.columns))
        sink.open(shape)
        for value in values:
            row = {"n": value, "name": "a"}
            tick = writer.tick({view: [({}, row)]})
            ends = tick.ends[info.topic]
            partition = partition_for(b"{}", writer.partitions)
            collector = Collector(shape, wrapped=False, latest=True)
            collector.offsets, collector.partitions = [ends[partition] - 2], [partition]
            collector.keys, collector.values = [b"{}"], [orjson.dumps(row)]
            position = SinkPosition(info.topic, 1, tick.tick, ends, tick.ts_ms)
            sink.apply(collector.make(position)[0])
        self.settle(sink)
        assert sum(table.num_rows for table in sink.scan(shape)) == len(values)
        sink.close()

    def test_replaying_any_suffix_gives_the_same_copy(self, place: Target) -> None:
        writer = random_project(9, 8, keys=8, changes=6)
        copy = self.copy(place, "orders")
        self.deliver(place, copy, writer)
        ends = {i: p.end for i, p in enumerate(writer.log.topics["orders"])}
        chance = random.Random(1)
        for _ in range(4):
            back = SinkPosition(
                "orders", 1, 0, {p: chance.randint(0, end) for p, end in ends.items()}
            )

            def rewind(delivery: Delivery, back: SinkPosition = back) -> None:
                goal = delivery._goal(0)
                assert goal is not None
                delivery.sink.open(goal.shape)
                delivery._shape = goal.shape
                delivery.position = back

            self.deliver(place, copy, writer, rewind)
            self.assert_in_step(place, copy, writer)

    def test_a_writer_that_was_replaced_changes_nothing(self, place: Target) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "first"})]})
        copy = self.copy(place, "v")
        zombie = Delivery(
            copy, make_sink(copy, place.surroundings), writer.log, "shop", ListedDeadLetters()
        )
        zombie.step(0)
        successor = Delivery(
            copy, make_sink(copy, place.surroundings), writer.log, "shop", ListedDeadLetters()
        )
        successor.step(0)
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "second"})]})
        with pytest.raises(SinkFencedError):
            zombie.step(0)
        zombie.close()
        assert self.held(place, copy, writer)[b'{"id":1}']["name"] == "first"
        successor.step(0)
        successor.close()
        self.assert_in_step(place, copy, writer)

    def test_null_parts_of_keys_are_values_like_others(self, place: Target) -> None:
        if not self.keeps_nulls_in_keys:
            pytest.skip("this target has no NULL in keys")
        writer = TickWriter(MemoryLog())
        writer.declare("v", ["a", "b"], [("a", "STRING"), ("b", "BIGINT"), ("n", "BIGINT")])
        keys: list[Row] = [{"a": None, "b": 1}, {"a": None, "b": None}, {"a": "x", "b": None}]
        copy = self.copy(place, "v")
        for round_ in range(3):
            writer.tick({"v": [(key, {**key, "n": round_}) for key in keys]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)
        writer.tick({"v": [(keys[1], None)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_new_column_appears_in_the_copy(self, place: Target) -> None:
        if not self.adds_columns:
            pytest.skip("this target has no columns")
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "old"})]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING"), ("size", "INT")])
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "new", "size": 7})]})
        self.deliver(place, copy, writer)
        writer.contents["v"][b'{"id":1}']["size"] = None
        self.assert_in_step(place, copy, writer)

    def test_a_new_generation_takes_the_place_of_the_old(self, place: Target) -> None:
        if not self.replaces_generations:
            pytest.skip("this target cannot hold two copies")
        writer = self._simple()
        writer.tick({"v": [({"id": n}, {"id": n, "name": "old"}) for n in range(5)]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING")], generation=2)
        writer.tick({"v": [({"id": n}, {"id": n, "name": "new"}) for n in range(3, 8)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        writer.tick({"v": [({"id": 3}, None)]})
        delivery = self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        assert delivery.position is not None
        assert delivery.position.generation == 2

    def test_a_new_generation_is_noticed_while_the_sink_runs(self, place: Target) -> None:
        if not self.replaces_generations:
            pytest.skip("this target cannot hold two copies")
        writer = self._simple()
        copy = self.copy(place, "v")
        delivery = self.opened(place, copy, writer)
        for generation, ids in enumerate([range(5), range(3, 8), range(7, 9)], 1):
            writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING")], generation)
            # The same number of records in each: offsets alone do not tell them apart.
            rows = [({"id": n}, {"id": n, "name": str(generation)}) for n in ids]
            writer.tick({"v": [(key, row) for _ in range(5) for key, row in rows][:5]})
            delivery.step(0)
            assert delivery.lag == 0
            assert delivery.position is not None
            assert delivery.position.generation == generation
        delivery.close()
        self.assert_in_step(place, copy, writer)

    def test_a_copy_ahead_of_the_log_is_refused(self, place: Target) -> None:
        copy = self.copy(place, "orders")
        self.deliver(place, copy, random_project(1, 10))
        with pytest.raises(SinkAheadError) as caught:
            self.deliver(place, copy, random_project(1, 2))
        assert "replay" in caught.value.hint

    def test_a_sink_that_is_pointed_elsewhere_fills_the_new_place(self, place: Target) -> None:
        if not self.moves:
            pytest.skip("what was told once is not told again")
        writer = random_project(8, 4)
        for view in ("orders", "elsewhere", "orders"):
            copy = Copy("one", "orders", "orders", "view", (), place.declare(view))
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)
            write_random_tick(writer, random.Random(4))

    def test_a_copy_behind_the_log_catches_up(self, place: Target) -> None:
        writer = random_project(5, 2)
        copy = self.copy(place, "orders")
        self.deliver(place, copy, writer)
        chance = random.Random(5)
        for _ in range(12):
            write_random_tick(writer, chance)
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_deletes_compacted_away_meanwhile_are_found(self, place: Target) -> None:
        copy = self.copy(place, "v")
        if not isinstance(make_sink(copy, place.surroundings), Readable):
            pytest.skip("this target cannot be read back")
        writer = self._simple()
        writer.now_ms -= 30 * 24 * 3600 * 1000
        writer.tick({"v": [({"id": n}, {"id": n, "name": "a"}) for n in range(6)]})
        self.deliver(place, copy, writer)
        writer.tick({"v": [({"id": 2}, None), ({"id": 3}, {"id": 3, "name": "b"})]})
        for partition in writer.log.topics["v"]:
            partition.compact()
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_rows_swept_or_repaired_follow_the_log_again(self, place: Target) -> None:
        copy = self.copy(place, "v")
        sink = make_sink(copy, place.surroundings)
        if not isinstance(sink, Readable):
            pytest.skip("this target cannot be read back")
        writer = self._simple()
        shape = Shape(writer.views["v"].columns, writer.views["v"].key)
        writer.now_ms -= 30 * 24 * 3600 * 1000
        sides = {partition_for(b'{"id":%d}' % n, 2): n for n in range(20)}
        long, short = sides[0], sides[1]  # one partition grows much further than the other
        for n in range(40):
            writer.tick({"v": [({"id": long}, {"id": long, "name": f"n{n}"})]})
        writer.tick({"v": [({"id": short}, {"id": short, "name": "a"})]})
        self.deliver(place, copy, writer)
        writer.tick({"v": [({"id": short}, None)]})
        for partition in writer.log.topics["v"]:
            partition.compact()
        self.deliver(place, copy, writer)  # swept
        writer.tick({"v": [({"id": short}, {"id": short, "name": "b"})]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        if self.repairs:
            key = orjson.dumps({"id": short})
            with Verifier(copy.name, sink, writer.log, shape) as verifier:
                assert verifier.repair([key]) == 1
            sink.close()
            writer.tick({"v": [({"id": short}, {"id": short, "name": "c"})]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

    def test_clocks_that_differ_change_nothing(self, place: Target) -> None:
        day_ms = 24 * 3600 * 1000
        writer = self._simple()
        copy = self.copy(place, "v")
        for number, shift in enumerate((10, -40, 0, 30)):
            writer.now_ms += shift * day_ms
            writer.tick({"v": [({"id": 1}, {"id": 1, "name": f"n{number}"}), ({"id": 2}, None)]})
            writer.tick({"v": [({"id": 2}, {"id": 2, "name": f"n{number}"})]})
            delivery = self.deliver(place, copy, writer)
            told = delivery.freshness_ms()
            assert told is not None
            assert told >= 0
            assert delivery.freshness_ms() == 0  # nothing came since
            self.assert_in_step(place, copy, writer)

    def test_nothing_is_lost_while_the_target_is_down(self, place: Target) -> None:
        writer = random_project(4, 3)
        copy = self.copy(place, "orders")
        self.deliver(place, copy, writer)
        place.take_down()
        write_random_tick(writer, random.Random(1), changes=40)
        with pytest.raises(TargetUnavailableError) as caught:
            self.deliver(place, copy, writer)
        assert caught.value.hint
        place.bring_up()
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_rows_the_target_refuses_are_put_aside_and_the_rest_goes_on(
        self, place: Target
    ) -> None:
        bad = place.refused_row()
        if bad is None:
            pytest.skip("this target takes everything")
        writer = self._simple()
        copy = self.copy(place, "v")
        place.prepare_refusal(copy)
        rows = [({"id": n}, {"id": n, "name": "good"}) for n in range(20)]
        writer.tick({"v": [*rows[:9], ({"id": bad["id"]}, bad), *rows[9:]]})
        delivery = self.deliver(place, copy, writer)
        letters = delivery._dead_letters
        assert isinstance(letters, ListedDeadLetters)
        assert [letter.row for letter in letters.letters.values()] == [bad]
        del writer.contents["v"][orjson.dumps({"id": bad["id"]})]
        self.assert_in_step(place, copy, writer)
        writer.tick({"v": [({"id": 3}, None)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_records_that_are_no_rows_are_put_aside(self, place: Target) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "good"})]})
        partition = writer.log.topics["v"][0]
        partition.append(b'{"id":5}', b"not json")
        partition.append(b'{"id":6}', b'{"row":{"id":"six"}}')
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "good"})]})
        copy = self.copy(place, "v")
        delivery = self.deliver(place, copy, writer)
        assert delivery.refused == 2
        self.assert_in_step(place, copy, writer)

    def test_differences_are_found_and_repaired(self, place: Target) -> None:
        writer = self._simple()
        rows: list[tuple[Row, Row | None]] = [
            ({"id": n}, {"id": n, "name": f"n{n}"}) for n in range(50)
        ]
        writer.tick({"v": rows})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        view = writer.views["v"]
        shape = Shape(view.columns, view.key)
        sink = make_sink(copy, place.surroundings)
        if not isinstance(sink, Readable):
            pytest.skip("this target cannot be read back")
        sink.open(shape)
        position = sink.position()
        assert position is not None
        collector = Collector(shape, wrapped=False, latest=True)
        far = 1 << 30  # newer than anything the log wrote, for targets that compare versions
        collector.offsets = [far, far + 1, far + 2]
        collector.partitions = [0, 0, 0]
        collector.keys = [b'{"id":7}', b'{"id":8}', b'{"id":99}']
        collector.values = [b'{"id":7,"name":"changed"}', None, b'{"id":99,"name":"extra"}']
        sink.apply(collector.make(position)[0])
        self.settle(sink)
        with Verifier(copy.name, sink, writer.log, shape) as verifier:
            found = verifier.compare()
            assert [difference.key["id"] for difference in found.differences] == [7, 8, 99]
            assert 1 <= len(found.ranges) <= 3
            assert (found.rows, found.count) == (50, 3)
            if self.repairs:
                assert verifier.repair(found.keys) == 3
                self.settle(sink)
                assert verifier.compare().in_step
        sink.close()

    def test_a_replay_fills_the_copy_again(self, place: Target) -> None:
        writer = random_project(6, 5)
        copy = self.copy(place, "orders")
        self.deliver(place, copy, writer)
        delivery = Delivery(
            copy, make_sink(copy, place.surroundings), writer.log, "shop", ListedDeadLetters()
        )
        delivery.replay(0)
        self.assert_in_step(place, copy, writer)
        write_random_tick(writer, random.Random(2))
        delivery.step(0)
        delivery.close()
        self.assert_in_step(place, copy, writer)

    def test_nested_documents_arrive_whole(self, place: Target) -> None:
        writer = TickWriter(MemoryLog())
        columns = [
            ("id", "BIGINT"),
            ("customer", "STRUCT<name: STRING, tags: ARRAY<STRING>>"),
            ("lines", "ARRAY<STRUCT<sku: STRING, n: INT, price: DECIMAL(8,2)>>"),
        ]
        writer.declare("v", ["id"], columns)
        line = {"sku": 'a"b', "n": 2, "price": "1.50"}
        documents: list[Row] = [
            {"id": 1, "customer": {"name": "Ann", "tags": ["x", "y"]}, "lines": [line, line]},
            {"id": 2, "customer": {"name": None, "tags": []}, "lines": []},
            {"id": 3, "customer": None, "lines": None if self.keeps_null_lists else []},
        ]
        writer.tick({"v": [({"id": row["id"]}, row) for row in documents]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        documents[0]["lines"] = [{**line, "n": 3}]
        writer.tick({"v": [({"id": 1}, documents[0]), ({"id": 3}, None)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_whole_tick_is_applied_together_if_asked(self, place: Target) -> None:
        writer = self._simple()
        writer.log.chunk_records = 4
        copy = self.copy(place, "v", whole=True, batch_rows=5)
        applied: list[int] = []

        def watch(delivery: Delivery) -> None:
            apply = delivery.sink.apply

            def counted(batch: Batch) -> None:
                applied.append(batch.changes.num_rows)
                apply(batch)

            delivery.sink.apply = counted  # type: ignore[method-assign]

        for name in ("a", "b"):
            writer.tick({"v": [({"id": n}, {"id": n, "name": name}) for n in range(40)]})
            self.deliver(place, copy, writer, watch)
            self.assert_in_step(place, copy, writer)
        assert applied == [40, 40]

    def opened(self, place: Target, copy: Copy, writer: TickWriter) -> Delivery:
        """A delivery that remembers what it is told, as a process does."""
        return Delivery(
            copy,
            make_sink(copy, place.surroundings),
            writer.log,
            writer.project,
            ListedDeadLetters(),
            memory=place.directory / f"{copy.name}.columns",
        )

    def settle(self, sink: Sink) -> None:
        """Wait until what was applied can be read; targets that need it override this."""

    def test_closing_twice_is_allowed(self, place: Target) -> None:
        sink = make_sink(self.copy(place, "v"), place.surroundings)
        sink.close()
        sink.close()

    def test_a_kill_at_any_line_loses_and_repeats_nothing(self, place: Target) -> None:
        self.kill_everywhere(place, self.kill_lines)

    def kill_everywhere(self, place: Target, lines: Any) -> int:
        writer = random_project(21, 2, keys=12, changes=10)
        chance = random.Random(3)
        copy = self.copy(place, "orders", batch_rows=7)
        writer.log.chunk_records = 4
        kills = 0

        def catch_up() -> None:
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

        for line in lines:
            kills += kill_at_line(lambda: self.deliver(place, copy, writer), self.files, line)
            if self.forks:
                catch_up()
            else:  # a library that does not survive a fork: nothing of it in this process
                assert not kill_at_line(catch_up, ("no such file",), 1)
            write_random_tick(writer, chance, keys=12, changes=10)
        assert kills
        return kills

    def _simple(self) -> TickWriter:
        writer = TickWriter(MemoryLog())
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING")])
        return writer
