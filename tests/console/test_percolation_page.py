"""The page of stored queries in a real browser: what they cost, and which match an event."""

from __future__ import annotations

import contextlib

import orjson
import pytest
from playwright.sync_api import Page, expect

import tailrace as tr
from servers.patterns import Running
from servers.sites import CHROMIUM, Site
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser"),
]


def test_stored_queries_are_shown_and_an_event_is_tried(page: Page, site: Site) -> None:
    served = site.console.served
    served.project.percolations["saved"] = tr.percolate(
        "saved", tr.topic("offers", schema="id INT, title STRING, price INT"),
        queries=tr.topic("searches", schema="id INT, query STRING", key="id"), id="id",
        query="query", text="title", fields="price",
    )  # fmt: skip
    with Admin(served.bootstrap) as admin:
        admin.ensure_topic("offers", 1, {})
        admin.ensure_topic("searches", 1, {})
    with TransactionalWriter(served.bootstrap, "people") as writer:
        writer.init()
        for number, query in enumerate(("red AND boat", "price:>10"), 1):
            row = {"id": number, "query": query}
            writer.send("searches", 0, orjson.dumps({"id": number}), orjson.dumps(row))
        writer.send("offers", 0, None, orjson.dumps({"id": 1, "title": "a red boat", "price": 5}))
        writer.commit()
    with contextlib.closing(Running(served.project, served.bootstrap)) as running:
        running.until(lambda: running.patterns.progress()["saved"]["tick"] == 1)
        page.goto(f"{site.address}/#/percolations")
        expect(page.get_by_role("table", name="Stored queries")).to_contain_text("searches")
        page.get_by_role("link", name="saved").click()
        expect(page.locator('[data-live="queries"]')).to_have_text("2")
        expect(page.get_by_role("table", name="Queries")).to_contain_text("red AND boat")
        page.get_by_label("Event").fill('{"title": "the boat is red", "price": 3}')
        page.get_by_role("button", name="Which queries match?").click()
        matches = page.get_by_role("table", name="Matches")
        expect(matches.get_by_role("row")).to_have_count(2)
        expect(matches).to_contain_text("title:red, title:boat")
        page.get_by_label("Event").fill("{")
        page.get_by_role("button", name="Which queries match?").click()
        expect(page.get_by_text("the event is no JSON")).to_be_visible()
    del served.project.percolations["saved"]
