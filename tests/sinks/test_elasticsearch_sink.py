from __future__ import annotations

import itertools
import os

import pytest

from servers.elasticsearch import Elasticsearch as StandIn
from tailrace.sinks import Elasticsearch
from tailrace.sinks.base import Shape
from tailrace.sinks.errors import SinkDeclarationError
from tailrace.sinks.registry import make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import SinkContract, Target

_numbers = itertools.count()


class ElasticsearchTarget(Target):
    """The stand-in, or the server that TAILRACE_TEST_ELASTICSEARCH names."""

    def __init__(self, directory):
        super().__init__(directory)
        self.real = os.environ.get("TAILRACE_TEST_ELASTICSEARCH")
        self.stand_in = None if self.real else StandIn()
        self.prefix = f"test{os.getpid()}-{next(_numbers)}"
        self.mappings = None

    def declare(self, view, **options):
        url = self.real or self.stand_in.url
        options.setdefault("mappings", self.mappings)
        return Elasticsearch(
            url, index=f"{self.prefix}-{view}", name=f"{self.prefix}-{view}", **options
        )

    def take_down(self):
        if self.stand_in is None:
            pytest.skip("a real server is not ours to stop")
        self.stand_in.stop()

    def bring_up(self):
        self.stand_in.start()

    def refused_row(self):
        return {"id": 100, "name": "not an address"}

    def prepare_refusal(self, copy):
        """`name` is mapped to an address; see `declare`."""

    def close(self):
        if self.stand_in is not None:
            self.stand_in.stop()


class TestElasticsearchSink(SinkContract):
    kill_lines = range(3, 600, 80)

    def target(self, directory):
        return ElasticsearchTarget(directory)

    def test_rows_the_target_refuses_are_put_aside_and_the_rest_goes_on(self, place):
        place.mappings = {"name": {"type": "ip"}}
        good = {"id": 1, "name": "10.0.0.1"}
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, good), ({"id": 100}, place.refused_row())]})
        delivery = self.deliver(place, self.copy(place, "v"), writer)
        assert delivery.refused == 1
        del writer.contents["v"][b'{"id":100}']
        self.assert_in_step(place, self.copy(place, "v"), writer)

    def test_people_search_an_alias(self, place):
        if place.stand_in is None:
            pytest.skip("looks into the stand-in")
        copy = self.copy(place, "totals")
        self.deliver(place, copy, random_project(1, 3))
        alias = f"{place.prefix}-totals"
        assert place.stand_in.aliases[alias] == {f"{alias}-1"}
        assert f"tailrace-{alias}" in place.stand_in.templates

    def test_an_index_that_was_deleted_is_filled_again(self, place):
        writer = random_project(1, 3)
        copy = self.copy(place, "totals")
        self.deliver(place, copy, writer)
        sink = make_sink(copy, place.surroundings)
        sink._http.ask("DELETE", f"/{place.prefix}-totals-1")
        sink.close()
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)

    def test_changes_after_a_repair_still_win(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": n}, {"id": n, "name": "a"}) for n in range(5)]})
        copy = self.copy(place, "v")
        self.deliver(place, copy, writer)
        sink = make_sink(copy, place.surroundings)
        path = f"/{place.prefix}-v-1/_doc/3"
        sink._http.ask("PUT", path, {"id": 3, "name": "somebody"})
        view = writer.views["v"]
        shape = Shape(view.columns, view.key)
        with Verifier(copy.name, sink, writer.log, shape) as verifier:
            found = verifier.compare()
            assert [difference.key for difference in found.differences] == [{"id": 3}]
            assert verifier.repair(found.keys) == 1
        sink.close()
        self.assert_in_step(place, copy, writer)
        writer.tick({"v": [({"id": 3}, {"id": 3, "name": "newest"})]})
        self.deliver(place, copy, writer)
        self.assert_in_step(place, copy, writer)


def test_an_index_must_be_lower_case():
    with pytest.raises(SinkDeclarationError):
        Elasticsearch("http://x", index="Orders")
