"""The page of mirrors in a real browser: how far each is, fail over, fail back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from servers.sites import CHROMIUM, Site
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.log import connect
from tailrace.mirroring.plan import mirror
from tailrace.mirroring.relay import Mirror

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser"),
]


def test_a_mirror_is_seen_failed_over_and_back(page: Page, site: Site, tmp_path: Path) -> None:
    served = site.console.served
    page.goto(f"{site.address}/#/mirrors")
    expect(page.get_by_text("No mirror is declared.")).to_be_visible()
    with BrokerThread(tmp_path / "ber", durable=False) as ber:
        plan = mirror("to-berlin", "log", "ber", topics="orders")
        served.project.mirrors[plan.name] = plan
        clusters = served.project.settings.clusters
        assert isinstance(clusters, dict)
        clusters["ber"] = ber.address
        with Admin(served.bootstrap) as admin:
            admin.create_topic("orders", 1)
        with connect(served.bootstrap) as log, log.producer() as producer:
            producer.send("orders", value=b"one", partition=0)
        with Mirror(plan.name, served.bootstrap, ber.address, topics="orders", site="log", others=["ber"]) as running:  # fmt: skip
            running.run_until_caught_up()
        expect(page.get_by_role("table", name="Mirrors")).to_contain_text("ber")
        page.get_by_role("link", name="to-berlin").click()
        expect(page.get_by_role("table", name="Partitions of the mirror")).to_contain_text("orders")
        page.get_by_role("button", name="Show what would be missing").click()
        expect(page.get_by_text("0 offsets of log have not arrived.")).to_be_visible()
        page.get_by_role("button", name="Fail over", exact=True).click()
        page.get_by_role("button", name="Yes, fail over").click()
        expect(page.get_by_role("region", name="Fail back")).to_be_visible()
        page.get_by_role("button", name="Fail back", exact=True).click()
        page.get_by_role("button", name="Yes, fail back").click()
        expect(page.get_by_role("region", name="Fail over")).to_be_visible()
        about = site.console.client.get("/api/mirrors/to-berlin").json()
        assert (about["state"], about["records"]) == ("running", 1)
