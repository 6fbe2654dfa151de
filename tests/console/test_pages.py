"""Each page in a real browser, with what stands behind it: log, reports, copies."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from playwright.sync_api import Page, Route, expect

import tailrace as tr
from servers.consoles import LogTicks
from servers.sites import CHROMIUM, Site
from tailrace.project import load
from tailrace.project.copies import opened_copy
from tailrace.sinks.dead_letters import DeadLetter
from tailrace.sources.schema import Column, TableSchema

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser"),
]
NOW = int(time.time() * 1000)


def produce(site: Site, topic: str, *records: tuple[bytes | None, bytes]) -> None:
    producer = Producer({"bootstrap.servers": site.console.served.bootstrap})
    for key, value in records:
        producer.produce(topic, key=key, value=value)
    assert producer.flush(10) == 0


def describe_tables(site: Site) -> None:
    """What the source would have written of its two tables, one of them altered once."""
    key = Column("id", "INTEGER", "BIGINT", False)
    customers = TableSchema("shop", "main", "customers", (key, Column("name", "TEXT", "STRING"), Column("country", "TEXT", "STRING")), ("id",))  # fmt: skip
    columns = (key, Column("customer_id", "INTEGER", "BIGINT"), Column("amount", "INTEGER", "BIGINT"))  # fmt: skip
    orders = TableSchema("shop", "main", "orders", columns, ("id",))
    later = TableSchema("shop", "main", "orders", (*columns, Column("status", "TEXT", "STRING")), ("id",), 2)  # fmt: skip
    produce(site, "shop.schemas", *[one.record("lite:shop:1") for one in (customers, orders, later)])  # fmt: skip


def test_edges_show_what_flows_and_who_holds_it_up(page: Page, site: Site) -> None:
    site.report("pipelines", "shop", lag=1500, freshness_ms=90_000)
    topology = page.get_by_role("region", name="Topology")
    expect(topology).to_contain_text("1,500 behind")
    expect(topology.locator(".edge.held").first).to_be_attached()
    site.report("pipelines", "shop", lag=0, freshness_ms=10)
    expect(topology.locator(".edge.held")).to_have_count(0)


def test_a_group_is_moved_after_a_question(page: Page, site: Site) -> None:
    produce(site, "clicks", *[(b"k", b"v")] * 7)
    consumer = Consumer({"bootstrap.servers": site.console.served.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})  # fmt: skip
    consumer.subscribe(["clicks"])
    assert len(consumer.consume(7, 20)) == 7
    consumer.commit(asynchronous=False)
    consumer.close()
    page.goto(f"{site.address}/#/groups")
    page.get_by_role("link", name="readers").click()
    expect(page.get_by_role("table", name="Partitions of the group")).to_contain_text("clicks")
    expect(page.get_by_text("lag in records")).to_be_visible()
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("table", name="What would change")).to_contain_text("7")
    page.get_by_role("button", name="Move the group").click()
    page.get_by_role("button", name="No").click()
    page.get_by_role("button", name="Move the group").click()
    page.get_by_role("button", name="Yes, move the group").click()
    expect(page.get_by_text("Moved 1 partition.")).to_be_visible()
    moved = site.console.client.get("/api/groups/readers").json()["partitions"]
    assert moved[0]["committed"] == 0


def test_a_topic_is_read_from_a_time_and_shows_its_size(page: Page, site: Site) -> None:
    produce(site, "events", (b"k", b'{"n":1}'))
    page.goto(f"{site.address}/#/topics/events")
    page.get_by_text("1 partition,").click()
    expect(page.get_by_role("table", name="Partitions")).to_contain_text(" B")
    page.get_by_label("Records from").select_option("time")
    page.get_by_label("Time", exact=True).fill("2001-01-01T00:00:00")
    expect(page.locator(".records")).to_contain_text('{"n":1}')


def test_records_are_searched_page_by_page(page: Page, site: Site) -> None:
    rows = [(f"k{n}".encode(), json.dumps({"n": n}).encode()) for n in range(250)]
    produce(site, "events", *rows)
    page.goto(f"{site.address}/#/topics/events")
    shown = page.locator(".records > li")
    expect(shown).to_have_count(100)
    page.get_by_role("button", name="More").click()
    expect(shown).to_have_count(200)
    page.get_by_role("button", name="More").click()
    expect(shown).to_have_count(250)
    expect(page.get_by_role("button", name="More")).to_have_count(0)
    form = page.get_by_role("form", name="Records")
    form.get_by_label("Where").fill("n >= 7 AND n < 9")
    form.get_by_role("button", name="Search").click()
    expect(shown).to_have_count(2)
    expect(page.get_by_text("2 records of 250 searched")).to_be_visible()
    form.get_by_label("Key has").fill("k8")
    form.get_by_role("button", name="Search").click()
    expect(shown).to_have_count(1)
    form.get_by_label("Where").fill("((")
    form.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert")).to_contain_text("the condition cannot be read")
    form.get_by_role("button", name="Clear").click()
    form.get_by_label("Records from").select_option("offset")
    form.get_by_role("spinbutton", name="Offset").fill("249")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("k249")


def test_the_broker_shows_its_settings(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/cluster")
    broker = page.get_by_role("region", name="Broker 1")
    expect(broker).to_contain_text("controller")
    broker.get_by_label("Setting").fill("share.coordinator.state.topic.num")
    expect(broker.locator("dt")).to_have_text(["share.coordinator.state.topic.num.partitions"])


def test_a_cluster_shows_what_lacks_first_and_moves_after_a_plan(page: Page, site: Site) -> None:
    def partition(number: int, leader: int, in_sync: list[int]) -> dict[str, object]:
        return {"partition": number, "leader": leader, "leader_epoch": 4, "preferred": 1, "replicas": [1, 2, 3], "in_sync": in_sync, "eligible": []}  # fmt: skip

    state = {
        "controller": {"id": 2, "epoch": 7, "voters": [1, 2, 3]},
        "brokers": [{"id": id, "state": "up" if id < 3 else "gone", "address": f"b{id}:9092", "rack": None, "leaders": 1, "replicas": 2, "bytes": 10_000_000} for id in (1, 2, 3)],
        "topics": [{"name": "orders", "replication_factor": 3, "min_insync": 2, "unclean": False, "survives": "3 copies", "partitions": [partition(0, 1, [1, 2]), partition(1, -1, [])]}],
        "under_replicated": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}],
        "under_min_insync": [{"topic": "orders", "partition": 1}],
        "offline": [{"topic": "orders", "partition": 1}],
        "suspects": [{"broker": 3, "partitions": 2}],
        "moves": [{"topic": "clicks", "partition": 0, "replicas": [1, 2], "adding": [2], "removing": [1], "progress": 0.25}],
        "throttles": [], "left_throttles": False,
        "flapping": [{"topic": "orders", "partition": 0, "changes": 5}],
        "events": [{"at": NOW, "kind": "elections", "topic": "orders", "partition": 1, "text": "leader 3 → none, epoch 4"}],
    }  # fmt: skip
    asked: list[dict[str, object]] = []

    def plan(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or "{}"))
        moves = [{"topic": "orders", "partition": 0, "from": [1, 2, 3], "to": [1, 2, 4]}]
        route.fulfill(json={"executed": asked[-1]["execute"], "moves": moves})

    page.route("**/api/cluster", lambda route: route.fulfill(json=state))
    page.route("**/api/cluster/move", plan)
    page.goto(f"{site.address}/#/cluster")
    wrong = page.get_by_role("region", name="What is wrong")
    expect(wrong).to_contain_text("1 partition without a leader: orders/1")
    expect(wrong).to_contain_text("Broker 3 is missing in 2 of them")
    expect(wrong).to_contain_text("orders/0 (5 times)")
    expect(page.get_by_role("table", name="Moves")).to_contain_text("25 %")
    expect(page.get_by_role("table", name="What happened")).to_contain_text("leader 3 → none")
    page.get_by_text("Move partitions, elect leaders").click()
    page.get_by_label("Topics").fill("orders/0")
    page.get_by_label("To brokers").fill("1, 2, 4")
    page.get_by_role("button", name="Plan the move").click()
    expect(page.get_by_role("table", name="Planned moves")).to_contain_text("1, 2, 4")
    page.get_by_role("button", name="Move them").click()
    page.get_by_role("button", name="Yes, move them").click()
    expect(page.get_by_text("1 move begun.")).to_be_visible()
    assert [each["execute"] for each in asked] == [False, True]
    assert asked[1]["topics"] == ["orders/0"]
    assert asked[1]["to"] == [1, 2, 4]


def test_sql_completes_names_and_keeps_queries(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/views")
    box = page.get_by_label("SQL", exact=True)
    box.fill("")
    box.press_sequentially("SELECT country FROM open_o")
    expect(page.get_by_role("option")).to_have_text(["open_orders"])
    box.press("Tab")
    expect(box).to_have_value("SELECT country FROM open_orders")
    page.get_by_role("button", name="Save").click()
    box.press("Control+Enter")
    expect(page.get_by_role("table", name="SQL result")).to_contain_text("NL")
    page.reload()
    page.get_by_text("Saved queries (1)").click()
    box.fill("SELECT 1")
    page.get_by_role("button", name="SELECT country FROM open_orders", exact=True).first.click()
    expect(box).to_have_value("SELECT country FROM open_orders")


def test_a_change_is_read_as_what_it_did_and_headers_stand_in_a_table(
    page: Page, site: Site
) -> None:
    producer = Producer({"bootstrap.servers": site.console.served.bootstrap})
    event = {"before": {"id": 7}, "after": {"id": 7, "status": "paid"}, "op": "u"}
    producer.produce("shop.main.orders", key=b'{"id":7}', value=json.dumps(event).encode(), headers={"trace": b"<b>t1</b>"})  # fmt: skip
    assert producer.flush(10) == 0
    page.goto(f"{site.address}/#/topics/shop.main.orders")
    records = page.locator(".records")
    expect(records.locator(".op")).to_have_text("update")
    expect(records).to_contain_text('{"id":7,"status":"paid"}')
    records.locator("summary").click()
    expect(page.get_by_role("table", name="Headers")).to_contain_text("<b>t1</b>")


def test_pipelines_show_ticks_batches_late_and_dead_records(page: Page, site: Site) -> None:
    site.report("pipelines", "shop", tick=41, tick_ms=120, lag=3, freshness_ms=500, late={"clicks": 4}, streams={"terms": {"batch": 8, "rows": 64, "rows_per_second": 184.4, "milliseconds": 344, "watermark": "2026-11-16T05:00:00Z"}})  # fmt: skip
    letter = {
        "position": "log:clicks/0:3",
        "reason": "no JSON",
        "key": None,
        "value": "PGI+aG9zdGlsZTwvYj4=",
    }
    produce(site, "terms.dead", (b"log:clicks/0:3", json.dumps(letter).encode()))
    page.goto(f"{site.address}/#/pipelines")
    expect(page.locator('[data-live="tick"]')).to_have_text("41")
    expect(page.get_by_role("table", name="Streams")).to_contain_text("344 ms")
    expect(page.get_by_role("table", name="Late rows")).to_contain_text("clicks")
    page.get_by_role("link", name="terms").click()
    expect(page.get_by_text("watermark")).to_be_visible()
    letters = page.get_by_role("region", name="Dead letters")
    expect(letters).to_contain_text("no JSON")
    letters.get_by_text("no JSON").click()
    expect(letters.locator("pre").first).to_have_text("<b>hostile</b>")
    letters.get_by_role("button", name="Try them again").click()
    letters.get_by_role("button", name="Yes, try them again").click()
    expect(letters).to_contain_text("1 were taken this time.")
    expect(letters).to_contain_text("Nothing was set aside.")


def test_a_view_that_was_put_aside_says_why(page: Page, site: Site) -> None:
    fault = {"error": 'the key of view "open_orders" is not unique', "detail": "NL is there twice", "hint": "add a column to key=", "code": "key-not-unique"}  # fmt: skip
    site.report("pipelines", "shop", tick=2, failed={"open_orders": fault})
    page.goto(f"{site.address}/#/")
    expect(page.locator('[data-node="open_orders"]')).to_contain_text("suspended")
    page.goto(f"{site.address}/#/pipelines")
    expect(page.get_by_role("table", name="Views")).to_contain_text("is not unique")
    page.goto(f"{site.address}/#/views/open_orders")
    expect(page.get_by_role("alert")).to_contain_text("NL is there twice")
    site.report("pipelines", "shop", tick=3, failed={})
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_source_shows_its_slot_and_an_alarm_says_what_to_do(page: Page, site: Site) -> None:
    site.report("source", "shop", freshness_ms=3, lag=0, position="pg:shop:00000000000000FF", wal_retained_bytes=9_000_000_000, wal_state="critical", copying=[])  # fmt: skip
    page.goto(f"{site.address}/#/sources")
    expect(page.get_by_role("table", name="Sources")).to_contain_text("9.0 GB")
    page.get_by_role("link", name="shop").click()
    expect(page.locator('[data-live="chart:part:source-shop:wal"]')).to_have_text("9.0 GB")
    expect(page.get_by_role("link", name="shop.main.orders")).to_be_visible()
    page.goto(f"{site.address}/#/alarms")
    expect(page.get_by_role("alert").first).to_contain_text("tailrace source doctor shop")


def test_schemas_are_shown_with_their_history(page: Page, site: Site) -> None:
    page.goto(f"{site.address}/#/schemas")
    expect(page.get_by_text("No source has described a table yet.")).to_be_visible()
    describe_tables(site)
    page.reload()
    expect(page.get_by_text("+ status TEXT")).to_be_visible()
    expect(page.get_by_role("table", name="Columns of shop.main.orders")).to_contain_text("STRING")


def test_a_view_shows_its_plan_as_a_picture_and_its_past(page: Page, site: Site) -> None:
    describe_tables(site)
    ticks = LogTicks(site.console.served.bootstrap)
    ticks.tick(NOW, NL=1)
    ticks.tick(NOW + 1000, NL=2, FR=7)
    page.goto(f"{site.address}/#/views/open_orders")
    picture = page.get_by_role("region", name="Operators of open_orders")
    expect(picture).to_contain_text("join")
    expect(picture).to_contain_text("group")
    expect(picture).to_contain_text("status")  # the filter stands on its edge
    page.get_by_text("What it was earlier").click()
    earlier = page.get_by_role("table", name="open_orders at an earlier tick")
    expect(earlier).to_contain_text("FR")
    page.get_by_role("spinbutton", name="Tick number").fill("1")
    expect(earlier).not_to_contain_text("FR")
    expect(page.locator('[data-live="past"]')).to_contain_text("tick 1,")


def test_a_copy_is_compared_and_repaired_from_its_page(page: Page, site: Site) -> None:
    served = site.console.served
    LogTicks(served.bootstrap).tick(NOW, NL=1, DE=2)
    with opened_copy(served.project, served.bootstrap, "open_orders.sqlite") as opened:
        opened.delivery.step(timeout=60.0)
    letter = DeadLetter("open_orders.sqlite", "open_orders", 0, 7, {"country": "XX"}, {"error": "too odd"})  # fmt: skip
    produce(site, "open_orders.sqlite.dead", (b"k", letter.encode()))
    with sqlite3.connect(served.project.directory / "copies.db") as database:
        database.execute("UPDATE open_orders SET orders = 99 WHERE country = 'NL'")
    database.close()
    page.goto(f"{site.address}/#/sinks")
    page.get_by_role("link", name="open_orders.sqlite").click()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("1 of 2 rows differ.")).to_be_visible()
    page.get_by_role("button", name="Repair").click()
    page.get_by_role("button", name="Yes, repair").click()
    expect(page.get_by_text("1 rows written.")).to_be_visible()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("In step: 2 rows are equal")).to_be_visible()
    expect(page.get_by_role("region", name="Dead letters")).to_contain_text("too odd")


def test_keys_lead_to_pages_and_colours_are_kept(page: Page, site: Site) -> None:
    expect(page.get_by_role("region", name="Topology")).to_be_visible()
    page.keyboard.press("5")
    expect(page.get_by_role("table", name="Views")).to_contain_text("open_orders")
    page.keyboard.press("3")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("5")  # typed into the field, not a page
    expect(page.get_by_role("searchbox")).to_have_value("5")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("t")
    page.keyboard.press("t")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(15, 22, 28)")


def test_pages_that_the_project_has_no_use_for_are_not_in_the_navigation(
    page: Page, site: Site
) -> None:
    pages = page.get_by_role("navigation", name="Pages")
    sinks, stored = pages.get_by_role("link", name="Sinks"), pages.get_by_role("link", name="Stored queries")  # fmt: skip
    expect(page.get_by_role("region", name="Topology")).to_be_visible()
    assert pages.get_by_role("link").all_inner_texts() == [
        "Overview", "Sources", "Topics", "Pipelines", "Views", "Sinks", "Groups", "Schemas", "Cluster", "Alarms",
    ]  # fmt: skip
    page.keyboard.press("6")
    expect(sinks).to_have_attribute("aria-current", "page")
    page.goto(f"{site.address}/#/percolations")  # a link that somebody kept
    expect(page.get_by_role("heading", name="Stored queries")).to_be_visible()
    expect(stored).to_have_attribute("aria-current", "page")
    page.keyboard.press("1")
    expect(stored).to_have_count(0)
    project = site.console.served.project
    offers = tr.topic("offers", schema="id INT, title STRING")
    searches = tr.topic("searches", schema="id INT, query STRING", key="id")
    project.topics.update(offers=offers, searches=searches)
    project.percolations["saved"] = tr.percolate(
        "saved", offers, queries=searches, id="id", query="query", text="title"
    )
    page.goto(f"{site.address}/#/sinks")
    page.reload()  # not by way of the overview
    expect(stored).to_be_visible()
    page.keyboard.press("6")
    expect(stored).to_have_attribute("aria-current", "page")
    page.keyboard.press("7")
    expect(sinks).to_have_attribute("aria-current", "page")


def test_every_page_fits_a_phone_and_has_an_empty_state(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    for path, text in (
        ("sources", "No source runs."), ("groups", "No consumer group"), ("schemas", "No source has described"),
        ("alarms", "Nothing deserves attention."), ("pipelines", "Pipelines"), ("sinks", "open_orders"), ("views", "SQL"),
    ):  # fmt: skip
        page.goto(f"{site.address}/#/{path}")
        expect(page.locator("main")).to_contain_text(text)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_hundreds_of_topics_and_views_stay_few_elements(
    page: Page, site: Site, tmp_path: Path
) -> None:
    large = tmp_path / "large"
    (large / "pipelines").mkdir(parents=True)
    (large / "tailrace.toml").write_text('[project]\nname = "large"\n')
    tables = [f"t{number}" for number in range(500)]
    (large / "pipelines" / "main.py").write_text(
        "from tailrace import sources\n"
        f'shop = sources.SQLite("shop", path="x.db", tables={tables!r})\n'
    )
    for number in range(200):
        (large / "pipelines" / f"v{number}.sql").write_text(
            f"-- key: id\nSELECT id FROM shop.t{number}"
        )
    site.down()
    served = site.console.served
    served.figures.close()
    served.figures.topics = [
        {"name": f"shop.main.{name}", "partitions": 3, "records": 10, "rate": 1.5, "bytes": 10, "internal": False}
        for name in tables
    ]  # fmt: skip
    served.project = load.load(large)
    site.up()
    page.reload()
    topology = page.get_by_role("region", name="Topology")
    expect(topology).to_contain_text("shop.main.t1")

    def elements() -> int:
        return int(page.evaluate("document.querySelectorAll('*').length"))

    assert elements() < 3000
    topology.evaluate("box => box.scrollTo(0, box.scrollHeight)")
    expect(page.locator('[data-node="shop.main.t499"]')).to_be_visible()
    assert elements() < 3000
    page.get_by_role("searchbox").fill("v17")
    expect(page.locator('[data-node="v17"]')).to_be_visible()
    expect(page.locator('[data-node="v3"]')).to_have_count(0)
    page.goto(f"{site.address}/#/topics")
    table = page.get_by_role("table", name="Topics")
    expect(table).to_have_attribute("aria-rowcount", "501")
    assert elements() < 1500
    page.locator(".long").evaluate("box => box.scrollTo(0, box.scrollHeight)")
    expect(table).to_contain_text("shop.main.t499")
    page.goto(f"{site.address}/#/views")
    expect(page.get_by_role("table", name="Views")).to_have_attribute("aria-rowcount", "201")
    page.get_by_role("searchbox").fill("v199")
    expect(page.get_by_role("link", name="v199")).to_be_visible()


def test_the_page_is_small(checkout: Path) -> None:
    static = checkout / "src" / "tailrace" / "console" / "static"
    sizes = [len(gzip.compress(path.read_bytes())) for path in static.rglob("*") if path.is_file()]
    assert sum(sizes) <= 120_000
