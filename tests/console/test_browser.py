"""The page in a real browser: live update, reconnect, hostile values, a phone."""

from __future__ import annotations

import contextlib
from urllib.parse import quote

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Error, Page, expect

from servers.sites import CHROMIUM, Site

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser"),
]


def test_the_topology_is_drawn_with_live_figures(page: Page) -> None:
    expect(page.locator('[data-node="open_orders"]')).to_be_visible()
    expect(page.locator('[data-node="shop"]')).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("starting")  # no part runs in this test
    for figure in ("all:rate", "all:bytes"):
        expect(page.locator(f'[data-live="{figure}"]')).to_be_visible()


def test_rows_of_a_view_update_in_place(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/views/open_orders")
    table = page.get_by_role("table", name="Rows of open_orders")
    expect(table).to_contain_text("NL")
    site.console.tick(NL=41, SE=1)
    expect(table).to_contain_text("41")
    expect(table).to_contain_text("SE")
    site.console.tick(SE=None)
    expect(table).not_to_contain_text("SE")
    page.get_by_text("As a chart").click()
    bars = page.get_by_role("list", name="orders of open_orders")
    expect(bars.get_by_role("listitem").first).to_contain_text("NL")
    site.console.tick(IT=90)
    expect(bars.get_by_role("listitem").first).to_contain_text("IT")


def test_the_page_comes_back_after_the_server_restarts(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/views/open_orders")
    expect(page.get_by_role("table", name="Rows of open_orders")).to_contain_text("NL")
    site.down()
    expect(page.get_by_role("status")).to_have_text("reconnecting…")
    site.console.tick(IT=5)
    site.up()
    expect(page.get_by_role("status")).to_have_text("starting")
    expect(page.get_by_role("table", name="Rows of open_orders")).to_contain_text("IT")


def test_a_hidden_tab_rests_and_catches_up_when_it_is_seen(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/views/open_orders")
    table = page.get_by_role("table", name="Rows of open_orders")
    expect(table).to_contain_text("NL")
    show = "hidden => { Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(show, True)
    site.console.tick(ES=73)
    page.wait_for_timeout(1500)
    expect(table).not_to_contain_text("ES")
    page.evaluate(show, False)
    expect(table).to_contain_text("73")
    expect(page.get_by_role("status")).to_have_text("starting")


def test_sql_is_answered_and_its_errors_are_shown(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/views")
    page.get_by_role("textbox", name="SQL").fill("SELECT country FROM open_orders WHERE orders = 2")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("table", name="SQL result")).to_contain_text("NL")
    page.get_by_role("textbox", name="SQL").fill("SELECT nothing FROM open_orders")
    page.get_by_role("textbox", name="SQL").press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("nothing")


def test_hostile_records_are_text(page: Page, site: Site) -> None:
    producer = Producer({"bootstrap.servers": site.console.served.bootstrap})
    hostile = (
        "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    )
    producer.produce("hostile", key=hostile.encode(), value=hostile.encode())
    producer.flush(10)
    page.goto(f"{site.address}/#/topics/hostile")
    expect(page.locator(".records")).to_contain_text("<img src=x")
    page.locator(".records summary").first.click()
    assert page.title() == "Tailrace"
    assert page.locator(".records img").count() == 0


def test_it_is_readable_on_a_phone_and_by_keyboard(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{site.address}/#/views/open_orders")
    expect(page.get_by_role("table", name="Rows of open_orders")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.goto(f"{site.address}/#/topics")
    page.locator("body").press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()


def test_an_unknown_page_and_an_unknown_topic_say_so(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/nowhere")
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    page.goto(f"{site.address}/#/topics/absent")
    expect(page.get_by_role("alert").first).to_contain_text("no topic")


def test_a_console_for_other_machines_asks_for_its_token(page: Page, site: Site) -> None:
    site.down()
    site.up(host="0.0.0.0", token="hush")
    page.reload()
    for given in ("wrong", "hush"):
        expect(page.get_by_role("heading", name="This console needs its token")).to_be_visible()
        page.get_by_label("Token").fill(given)
        page.get_by_role("button", name="Open").click()
        if given == "wrong":
            expect(page.get_by_role("alert")).to_contain_text("not its token")
    expect(page.locator('[data-node="open_orders"]')).to_be_visible()
    page.goto(f"{site.address}/#/views/open_orders")
    expect(page.get_by_role("table", name="Rows of open_orders")).to_contain_text("NL")


def test_a_link_opens_the_console_and_leaves_no_token_behind(page: Page, site: Site) -> None:
    site.down()
    site.up(token="a+b/c=d e%&")
    page.goto("about:blank")
    page.goto(f"{site.address}/#token={quote('a+b/c=d e%&', safe='')}")
    expect(page.locator('[data-node="open_orders"]')).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("starting")  # its event stream is let in
    assert page.url == f"{site.address}/#/"
    kept = "[document.cookie, ...Object.values(sessionStorage), ...Object.values(localStorage)]"
    assert "".join(page.evaluate(kept)) == ""
    page.reload()
    expect(page.locator('[data-node="open_orders"]')).to_be_visible()
    page.goto(f"{site.address}/#token=wrong")  # in the same tab, which keeps what it had
    expect(page.locator('[data-node="open_orders"]')).to_be_visible()
    with contextlib.suppress(Error):  # the page's own change of its address may end the way back
        page.go_back(wait_until="commit")
    assert "token" not in page.url


def test_rows_of_a_view_may_hold_anything(page: Page, site: Site) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\">"
    site.console.ticks.tick(
        {"open_orders": [({"country": hostile}, {"country": hostile, "orders": 1})]}
    )
    site.console.follower.step(0.1)
    page.goto(f"{site.address}/#/views/open_orders")
    expect(page.get_by_role("table", name="Rows of open_orders")).to_contain_text("<img src=x")
    assert page.title() == "Tailrace"
    assert page.locator("main img").count() == 0
