"""What a page of another site can do to the console of the person who looks at it: nothing."""

from __future__ import annotations

import asyncio
import http.client
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

import fresh_loop
from servers.consoles import Console
from servers.running_console import running
from servers.sites import CHROMIUM, Site
from tailrace.console import conditions
from tailrace.console.app import create_app
from tailrace.console.conditions import compile_condition, within
from tailrace.console.demo import ENVIRONMENT
from tailrace.console.errors import ConditionTimeoutError
from tailrace.console.feed import Feed, Subscription
from tailrace.console.security import Access, Guard

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SLOW = f"'{'a' * 300}' LIKE '{'%a' * 8}%b'"
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_only_a_link_to_the_page_works_from_another_site(console: Console, site: str) -> None:
    client, foreign = console.client, {"sec-fetch-site": site}
    for path in ("/api/status", "/api/views/open_orders/changes", "/api/views/open_orders/NL", "/metrics", "/assets/index.js", "/"):  # fmt: skip
        refused = client.get(path, headers=foreign)
        assert refused.status_code == 403, path
        assert refused.json()["code"] == "foreign-request"
    assert client.get("/api/status", headers={**foreign, **NAVIGATION}).status_code == 403
    framed = {**foreign, **NAVIGATION, "sec-fetch-dest": "iframe"}
    assert client.get("/", headers=framed).status_code == 403
    assert client.get("/", headers={**foreign, **NAVIGATION}).status_code == 200
    for own in ("same-origin", "none"):
        assert client.get("/api/status", headers={"sec-fetch-site": own}).status_code == 200


def test_no_route_at_all_answers_a_foreign_page(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "postgresql://127.0.0.1:1/none")  # with the routes of the demo
    app = create_app(console.served)
    client = TestClient(Guard(app, Access("127.0.0.1", None)), base_url="http://127.0.0.1:8080")
    asked = {
        (method.upper(), re.sub(r"{[^}]*}", "x", path))
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }
    for wanted in ("/api/events", "/api/cluster", "/api/patterns", "/api/history/events"):
        assert ("GET", wanted) in asked
    assert ("POST", "/api/demo/verify") in asked
    for method, path in sorted(asked):
        for foreign in (
            {"host": "evil.example"},
            {"host": "127.0.0.1.evil.example:8080"},
            {"host": ""},
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"origin": "http://127.0.0.1:8081"},
            {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
            {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        ):  # fmt: skip
            refused = client.request(method, path, headers=foreign)
            assert (refused.status_code, refused.json()["code"]) == (403, "foreign-request"), (path, foreign)  # fmt: skip


def test_a_page_of_the_public_name_without_tls_is_another_site(console: Console) -> None:
    # Somebody on the way can serve that page; its cookies are not the console's everywhere.
    access = Access("127.0.0.1", None, public="https://console.example.com", encrypted=True)
    client = TestClient(Guard(create_app(console.served), access), base_url="http://127.0.0.1:8080")
    for host in ("console.example.com", "127.0.0.1:8080"):
        for origin, status in (
            ("https://console.example.com", 200),
            ("http://console.example.com", 403),
            ("https://console.example.com.evil.example", 403),
            ("https://console.example.com:444", 403),
        ):
            asked = client.get("/api/status", headers={"host": host, "origin": origin})
            assert asked.status_code == status, (host, origin)


def test_no_answer_may_be_embedded_elsewhere(console: Console) -> None:
    for path in ("/", "/api/status", "/api/views/open_orders/NL", "/nowhere"):
        answer = console.client.get(path)
        assert answer.headers["cross-origin-resource-policy"] == "same-origin", path


def test_a_pattern_takes_time_in_proportion_to_the_text() -> None:
    # In a process of its own: a regular expression that backtracks cannot be interrupted.
    text = f"'{'a' * 3_000}'"
    code = f"""
from tailrace.console.conditions import compile_condition
for word in ("LIKE", "ILIKE", "NOT LIKE"):
    condition = compile_condition("{text} " + word + " '{"%a" * 20}%b'")
    assert condition({{}}) is (word == "NOT LIKE")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_letters_of_any_case_stand_for_each_other_one_by_one() -> None:
    for text, pattern, expected in [
        ("STRASSE", "strass_", True),
        ("İx", "_X", True),  # its lower case has two letters
        ("Éa", "é_", True),
        ("a\nb", "A_B", True),
        ("a.c", "A.C", True),
        ("abc", "A.C", False),
        ("50\\%", "50\\%", True),  # no letter escapes another
    ]:
        assert compile_condition(f"t ILIKE '{pattern}'")({"t": text}) is expected, (text, pattern)


def test_a_condition_has_a_time_limit() -> None:
    always = compile_condition("TRUE")
    assert within(always)({}) is True
    with pytest.raises(ConditionTimeoutError):
        within(always, -1.0)({})


def test_a_condition_out_of_time_ends_its_own_subscription(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions.within, "__defaults__", (-1.0,))
    sent: list[bytes] = []
    twice = asyncio.Event()

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message["body"])
        if len(sent) == 2:
            twice.set()

    async def listen() -> None:
        feed = Feed(console.served.views)
        feed.start()
        where = "orders > 0"
        chosen = Subscription("open_orders", None, (where, compile_condition(where)))
        await asyncio.wait_for(feed.pump(chosen, send), 30)
        plain = Subscription("open_orders", None)
        pumping = asyncio.create_task(feed.pump(plain, send))
        await asyncio.wait_for(twice.wait(), 30)
        await feed.stop()
        await pumping

    fresh_loop.run(listen())
    assert sent[0].startswith(b"event: failed\n")
    assert b'"code":"condition-timeout"' in sent[0]
    assert b"event: snapshot" in sent[1]


def test_slow_conditions_hold_up_nobody(console: Console) -> None:
    path = f"/api/views/open_orders/changes?where={quote(SLOW)}"
    with running(console) as port:
        asking = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(8)]
        for connection in asking:
            connection.request("GET", path)
        other = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        for _ in range(5):
            other.request("GET", "/api/status")
            assert other.getresponse().read()
        for connection in (*asking, other):
            connection.close()


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser")
def test_a_foreign_page_in_a_browser_reaches_nothing(browser: Browser, site: Site) -> None:
    places = [
        f"{site.address}/api/views/open_orders/changes?where={quote(SLOW)}",
        f"{site.address}/api/status",
    ]
    document = "".join(f'<img src="{place}"><script src="{place}"></script>' for place in places)

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(document.encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for name in ("localhost", "127.0.0.1"):  # another site; another port of the same
            opened = browser.new_page()
            seen: list[str] = []
            opened.on("response", lambda one, kept=seen: kept.append(f"{one.status} {one.url}"))
            opened.on("requestfailed", lambda one, kept=seen: kept.append(f"none {one.url}"))
            opened.goto(f"http://{name}:{server.server_port}/")
            until = time.monotonic() + 20
            while len(seen) < 5 and time.monotonic() < until:
                opened.wait_for_timeout(50)
            asked = {one for one in seen if "/api/" in one}
            assert asked == {f"none {place}" for place in places}  # what came is kept from it
            opened.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    own = browser.new_page()
    own.goto(f"{site.address}/api/status")
    assert "shop" in own.content()
    own.close()
