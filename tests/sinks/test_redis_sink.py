from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
import redis

from tailrace.sinks import Redis
from tailrace.sinks.base import Shape
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
            verifier.repair(found)
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
