"""The page of a pattern in a real browser: its steps, and what waits at each."""

from __future__ import annotations

import contextlib

import pytest
from playwright.sync_api import Page, expect

import tailrace as tr
from servers.patterns import Running, write
from servers.sites import CHROMIUM, Site
from tailrace.client.admin import Admin

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser"),
]


def test_a_pattern_is_drawn_with_what_waits_at_each_step(page: Page, site: Site) -> None:
    served = site.console.served
    payments = tr.topic("payments", schema="card INT, amount INT, at TIMESTAMP", time="at", late="drop")  # fmt: skip
    served.project.patterns["tested"] = tr.pattern(
        "tested", payments, key="card", order_by="at", within="1 minute", match="probe{2,} -> theft",
        define={"probe": "amount < 2", "theft": "amount > 500"},
    )  # fmt: skip
    with Admin(served.bootstrap) as admin:
        admin.ensure_topic("payments", 1, {})
    with contextlib.closing(Running(served.project, served.bootstrap)) as running:
        write(served.bootstrap, (7, 1, 0), (7, 1, 1), (7, 900, 2), (8, 1, 3), (8, 0, 4), (9, 5, 6))
        running.until(lambda: running.show()["matches"] == 1)
        page.goto(f"{site.address}/#/patterns")
        expect(page.get_by_role("table", name="Patterns")).to_contain_text("probe{2,} -> theft")
        page.get_by_role("link", name="tested").click()
        probes = page.locator('[data-node="tested/probe"]')
        expect(probes).to_contain_text("2 open")
        expect(page.locator('[data-node="tested/theft"]')).to_contain_text("0 open")
        expect(page.locator('[data-live="matches"]')).to_have_text("1")
        page.get_by_label("card").fill("8")
        page.get_by_role("button", name="Show its partial matches").click()
        rows = page.get_by_role("table", name="Rows since 2026-01-01T00:00:03Z")
        expect(rows.get_by_role("row")).to_have_count(3)
        write(served.bootstrap, (8, 700, 7), (9, 5, 8))
        running.until(lambda: running.show()["matches"] == 2)
        expect(probes).to_contain_text("0 open")
    del served.project.patterns["tested"]
