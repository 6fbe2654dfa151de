from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
import redis

from tailrace.sinks import Redis
from tailrace.sinks.base import Shape, SinkPosition
from tailrace.sinks.changes import Collector
from tailrace.sinks.errors import SinkError, TargetRefusedError
from tailrace.sinks.registry import make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import SinkContract, Target

_numbers = itertools.count()


class RedisTarget(Target):
    format = "hash"

    def __init__(self, directory, server):
        super().__init__(directory)
        self.server = server
        self.prefix = f"test{next(_numbers)}*[x]"

    def declare(self, view, **options):
        options.setdefault("format", self.format)
        return Redis(self.server.url, prefix=f"{self.prefix}:{view}", **options)

    def take_down(self):
        self.server.stop()

    def bring_up(self):
        self.server.start()

    def client(self):
        return redis.Redis.from_url(self.server.url, decode_responses=True)


class TestRedisHashes(SinkContract):
    kill_lines = range(3, 500, 60)

    @pytest.fixture
    def place(self, tmp_path, redis_server):
        return RedisTarget(tmp_path, redis_server)

    def test_composite_keys_are_joined_with_escapes(self, place):
        writer = self._simple()
        writer.declare("v", ["a", "b"], [("a", "STRING"), ("b", "BIGINT"), ("n", "INT")])
        writer.tick({"v": [({"a": "x:y\\", "b": None}, {"a": "x:y\\", "b": None, "n": 1})]})
        self.deliver(place, self.copy(place, "v"), writer)
        with place.client() as client:
            assert client.hgetall(f"{place.prefix}:v:x\\:y\\\\:\\N") == {"a": "x:y\\", "n": "1"}

    def test_deletes_leave_a_tombstone_that_expires(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        copy = self.copy(place, "v", tombstones=timedelta(hours=1))
        self.deliver(place, copy, writer)
        writer.tick({"v": [({"id": 1}, None)]})
        self.deliver(place, copy, writer)
        with place.client() as client:
            assert not client.exists(f"{place.prefix}:v:1")
            assert 0 < client.ttl(f"{place.prefix}:v:_tailrace:1") <= 3600

    @pytest.mark.parametrize("options", [{}, {"expire": timedelta(days=1)}])
    @pytest.mark.parametrize("form", ["hash", "json", "string"])
    def test_an_older_change_never_replaces_a_newer_row(self, place, form, options):
        writer = self._simple()
        copy = self.copy(place, "v", format=form, **options)
        shape = Shape(writer.views["v"].columns, writer.views["v"].key)
        sink = make_sink(copy, place.surroundings)
        sink.open(shape)
        big = 600 << 44  # beyond what a double can tell apart

        def write(*changes, forced=False):
            collector = Collector(shape, wrapped=False, latest=True)
            for offset, number, name in changes:
                collector.offsets.append(offset)
                collector.partitions.append(0)
                collector.keys.append(b'{"id":%d}' % number)
                collector.values.append(name and b'{"id":%d,"name":"%s"}' % (number, name))
            position = SinkPosition("v", big >> 44, 1, {0: 10})
            sink.apply(replace(collector.make(position)[0], forced=forced))

        def names():
            return {
                row["id"]: row["name"] for table in sink.scan(shape) for row in table.to_pylist()
            }

        write((5, 1, b"five"), (6, 2, b"six"), (7, 3, None))
        write((4, 1, b"four"), (5, 2, None), (6, 3, b"six"), (1, 4, b"one"))
        assert names() == {1: "five", 2: "six", 4: "one"}
        write((5, 1, b"five"), (6, 2, b"six"), (7, 3, None))  # again
        write((4, 1, None), (8, 3, b"eight"), (7, 2, None))
        assert names() == {1: "five", 3: "eight", 4: "one"}
        write((7, 3, None), (6, 2, b"six"))
        assert names() == {1: "five", 3: "eight", 4: "one"}
        write((2, 3, b"repaired"), (2, 1, None), forced=True)
        assert names() == {3: "repaired", 4: "one"}
        write((3, 3, b"three"), (1, 1, b"one"))
        assert names() == {3: "three", 4: "one"}
        sink.close()

    def test_batches_larger_than_luas_stack_are_applied(self, place):
        writer = self._simple()
        copy = self.copy(place, "v", batch_rows=50_000)
        for name in ("a", "b"):
            writer.tick({"v": [({"id": n}, {"id": n, "name": name}) for n in range(9_000)]})
        writer.tick({"v": [({"id": n}, None) for n in range(8_900)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_copy_rolled_back_keeps_its_own_versions_and_deletes(self, place):
        columns = [("id", "BIGINT"), ("name", "STRING")]
        writer = self._simple()
        copy = self.copy(place, "v")
        writer.tick({"v": [({"id": n}, {"id": n, "name": "old"}) for n in range(4)]})
        writer.tick({"v": [({"id": 0}, None)]})
        self.deliver(place, copy, writer)
        old = writer.views["v"], dict(writer.contents["v"])
        writer.declare("v", ["id"], columns, generation=2)
        writer.tick({"v": [({"id": n}, {"id": n, "name": "new"}) for n in range(6)]})
        writer.tick({"v": [({"id": n}, None) for n in (1, 5)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)
        writer.views["v"], writer.contents["v"] = old
        writer.tick({"v": [({"id": n}, {"id": n, "name": "again"}) for n in (0, 1, 5)]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_keys_named_like_our_own_are_rows_like_others(self, place):
        writer = self._simple()
        writer.declare("v", ["a"], [("a", "STRING"), ("n", "INT")])
        names = ["_tailrace", "_tailrace-versions", "_tailrace:x", "\\_tailrace", "", ":", "né/ü?*"]
        names.append("x" * 10_000)
        copy = self.copy(place, "v")
        for n in range(2):
            writer.tick({"v": [({"a": name}, {"a": name, "n": n}) for name in names]})
            self.deliver(place, copy, writer)
            self.assert_in_step(place, copy, writer)
        writer.tick({"v": [({"a": name}, None) for name in names[:4]]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_row_of_nothing_but_null_is_a_row(self, place):
        writer = self._simple()
        writer.declare("v", ["a"], [("a", "STRING")])
        writer.tick({"v": [({"a": None}, {"a": None}), ({"a": "x"}, {"a": "x"})]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_entries_can_expire(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        self.deliver(place, self.copy(place, "v", expire=timedelta(minutes=5)), writer)
        with place.client() as client:
            assert 0 < client.ttl(f"{place.prefix}:v:1") <= 300

    def test_invalidation_removes_what_changed(self, place):
        writer = self._simple()
        with place.client() as client:
            for n in (1, 2):
                client.set(f"{place.prefix}:v:{n}", "cached by someone")
            writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
            self.deliver(place, self.copy(place, "v", mode="invalidate"), writer)
            assert not client.exists(f"{place.prefix}:v:1")
            assert client.get(f"{place.prefix}:v:2") == "cached by someone"

    def test_strings_hold_the_first_column_beside_the_key(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        self.deliver(place, self.copy(place, "v", format="string"), writer)
        with place.client() as client:
            assert client.get(f"{place.prefix}:v:1") == "a"

    def test_strings_can_be_compared_and_repaired(self, place):
        writer = self._simple()
        writer.declare(
            "v", ["a", "b"], [("a", "STRING"), ("b", "BIGINT"), ("n", "INT"), ("m", "INT")]
        )
        keys = [{"a": "x:y\\", "b": None}, {"a": "x", "b": 2}, {"a": "", "b": 3}]
        writer.tick({"v": [(key, {**key, "n": n, "m": 9}) for n, key in enumerate(keys)]})
        copy = self.copy(place, "v", format="string")
        self.deliver(place, copy, writer)
        view = writer.views["v"]
        sink = make_sink(copy, place.surroundings)
        with Verifier(copy.name, sink, writer.log, Shape(view.columns, view.key)) as verifier:
            assert verifier.compare().in_step
            with place.client() as client:
                client.set(f"{place.prefix}:v:x:2", "77")
            found = verifier.compare()
            assert [d.found for d in found.differences] == [{"a": "x", "b": 2, "n": 77}]
            verifier.repair(found.keys)
            assert verifier.compare().in_step
        sink.close()

    def test_invalidation_leaves_nothing_to_compare_or_to_switch(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        copy = self.copy(place, "v", mode="invalidate")
        self.deliver(place, copy, writer)
        delivery = self.opened(place, copy, writer)
        with pytest.raises(SinkError, match="cannot be read back"):
            Verifier(copy.name, delivery.sink, writer.log, Shape((), ("id",)))
        with pytest.raises(SinkError, match="one copy only"):
            delivery.rebuild(0)
        delivery.close()

    def test_a_replica_is_told_apart_from_a_server_that_is_down(self, place):
        writer = random_project(1, 2)
        copy = self.copy(place, "orders")
        with place.client() as client:
            client.replicaof("127.0.0.1", 1)
            try:
                with pytest.raises(TargetRefusedError) as caught:
                    self.deliver(place, copy, writer)
                assert "read only" in caught.value.detail
                assert "replica" in caught.value.hint
            finally:
                client.replicaof("NO", "ONE")
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_a_password_that_is_wrong_is_told(self, place):
        with place.client() as client:
            client.config_set("requirepass", "hush")
            try:
                with pytest.raises(TargetRefusedError) as caught:
                    self.deliver(place, self.copy(place, "orders"), random_project(1, 2))
                assert "password" in caught.value.hint
            finally:
                client.config_set("requirepass", "")

    def test_a_flushed_redis_is_filled_again(self, place):
        writer = random_project(1, 4)
        copy = self.copy(place, "orders")
        self.deliver(place, copy, writer)
        with place.client() as client:
            client.flushall()
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)


@pytest.mark.thorough
class TestRedisJson(SinkContract):
    kill_lines = range(5, 400, 120)

    @pytest.fixture
    def place(self, tmp_path, redis_server):
        made = RedisTarget(tmp_path, redis_server)
        made.format = "json"
        return made
