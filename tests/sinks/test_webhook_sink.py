from __future__ import annotations

import hmac
from dataclasses import replace

import orjson
import pytest

from servers.receivers import WebhookReceiver
from tailrace.sinks import Webhook, webhook
from tailrace.sinks.errors import (
    RowsRefusedError,
    SinkDeclarationError,
    TargetRefusedError,
    TargetUnavailableError,
)
from tailrace.sinks.webhook import sign
from tailrace.testing.changelogs import random_project
from tailrace.testing.sink_contract import SinkContract, Target


class WebhookTarget(Target):
    def __init__(self, directory):
        super().__init__(directory)
        self.receiver = WebhookReceiver()

    def declare(self, view, **options):
        options.setdefault("secret", "s3cret")
        return Webhook(f"http://127.0.0.1:{self.receiver.port}/hook?a=1", **options)

    def rows(self, copy):
        return self.receiver.rows(copy.subject)

    def take_down(self):
        self.receiver.stop()

    def bring_up(self):
        self.receiver.start()

    def refused_row(self):
        return {"id": 100, "name": "forbidden"}

    def prepare_refusal(self, copy):
        self.receiver.judge = lambda c: 422 if (c["row"] or {}).get("name") == "forbidden" else 200

    def close(self):
        self.receiver.stop()


class TestWebhookSink(SinkContract):
    moves = False
    adds_columns = False
    replaces_generations = False
    kill_lines = range(3, 700, 90)

    def target(self, directory):
        return WebhookTarget(directory)

    def test_changes_of_a_key_arrive_in_order(self, place):
        writer = self._simple()
        for n in range(20):
            writer.tick({"v": [({"id": i}, {"id": i, "name": str(n)}) for i in range(5)]})
        self.deliver(place, self.copy(place, "v", parallel=4), writer)
        for i in range(5):
            names = [c["row"]["name"] for c in place.receiver.changes if c["key"]["id"] == i]
            assert names == [str(n) for n in range(20)]

    def test_requests_are_signed_and_carry_an_idempotency_key(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "a"})]})
        self.deliver(place, self.copy(place, "v"), writer)
        headers, body = place.receiver.requests[0]
        seconds = int(headers["Tailrace-Signature"].split(",")[0].removeprefix("t="))
        assert hmac.compare_digest(headers["Tailrace-Signature"], sign("s3cret", body, seconds))
        assert headers["Idempotency-Key"] == orjson.loads(body)["id"]

    def test_repeats_have_the_same_key_and_what_arrived_is_not_sent_again(self, place):
        writer = self._simple()
        writer.tick({"v": [({"id": n}, {"id": n, "name": "a"}) for n in range(10)]})
        failures = iter([200] * 5 + [503] * 100)
        place.receiver.judge = lambda change: next(failures, 200)
        from tailrace.sinks.dead_letters import ListedDeadLetters
        from tailrace.sinks.delivery import Delivery
        from tailrace.sinks.registry import make_sink

        copy = self.copy(place, "v")
        delivery = Delivery(
            copy, make_sink(copy, place.surroundings), writer.log, "shop", ListedDeadLetters()
        )
        with pytest.raises(TargetUnavailableError):
            delivery.step(0)
        arrived = len(place.receiver.changes)
        assert arrived == 5
        delivery.close()
        place.receiver.judge = lambda change: 200
        delivery.step(0)
        delivery.close()
        assert len(place.receiver.changes) == 10
        self.assert_in_step(place, copy, writer)

    def test_batches_send_several_changes_at_once(self, place):
        writer = random_project(1, 3)
        copy = self.copy(place, "orders", batch=10, parallel=1)
        self.deliver(place, copy, writer)
        assert len(place.receiver.requests) < len(place.receiver.changes)
        self.assert_in_step(place, copy, writer)

    def test_a_receiver_that_wants_credentials_is_told_apart(self, place):
        place.receiver.judge = lambda change: 401
        with pytest.raises(TargetRefusedError):
            self.deliver(place, self.copy(place, "orders"), random_project(1, 1))

    def test_a_new_sink_can_begin_with_the_next_change(self, place):
        writer = self._simple()
        copy = self.copy(place, "v", start="now")
        writer.tick({"v": [({"id": 1}, {"id": 1, "name": "before"})]})
        self.deliver(place, copy, writer)
        writer.tick({"v": [({"id": 2}, {"id": 2, "name": "after"})]})
        self.deliver(place, copy, writer)
        assert [c["row"]["name"] for c in place.receiver.changes] == ["after"]

    def test_each_row_can_name_the_address_it_is_sent_to(self, place, monkeypatch):
        monkeypatch.setattr(webhook, "OWN_PAUSE_SECONDS", 0.0)
        writer = self._simple()
        other = WebhookReceiver()
        copy = self.copy(place, "v")
        declared = Webhook(address="name", hosts=["127.0.0.1"], secret="s3cret")
        copy = replace(copy, declaration=declared)
        here, there = (f"http://127.0.0.1:{one.port}/" for one in (place.receiver, other))
        place.receiver.judge = lambda change: 503 if change["key"]["id"] == 5 else 200
        names = [here, there, None, "ftp://x", here, "http://localhost:1/", there, "http://a:b/"]
        writer.tick(
            {"v": [({"id": n}, {"id": n, "name": name}) for n, name in enumerate(names, 1)]}
        )
        delivery = self.deliver(place, copy, writer)
        other.stop()
        assert [change["key"]["id"] for change in place.receiver.changes] == [1]
        assert sorted(change["key"]["id"] for change in other.changes) == [2, 7]
        dead = delivery._dead_letters.letters.values()
        assert sorted(letter.row["id"] for letter in dead) == [4, 5, 6, 8]


def test_rows_cannot_name_an_address_of_the_machines_own_network(tmp_path):
    receiver = WebhookReceiver()
    declared = Webhook(address="url")
    lane = webhook._Lane(declared)
    with pytest.raises(RowsRefusedError, match="not among the hosts"):
        lane.post_to_owner(f"http://localhost:{receiver.port}/", b"{}", {})
    named = webhook._Lane(Webhook(address="url", hosts=["*.example.org"]))
    with pytest.raises(RowsRefusedError, match="not among the hosts"):
        named.post_to_owner(f"http://127.0.0.1:{receiver.port}/", b"{}", {})
    receiver.stop()
    assert not receiver.requests
    for wrong in ({}, {"url": "http://a.org", "address": "url"}, {"address": "url", "batch": 2}):
        with pytest.raises(SinkDeclarationError):
            Webhook(**wrong)


def test_an_address_that_is_none_is_refused(tmp_path):
    contract = TestWebhookSink()
    place = Target(tmp_path)
    place.declare = lambda view, **options: Webhook("example.org", **options)
    with pytest.raises(SinkDeclarationError):
        contract.deliver(place, contract.copy(place, "orders"), random_project(1, 1))
