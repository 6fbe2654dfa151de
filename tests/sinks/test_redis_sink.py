from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
import redis

from tailrace.sinks import Redis
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
