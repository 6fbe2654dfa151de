"""A second copy beside the one in use: filled, compared, switched, rolled back.

Part of `SinkContract`, whose tools it uses; skipped for targets that hold one copy.
"""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.sinks.base import Replaceable
from tailrace.sinks.errors import SinkError, SinkHeldError
from tailrace.sinks.registry import Copy, make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.crash import kill_at_line


class SideBySide:
    """The promises about two copies."""

    copy: Any
    deliver: Any
    opened: Any
    held: Any
    settle: Any
    assert_in_step: Any
    _simple: Any
    forks: bool
    switch_kills = range(260, 760, 120)

    def _need_two(self, place: Any, copy: Copy) -> None:
        if not isinstance(make_sink(copy, place.surroundings), Replaceable):
            pytest.skip("this target cannot hold two copies")

    def test_a_switch_can_be_rolled_back(self, place: Any) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "old"})]})
        copy = self.copy(place, "v")
        self._need_two(place, copy)
        sink: Any = make_sink(copy, place.surroundings)
        self.deliver(place, copy, writer)
        kept = writer.views["v"], dict(writer.contents["v"])
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING")], generation=2)
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "new"})]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        sink.rollback()
        position = sink.position()
        sink.close()
        assert position is not None
        assert position.generation == 1
        writer.views["v"], writer.contents["v"] = kept
        self.assert_in_step(place, copy, writer)

    def test_a_second_copy_is_filled_compared_switched_and_rolled_back(self, place: Any) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": n}, {"id": n, "name": "first"}) for n in range(30)]})
        copy = self.copy(place, "v", batch_rows=7)
        self._need_two(place, copy)
        delivery = self.opened(place, copy, writer)
        assert delivery.sink.position() is None
        with pytest.raises(SinkError, match="no copy yet"):
            delivery.rebuild(0)
        delivery.close()
        self.deliver(place, copy, writer)
        with pytest.raises(SinkError, match="no copy beside"):
            delivery.switch(0)
        with pytest.raises(SinkError, match="no copy to go back to"):
            delivery.rollback()
        beside, goal = delivery.rebuild(0)
        self.settle(beside)
        with Verifier(copy.name, beside, writer.log, goal.shape) as verifier:
            assert verifier.compare().in_step
        beside.close()
        before = dict(writer.contents["v"])
        assert self.held(place, copy, writer) == before
        writer.tick({"v": [({"id": 3}, None), ({"id": 4}, {"id": 4, "name": "second"})]})
        delivery.switch(0)
        delivery.close()
        self.assert_in_step(place, copy, writer)
        self.deliver(place, copy, writer)
        delivery = self.opened(place, copy, writer)
        back = delivery.rollback()
        delivery.close()
        assert back.tick == 1
        assert self.held(place, copy, writer) == before
        self.deliver(place, copy, writer)  # of the same generation: it catches up
        self.assert_in_step(place, copy, writer)

    def test_a_copy_rolled_back_to_an_older_generation_stays_there_until_told(
        self, place: Any
    ) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "old"})]})
        copy = self.copy(place, "v")
        self._need_two(place, copy)
        self.deliver(place, copy, writer)
        old = writer.views["v"], dict(writer.contents["v"])
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING")], generation=2)
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "new"})]})
        delivery = self.opened(place, copy, writer)
        delivery.step(0)
        delivery.rollback()
        writer.tick({"v": [({"id": 3}, {"id": 3, "name": "newer"})]})
        for _ in range(2):
            with pytest.raises(SinkHeldError) as held:
                delivery.step(0)
            assert "switch" in held.value.hint
            delivery.close()
        assert self.held(place, copy, writer) == old[1]
        delivery.switch(0)
        delivery.step(0)
        delivery.close()
        self.assert_in_step(place, copy, writer)

    def test_a_view_that_goes_back_finds_the_copy_of_its_generation(self, place: Any) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "old"})]})
        copy = self.copy(place, "v")
        self._need_two(place, copy)
        self.deliver(place, copy, writer)
        old = writer.views["v"], dict(writer.contents["v"])
        writer.declare("v", ["id"], [("id", "BIGINT"), ("name", "STRING")], generation=2)
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "new"})]})
        self.deliver(place, copy, writer)
        writer.views["v"], writer.contents["v"] = old
        writer.tick({"v": [({"id": 5}, {"id": 5, "name": "old again"})]})
        delivery = self.deliver(place, copy, writer)
        assert delivery.position is not None
        assert delivery.position.generation == 1
        self.assert_in_step(place, copy, writer)

    def test_a_switch_killed_anywhere_is_finished_or_undone(self, place: Any) -> None:
        self._need_two(place, self.copy(place, "v"))
        self.kill_switches(place)

    def kill_switches(self, place: Any) -> None:
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "one"})]})
        copy = self.copy(place, "v")

        def catch_up() -> None:
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)

        def apart() -> None:
            if self.forks:
                catch_up()
            else:  # a library that does not survive a fork: nothing of it in this process
                assert not kill_at_line(catch_up, ("no such file",), 1)

        apart()
        for generation, line in enumerate(self.switch_kills, 2):
            columns = [("id", "BIGINT"), ("name", "STRING")]
            writer.declare("v", ["id"], columns, generation=generation)
            rows = [{"id": n, "name": f"of {generation}"} for n in (1, generation)]
            writer.tick({"v": [({"id": row["id"]}, row) for row in rows]})
            kill_at_line(lambda: self.deliver(place, copy, writer), ["tailrace/sinks/"], line)
            apart()
