"""People who log in at the console: at an issuer of OpenID Connect, or at a proxy before it."""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from joserfc import jwt
from joserfc.jwk import OctKey

from servers.consoles import Console
from servers.issuer import CLIENT, SECRET, Issuer, new_key
from servers.running_console import running
from servers.sites import CHROMIUM, Site
from tailrace import config
from tailrace.clock import SYSTEM
from tailrace.console.app import create_app
from tailrace.console.guesses import MOST
from tailrace.console.lookup import FastLookups
from tailrace.console.seal import Seal
from tailrace.console.security import Access, Guard
from tailrace.console_login import OidcSettings, ProxySettings, Roles, make_proxy
from tailrace.errors import ConfigError
from tailrace.testing.fake_clock import FakeClock

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOKEN = "a token of some length"
LOCAL = "http://127.0.0.1:8080"
OWN = {"origin": LOCAL}
RESET = "/api/groups/nobody/reset"
ROLES = Roles(frozenset({"operations"}), frozenset({"staff"}))


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.close()


def at(issuer: Issuer, **more: Any) -> OidcSettings:
    return OidcSettings(**{"issuer": issuer.url, "client_id": CLIENT, "client_secret": SECRET, "roles": ROLES, **more})  # fmt: skip


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many wrong log-ins as a test wants."""
    monkeypatch.setattr("tailrace.console.guesses.MOST", 1000)


@contextmanager
def guarded(console: Console, peer: str = "127.0.0.1", **given: Any) -> Iterator[TestClient]:
    access = Access("127.0.0.1", **{"token": TOKEN, **given})
    app = Guard(FastLookups(create_app(console.served), console.served.views), access)
    yield TestClient(app, base_url=LOCAL, client=(peer, 50_000), follow_redirects=False)


def way_back(client: TestClient) -> str:
    """Go to the issuer, and take from it where the browser is to go on."""
    begun = client.get("/api/login")
    assert begun.status_code == 302, begun.text
    opener = urllib.request.build_opener(_Stay())
    try:
        opener.open(begun.headers["location"], timeout=30)
    except urllib.error.HTTPError as moved:
        with moved:
            return str(moved.headers["location"]).removeprefix(LOCAL)
    raise AssertionError("the issuer sent nobody back")


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def log_in(client: TestClient) -> Response:
    return client.get(
        way_back(client),
        headers={
            "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document",
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "role"), [(["x", "operations"], "operator"), (["staff"], "viewer"), ("staff", "viewer")]
)  # fmt: skip
def test_somebody_logs_in_and_has_the_role_of_their_groups(
    console: Console, issuer: Issuer, caplog: pytest.LogCaptureFixture, groups: object, role: str
) -> None:
    caplog.set_level("INFO", "tailrace")
    issuer.person["groups"] = groups
    with guarded(console, oidc=at(issuer)) as client:
        refused = client.get("/api/status")
        assert (refused.status_code, refused.json()["login"]) == (401, "api/login")
        done = log_in(client)
        assert done.status_code == 200, done.text
        (session,) = (one for one in done.headers.get_list("set-cookie") if one.startswith("tailrace="))  # fmt: skip
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(session.split("; "))
        assert client.get("/api/me").json() == {"role": role, "user": "carol", "way": "oidc"}
        assert client.get("/api/status").status_code == 200
        assert client.post(RESET, json={}).status_code == 403  # nobody says whose page
        moved = client.post(RESET, json={}, headers=OWN).status_code
        assert (moved == 403) == (role == "viewer")
        told = [r for r in caplog.records if r.name.endswith("console.audit")][-1]
        assert (told.user, told.role, told.path) == ("carol", role, RESET)  # type: ignore[attr-defined]
        client.post("/api/logout", headers=OWN)
        assert client.get("/api/status").status_code == 401
        by_token = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/me", headers=by_token).json()["way"] == "token"
    assert SECRET not in caplog.text


def test_who_has_no_role_is_not_let_in(console: Console, issuer: Issuer) -> None:
    issuer.person["groups"] = ["others"]
    with guarded(console, oidc=at(issuer)) as client:
        done = log_in(client)
        assert done.status_code == 403
        assert "carol is neither operator nor viewer" in done.text
        assert client.get("/api/status").status_code == 401


def test_groups_may_lie_deeper_or_come_from_the_userinfo(console: Console, issuer: Issuer) -> None:
    issuer.person["realm_access"] = {"roles": ["operations"]}
    issuer.person["preferred_username"] = "<script>alert(1)</script>"
    with guarded(console, oidc=at(issuer, claim="realm_access.roles")) as client:
        assert log_in(client).status_code == 200
        assert client.get("/api/me").json()["role"] == "operator"
    issuer.more = {"department": ["operations"]}
    with guarded(console, oidc=at(issuer, claim="department")) as client:
        assert log_in(client).status_code == 200
    issuer.more = {"department": ["operations"], "sub": "8"}
    with guarded(console, oidc=at(issuer, claim="department")) as client:
        assert log_in(client).status_code == 403  # it tells of another user
    issuer.more = {}
    with guarded(console, oidc=at(issuer)) as client:
        done = log_in(client)
        assert done.status_code == 403
        assert "<script>" not in done.text


def unsigned(claims: dict[str, Any]) -> str:
    parts = ({"alg": "none"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in parts]
    return b".".join([*encoded, b""]).decode()


WRONG = [
    {"iss": "http://127.0.0.1:1"}, {"aud": "others"}, {"aud": ["others"]}, {"nonce": "another"}, {"nonce": None},
    {"exp": 1_000_000_000}, {"exp": None}, {"sub": None}, {"iat": None}, {"exp": "soon"},
    {"aud": [CLIENT, "others"], "azp": "others"}, {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, {"sub": 7},
]  # fmt: skip


def test_an_id_token_that_is_not_for_this_log_in_is_refused(
    console: Console, issuer: Issuer, unlimited: None
) -> None:
    issuer.person["groups"] = ["operations"]
    with guarded(console, oidc=at(issuer)) as client:
        for claims in WRONG:
            issuer.claims = claims
            assert log_in(client).status_code == 403, claims
            assert client.get("/api/status").status_code == 401
        issuer.claims = {}
        assert log_in(client).status_code == 200


def stranger(issuer: Issuer, claims: dict[str, Any]) -> str:
    return issuer.signed(claims, new_key("one", 1))


def symmetric(issuer: Issuer, claims: dict[str, Any]) -> str:
    """With what everybody knows, the public key, as a secret."""
    secret = OctKey.import_key(json.dumps(issuer.key.as_dict(private=False)).encode())
    return jwt.encode({"alg": "HS256", "kid": "one"}, claims, secret, algorithms=["HS256"])


def test_a_token_that_the_issuer_did_not_sign_is_refused(
    console: Console, issuer: Issuer, unlimited: None
) -> None:
    issuer.person["groups"] = ["operations"]
    wrong: list[Callable[[dict[str, Any]], str]] = [
        lambda claims: stranger(issuer, claims),
        lambda claims: symmetric(issuer, claims),
        unsigned,
        lambda _: "x.y.z",
        lambda _: "",
        lambda _: "\xff",
    ]
    with guarded(console, oidc=at(issuer)) as client:
        for issuer.sign in wrong:
            assert log_in(client).status_code == 403
            assert client.get("/api/status").status_code == 401
        issuer.sign = issuer.signed
        assert log_in(client).status_code == 200


def test_new_keys_of_the_issuer_are_read_when_a_token_names_one(
    console: Console, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.console.issuer.ASKED_AGAIN_SECONDS", 0.0)
    issuer.person["groups"] = ["staff"]
    with guarded(console, oidc=at(issuer)) as client:
        assert log_in(client).status_code == 200
        issuer.key = new_key("two")
        issuer.published.append(issuer.key)
        assert log_in(client).status_code == 200
        assert issuer.asked.count("/keys") == 2


ABOUT = [
    {"issuer": "http://127.0.0.1:1"}, {"token_endpoint": "http://issuer.example/token"}, {"token_endpoint": None},
    {"jwks_uri": "file:///etc/passwd"}, {"authorization_endpoint": "javascript:alert(1)"},
    {"jwks_uri": "URL/moved"}, {"jwks_uri": "URL/nowhere"},
]  # fmt: skip


def test_what_an_issuer_publishes_is_not_believed_blindly(
    console: Console, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailrace.console.issuer.ASKED_AGAIN_SECONDS", 0.0)
    with guarded(console, oidc=at(issuer)) as client:
        for about in ABOUT:
            issuer.about = {
                name: value and value.replace("URL", issuer.url) for name, value in about.items()
            }
            answer = client.get("/api/login")
            assert answer.status_code == 502, about
            assert "location" not in answer.headers
        issuer.about = {}
        assert client.get("/api/login").status_code == 302


def test_an_issuer_that_is_not_there_is_told_and_asked_again_later(
    console: Console, issuer: Issuer
) -> None:
    gone = at(issuer)
    issuer.server.shutdown()
    issuer.server.server_close()
    with guarded(console, oidc=gone) as client:
        assert client.get("/api/login").status_code == 502
        assert client.get("/api/login").status_code == 502
        assert (
            client.get("/api/me", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        )


def test_a_log_in_ends_in_the_browser_that_began_it(console: Console, issuer: Issuer) -> None:
    issuer.person["groups"] = ["operations"]
    with guarded(console, oidc=at(issuer)) as client:
        back = way_back(client)
        mine = dict(client.cookies.items())
        client.cookies.clear()
        assert client.get(back).status_code == 403  # another browser, led there by a link
        way_back(client)
        assert client.get(back).status_code == 403  # one that is about to log in, too
        client.cookies.clear()
        kept = mine["tailrace-login"]
        for wrong in (kept[:-1] + ("0" if kept[-1] != "0" else "1"), "x", "", ".", f".{kept}"):
            answer = client.get(back, headers={"cookie": f"tailrace-login={wrong}"})
            assert answer.status_code == 403
            assert client.get("/api/status", headers={"cookie": f"tailrace={kept}"}).status_code == 401  # fmt: skip
        answer = client.get(back, headers={"cookie": f"tailrace-login={kept}"})
        assert answer.status_code == 200
        again = client.get(back, headers={"cookie": f"tailrace-login={kept}"})
        assert again.status_code == 403  # a code is good once


def test_nobody_is_in_a_group_by_choosing_its_name(console: Console, issuer: Issuer) -> None:
    roles = Roles(frozenset({"operations", "user:dave"}), frozenset({"user:erin", "x"}))
    for user, groups, role in [
        ("operations", [], None),
        ("user:dave", [], None),
        ("carol", ["user:dave"], None),
        ("dave", [], "operator"),
        ("erin", [], "viewer"),
        ("erin", ["operations"], "operator"),
    ]:
        assert roles.of(user, groups) == role, (user, groups)
    issuer.person["preferred_username"] = "operations"
    with guarded(console, oidc=at(issuer)) as client:
        assert log_in(client).status_code == 403
    proxy = ProxySettings((ipaddress.ip_network("10.0.0.7"),), ROLES)
    with guarded(console, peer="10.0.0.7", proxy=proxy) as client:
        named = {"x-forwarded-user": "operations"}
        assert client.get("/api/me", headers=named).status_code == 403


@pytest.mark.parametrize(
    "query", ["a=1&" * 30, "code=%ff&state=%00%ff", "x" * 20_000, "state=&code=x", ";;;=&&", "error=<b>"]
)  # fmt: skip
def test_whatever_comes_back_is_refused_in_words(
    console: Console, issuer: Issuer, query: str
) -> None:
    with guarded(console, oidc=at(issuer)) as client:
        for cookie in ("", "tailrace-login=abc.def", "tailrace-login=.", "tailrace-login=" + "a" * 5000):  # fmt: skip
            refused = client.get(f"/api/login/done?{query}", headers={"cookie": cookie})
            assert refused.status_code in (403, 429), refused.text
            assert "<b>" not in refused.text
    assert issuer.asked == []


def test_failed_log_ins_have_a_limit_and_do_not_reach_the_issuer(
    console: Console, issuer: Issuer
) -> None:
    with guarded(console, oidc=at(issuer)) as client:
        way_back(client)
        before = issuer.asked.count("/token_endpoint")
        found = [client.get(f"/api/login/done?code=x&state=guess{n}").status_code for n in range(MOST + 3)]  # fmt: skip
        assert found == [403] * MOST + [429] * 3
        assert issuer.asked.count("/token_endpoint") == before


def test_a_session_ends_and_its_event_streams_with_it(console: Console, issuer: Issuer) -> None:
    issuer.person["groups"] = ["staff"]
    clock = FakeClock(SYSTEM.wall_ms())
    access = Access("127.0.0.1", TOKEN, oidc=at(issuer, session=timedelta(hours=1)))
    with running(console, access, clock=clock) as port:
        base = f"http://127.0.0.1:{port}"
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opener.open(f"{base}/api/login", timeout=30).close()
        clock.advance(3600 - 0.2)
        with opener.open(f"{base}/api/live", timeout=30) as stream:
            assert stream.readline().startswith(b"data:")
            with contextlib.suppress(http.client.IncompleteRead):
                stream.read()  # until the console ends it
        clock.advance(1)
        with pytest.raises(urllib.error.HTTPError) as refused:
            opener.open(f"{base}/api/me", timeout=30)
        with refused.value:
            assert refused.value.code == 401


def test_a_sealed_text_cannot_be_altered_used_elsewhere_or_kept_for_ever() -> None:
    clock = FakeClock()
    seal = Seal(clock)
    text = seal.close("session", {"user": "carol"}, 60)
    opened = seal.open("session", text)
    assert opened is not None
    assert opened[0] == {"user": "carol"}
    assert seal.open("login", text) is None
    assert Seal(clock).open("session", text) is None
    for place in range(len(text)):
        other = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        assert seal.open("session", other) is None
    for wrong in ("", ".", "é.é", text * 100, text.partition(".")[0]):
        assert seal.open("session", wrong) is None
    clock.advance(60)
    assert seal.open("session", text) is None


# ------------------------------------------------------------------ behind a proxy

PROXY = make_proxy(
    {"addresses": ["10.0.0.7", "10.1.0.0/16"], "operators": ["operations"], "viewers": ["*"]}
)


def named(user: str, groups: str | None = None) -> list[tuple[str, str]]:
    return [("x-forwarded-user", user)] + ([("x-forwarded-groups", groups)] if groups else [])


def test_a_proxy_says_who_calls_and_nobody_else_does(
    console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tailrace.console.audit")
    with guarded(console, "10.0.0.7", proxy=PROXY) as client:
        me = client.get("/api/me", headers=named("carol", "x, operations")).json()
        assert me == {"role": "operator", "user": "carol", "way": "proxy"}
        assert client.get("/api/me", headers=named("dave")).json()["role"] == "viewer"
        refused = client.post(RESET, json={}, headers=[*named("dave"), *OWN.items()])
        assert refused.json()["code"] == "console-viewer"
        operator = named("carol", "operations")
        assert client.post(RESET, json={}, headers=operator).status_code == 403  # whose page?
        done = client.post(RESET, json={}, headers=[*operator, *OWN.items()])
        assert done.status_code not in (401, 403)
        assert client.get("/api/status").status_code == 401  # it names nobody
        assert client.get("/api/status", headers=named(" ")).status_code == 401
        twice = client.get("/api/me", headers=[*named("dave"), *named("carol", "operations")])
        assert twice.status_code == 403
        groups = [*named("dave", "staff"), ("x-forwarded-groups", "operations")]
        assert client.get("/api/me", headers=groups).status_code == 403
    for peer in ("127.0.0.1", "10.0.0.8", "10.2.0.1", "unix"):
        with guarded(console, peer, proxy=PROXY) as client:
            forged = [*named("carol", "operations"), ("x-forwarded-for", "10.0.0.7")]
            assert client.get("/api/me", headers=forged).status_code == 401
            by_token = [*forged, ("authorization", f"Bearer {TOKEN}")]
            assert client.get("/api/me", headers=by_token).json()["user"] == ""
    with guarded(console, "::ffff:10.1.2.3", proxy=PROXY) as client:
        assert client.get("/api/me", headers=named("dave")).status_code == 200
    told = [record.user for record in caplog.records]  # type: ignore[attr-defined]
    assert "carol" in told


def test_a_proxys_users_without_a_role_are_refused(console: Console) -> None:
    only = ProxySettings(PROXY.addresses, ROLES)
    with guarded(console, "10.0.0.7", proxy=only, token=None) as client:
        refused = client.get("/api/me", headers=named("dave", "others"))
        assert (refused.status_code, refused.json()["code"]) == (403, "no-role")
        # Without a token of its own the console still asks who it is.
        assert client.get("/api/status").status_code == 401
        assert client.get("/api/status", headers=named("dave", "staff")).status_code == 200


def test_wrong_tokens_behind_a_proxy_are_counted_by_caller(console: Console) -> None:
    with guarded(console, "10.0.0.7", proxy=PROXY) as client:

        def guess(caller: str, token: str = "a guess") -> int:
            headers = {"authorization": f"Bearer {token}", "x-forwarded-for": f"1.2.3.4, {caller}"}
            return client.get("/api/status", headers=headers).status_code

        assert [guess("192.0.2.1") for _ in range(MOST + 1)] == [401] * MOST + [429]
        assert guess("192.0.2.2", TOKEN) == 200
    with guarded(console, "192.0.2.9", proxy=PROXY) as client:  # not the proxy: it cannot choose
        found = [guess(f"192.0.2.{n}") for n in range(100, 101 + MOST)]
        assert found == [401] * MOST + [429]


# ------------------------------------------------------------------ settings

OIDC = 'issuer = "https://login.example"\nclient_id = "c"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[console.oidc]\nclient_id = "c"\nviewers = ["*"]', "not the https|lacks issuer"),
        ('[console.oidc]\nissuer = "http://login.example"\nclient_id = "c"\nviewers = ["*"]', "not the https"),
        ('[console.oidc]\nissuer = "https://u@login.example"\nclient_id = "c"\nviewers = ["*"]', "not the https"),
        ('[console.oidc]\nissuer = "https://login.example"\nviewers = ["*"]', "lacks client_id"),
        (f"[console.oidc]\n{OIDC}", "lets nobody in"),
        (f'[console.oidc]\n{OIDC}viewers = ["*"]\nwrong = 1', "no setting 'wrong'"),
        (f'[console.oidc]\n{OIDC}viewers = [7]', "list of names"),
        (f'[console.oidc]\n{OIDC}viewers = ["*"]\nscopes = "email"', "lacks openid"),
        (f'[console.oidc]\n{OIDC}viewers = ["*"]\nsession = "1 second"', "between"),
        (f'[console]\nlisten = "0.0.0.0:8080"\n[console.oidc]\n{OIDC}viewers = ["*"]', "needs console.public"),
        ('[console.proxy]\nviewers = ["*"]', "names no addresses"),
        ('[console.proxy]\naddresses = ["0.0.0.0/0"]\nviewers = ["*"]', "every address"),
        ('[console.proxy]\naddresses = ["::/0"]\nviewers = ["*"]', "every address"),
        ('[console.proxy]\naddresses = ["proxy"]\nviewers = ["*"]', "no address"),
        ('[console.proxy]\naddresses = ["10.0.0.7"]', "lets nobody in"),
        ('[console.proxy]\naddresses = ["10.0.0.7"]\nviewers = ["*"]\nuser = "Cookie"', "name of a header"),
        ('[console.proxy]\naddresses = ["10.0.0.7"]\nviewers = ["*"]\nuser = "X User"', "name of a header"),
        ('[console]\noidc = "x"', "must be a table"),
    ],
)  # fmt: skip
def test_log_ins_that_make_no_sense_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "tailrace.toml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        config.load(tmp_path, environment={})


def test_the_settings_of_a_log_in(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text(
        '[console]\nlisten = "0.0.0.0:8080"\npublic = "https://console.example"\ntoken = "none"\n'
        f'[console.oidc]\n{OIDC}client_secret = "${{OIDC_SECRET}}"\nsession = "1 hour"\n'
        'operators = ["cn=ops,dc=x"]\n[console.proxy]\naddresses = "10.0.0.7"\nviewers = "*"\n'
    )
    console = config.load(tmp_path, environment={"OIDC_SECRET": SECRET}).console
    assert console.oidc is not None
    assert (console.oidc.client_secret, console.oidc.session) == (SECRET, timedelta(hours=1))
    assert console.oidc.roles == Roles(frozenset({"cn=ops,dc=x"}), frozenset())
    assert SECRET not in repr(console)
    assert console.proxy is not None
    assert console.proxy.user == b"x-forwarded-user"
    assert console.warnings == []  # it asks for a log-in, so it is not open


# ------------------------------------------------------------------ in a browser


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser")
def test_a_browser_goes_to_the_issuer_and_back_and_buttons_of_operators_are_shut(
    browser: Browser, site: Site, issuer: Issuer
) -> None:
    from playwright.sync_api import expect

    sink = next(iter(site.console.served.project.sinks))
    site.down()
    site.up(token=TOKEN, oidc=at(issuer))
    page = browser.new_page()
    try:
        for groups, shut in ((["staff"], True), (["operations"], False)):
            issuer.person["groups"] = groups
            page.goto(site.address)
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            page.get_by_role("link", name="company's account").click()
            expect(page.locator('[data-node="open_orders"]')).to_be_visible()
            expect(page.locator(".who")).to_contain_text(
                "carol viewer" if shut else "carol operator"
            )
            page.goto(f"{site.address}/#/sinks/{sink}")
            button = page.get_by_role("button", name="Compare")
            expect(button).to_be_disabled() if shut else expect(button).to_be_enabled()
            page.goto(f"{site.address}/#/views/open_orders")
            expect(page.get_by_role("table", name="Rows of open_orders")).to_contain_text("NL")
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    finally:
        page.close()
