"""Who may call the console: by token, by the page's cookie, by no guess, through a proxy."""

from __future__ import annotations

import http.client
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import tailrace as tr
from servers.certificates import self_signed
from servers.consoles import Console
from servers.running_console import running
from tailrace import config, console_token
from tailrace.cli.doctor import examine
from tailrace.console.app import create_app
from tailrace.console.guesses import MOST, SECONDS, Guesses
from tailrace.console.lookup import FastLookups
from tailrace.console.security import Access, Guard
from tailrace.errors import ConfigError, ConfigValueError
from tailrace.project.check import check
from tailrace.project.load import load
from tailrace.serving.errors import ViewsRemoteError
from tailrace.serving.remote import RemoteViews
from tailrace.testing.fake_clock import FakeClock

TOKEN = "a token of some length"
BEARER = {"authorization": f"Bearer {TOKEN}"}
LOCAL = "http://127.0.0.1:8080"


@contextmanager
def guarded(console: Console, access: Access, base: str = LOCAL) -> Iterator[TestClient]:
    app = FastLookups(create_app(console.served), console.served.views)
    yield TestClient(Guard(app, access), base_url=base)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_every_call_needs_the_token_also_on_loopback(console: Console, host: str) -> None:
    with guarded(console, Access(host, TOKEN)) as client:
        for path in ("/", "/assets/index.js"):
            assert client.get(path).status_code == 200  # the page holds no data
        for path in ("/api/status", "/metrics", "/api/views/open_orders/NL", "/api/docs", "/api/openapi.json", "/api/live", "/nowhere"):  # fmt: skip
            refused = client.get(path)
            assert refused.status_code == 401, path
            assert refused.json()["code"] == "token-needed"
            wrong = client.get(path, headers={"authorization": f"Bearer {TOKEN}x"})
            assert wrong.status_code == 401, path
        assert client.post("/api/sql", json={"sql": "SELECT 1"}).status_code == 401
        assert client.get("/api/status", headers=BEARER).status_code == 200
        found = client.get("/api/views/open_orders/NL", headers=BEARER)
        assert found.json() == {"row": {"country": "NL", "orders": 2}}


def test_the_token_is_not_taken_from_an_address(console: Console) -> None:
    # Addresses end up in histories, logs and Referer headers.
    with guarded(console, Access("127.0.0.1", TOKEN)) as client:
        assert client.get("/api/status", params={"token": TOKEN}).status_code == 401


def test_a_page_exchanges_the_token_for_a_cookie(console: Console) -> None:
    with guarded(console, Access("127.0.0.1", TOKEN, cookie="tailrace-8080")) as client:
        assert client.post("/api/session").status_code == 401
        assert client.get("/api/session", headers=BEARER).status_code == 404
        begun = client.post("/api/session", headers=BEARER)
        assert begun.status_code == 200
        name, *about = begun.headers["set-cookie"].split("; ")
        assert name.startswith("tailrace-8080=")
        assert set(about) == {"Path=/", "HttpOnly", "SameSite=Strict"}
        assert TOKEN not in name
        assert client.get("/api/status").status_code == 200  # the client keeps cookies
        asked = {"json": {"sql": "SELECT 1 AS one"}}
        assert client.post("/api/sql", **asked).status_code == 403  # nobody says whose page
        own = client.post("/api/sql", headers={"origin": LOCAL}, **asked)
        assert own.json()["rows"] == [{"one": 1}]
        other = {"origin": "http://127.0.0.1:9999"}  # the same site, so it carries the cookie
        assert client.post("/api/sql", headers=other, **asked).status_code == 403
    cookie = {"cookie": name}
    with guarded(console, Access("127.0.0.1", "another token, longer", cookie="tailrace-8080")) as client:  # fmt: skip
        assert client.get("/api/status", headers=cookie).status_code == 401


def test_a_cookie_of_an_encrypted_console_is_sent_encrypted_only(console: Console) -> None:
    access = Access("127.0.0.1", TOKEN, public="https://console.example", encrypted=True)
    with guarded(console, access) as client:
        begun = client.post("/api/session", headers=BEARER)
        assert "Secure" in begun.headers["set-cookie"].split("; ")


def test_wrong_tokens_are_counted_by_address() -> None:
    clock = FakeClock()
    guesses = Guesses(clock)
    for _ in range(MOST):
        assert not guesses.exhausted("10.0.0.1")
        guesses.count("10.0.0.1")
    assert guesses.exhausted("10.0.0.1")
    assert not guesses.exhausted("10.0.0.2")
    for last in range(MOST):
        guesses.count(f"2001:db8::{last:x}")
    assert guesses.exhausted("2001:db8::ffff")  # the same network
    assert not guesses.exhausted("2001:db8:1::1")
    clock.advance(SECONDS)
    assert not guesses.exhausted("10.0.0.1")


@pytest.mark.parametrize("chosen", [True, False])
def test_guesses_have_a_limit(console: Console, chosen: bool) -> None:
    with guarded(console, Access("127.0.0.1", TOKEN, chosen=chosen)) as client:
        client.post("/api/session", headers=BEARER)
        session = {"cookie": "; ".join(f"{k}={v}" for k, v in client.cookies.items())}
        client.cookies.clear()
        found = [
            client.get("/api/status", headers={"authorization": f"Bearer guess {n}"}).status_code
            for n in range(MOST + 5)
        ]
        assert found == [401] * MOST + [429] * 5
        # One that a person chose could be found by going on; nobody finds a random one, and
        # its owner is not to be locked out by others on this machine.
        right = client.get("/api/status", headers=BEARER)
        assert right.status_code == (429 if chosen else 200)
        assert client.get("/api/status", headers=session).status_code == 200


def test_large_bodies_are_refused_unread(console: Console) -> None:
    with running(console) as port:
        for length in (300 << 20, (1 << 20) + 1):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.putrequest("POST", "/api/sql")
            connection.putheader("content-type", "application/json")
            connection.putheader("content-length", str(length))
            connection.endheaders(b"{")  # and nothing more: the answer does not wait for it
            answer = connection.getresponse()
            assert answer.status == 413
            assert json.loads(answer.read())["code"] == "body-too-large"
            connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.putrequest("POST", "/api/sql")
        connection.putheader("content-type", "application/json")
        connection.putheader("transfer-encoding", "chunked")
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()


# ------------------------------------------------------------------ behind a proxy


def test_a_proxy_is_served_by_the_name_it_has(console: Console) -> None:
    public = "https://console.example"
    asked = {"json": {"sql": "SELECT 1 AS one"}}
    with guarded(console, Access("127.0.0.1", TOKEN, public=public)) as client:
        kept = {
            **BEARER,
            "host": "console.example",
            "origin": public,
        }  # Host as the browser sent it
        rewritten = {**BEARER, "origin": public}  # Host of the console itself
        for headers in (kept, rewritten):
            assert client.get("/api/status", headers=headers).status_code == 200
            assert client.post("/api/sql", headers=headers, **asked).status_code == 200
        for wrong in ("https://evil.example", "http://console.example:81", "https://console.example.evil", "null"):  # fmt: skip
            foreign = {**BEARER, "origin": wrong}
            assert client.post("/api/sql", headers=foreign, **asked).status_code == 403, wrong
        assert client.get("/api/status", headers={**BEARER, "host": "evil"}).status_code == 403


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://Console.Example/", "https://console.example"),
        ("https://console.example:443", "https://console.example"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_the_public_address_is_an_origin(given: str, expected: str) -> None:
    assert config.parse_origin(given) == expected


@pytest.mark.parametrize("given", ["console.example", "ftp://x", "https://x/path", "https://u@x", "https://", "https://x:99999", 7])  # fmt: skip
def test_what_is_no_origin_is_refused(given: object) -> None:
    with pytest.raises(ConfigValueError):
        config.parse_origin(given)


# ------------------------------------------------------------------ settings and the file


def settings(directory: Path, text: str = "") -> config.Settings:
    (directory / "tailrace.toml").write_text(f"[console]\n{text}\n")
    return config.load(directory, environment={})


def test_each_start_makes_a_token_that_only_its_owner_can_read(tmp_path: Path) -> None:
    console = settings(tmp_path).console
    before = os.umask(0)
    try:
        first = console_token.establish(tmp_path, console)
    finally:
        os.umask(before)
    assert first is not None
    assert len(first) >= 32
    path = tmp_path / console_token.FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert console_token.read(tmp_path) == first
    assert console_token.current(tmp_path, console) == first  # a console that is started again
    second = console_token.establish(tmp_path, console)
    assert second != first
    chosen = settings(tmp_path, f'token = "{TOKEN}"').console
    assert console_token.establish(tmp_path, chosen) == TOKEN
    assert console_token.read(tmp_path) == TOKEN
    for word in ("none", ""):
        off = settings(tmp_path, f'token = "{word}"').console
        assert off.open
        assert console_token.establish(tmp_path, off) is None
        assert console_token.current(tmp_path, off) is None
        assert not path.exists()


@pytest.mark.parametrize("given", ['"a"', '"fifteen letters"', "7", '"sixteen letters é"'])
def test_a_token_that_could_be_guessed_is_refused_without_showing_it(
    tmp_path: Path, given: str
) -> None:
    with pytest.raises(ConfigValueError) as refused:
        settings(tmp_path, f"token = {given}")
    assert given not in refused.value.render()
    assert "letters" not in refused.value.detail


def test_a_console_for_other_machines_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigValueError, match="needs a token"):
        settings(tmp_path, 'listen = "0.0.0.0:8080"\ntoken = "none"')
    made = settings(tmp_path, 'listen = "0.0.0.0:8080"').console
    assert console_token.establish(tmp_path, made)


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("", []),
        ('token = "none"', ["every user of this machine"]),
        ('listen = "0.0.0.0:8080"', ["clear text"]),
        ('listen = "0.0.0.0:8080"\npublic = "http://console.example"', ["clear text"]),
        ('listen = "0.0.0.0:8080"\npublic = "https://console.example"', []),
        ('listen = "0.0.0.0:8080"\ncert = "c.pem"\nkey = "c.key"', []),
    ],
)
def test_check_and_doctor_warn_of_what_lets_others_in(
    tmp_path: Path, text: str, warnings: list[str]
) -> None:
    settings(tmp_path, text)
    checked = [one.found for one in check(load(tmp_path)) if one.what == "console"]
    found = [one.found + one.meaning for one in examine(tmp_path) if one.what == "console"]
    for told in (checked, found):
        assert len(told) == len(warnings)
        assert all(words in one for words, one in zip(warnings, told, strict=True))


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        settings(tmp_path, 'cert = "console.pem"')
    both = settings(tmp_path, 'cert = "console.pem"\nkey = "/keys/console.key"').console
    assert (both.cert, both.key) == (tmp_path / "console.pem", Path("/keys/console.key"))
    assert both.encrypted


def test_a_console_with_a_certificate_speaks_https(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = Access("127.0.0.1", TOKEN, encrypted=True)
    with running(console, access, certificate=self_signed() / "localhost") as port:
        link = console_token.link(f"https://localhost:{port}", TOKEN)
        with tr.views(link) as views, pytest.raises(ViewsRemoteError, match="no console answers"):
            views["open_orders"].get("NL")  # nobody vouches for its certificate
        monkeypatch.setenv("SSL_CERT_FILE", str(self_signed() / "localhost.pem"))
        with tr.views(link) as views:
            assert views["open_orders"].get("NL") == {"country": "NL", "orders": 2}


# ------------------------------------------------------------------ programs


def test_views_take_the_printed_link_the_token_and_the_directorys_own(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(console, Access("127.0.0.1", TOKEN)) as port:
        address = f"http://127.0.0.1:{port}"
        link = console_token.link(address, TOKEN)
        assert link == f"{address}/#token={TOKEN}"
        with tr.views(address) as views, pytest.raises(ViewsRemoteError, match="its token"):
            views["open_orders"].get("NL")
        for views in (tr.views(link), tr.views(address, token=TOKEN), RemoteViews(link)):
            with views:
                assert views["open_orders"].get("NL") == {"country": "NL", "orders": 2}
        state = tmp_path / "here" / ".tailrace"
        (state / "run").mkdir(parents=True)
        (state / console_token.FILE).write_text(TOKEN)
        report = {"kind": "console", "name": "console", "state": "running", "address": address}
        (state / "run" / "console-console.json").write_text(json.dumps(report))
        monkeypatch.chdir(tmp_path / "here")
        for given in (f"localhost:{port}", f"127.0.0.1:{port}", address):
            with tr.views(given) as views:
                assert views["open_orders"].get("NL") == {"country": "NL", "orders": 2}
        other = {**report, "address": "http://127.0.0.1:1"}
        (state / "run" / "console-console.json").write_text(json.dumps(other))
        with tr.views(address) as views, pytest.raises(ViewsRemoteError, match="its token"):
            views["open_orders"].get("NL")  # this directory's token is another console's


def test_the_file_is_made_before_anybody_can_look(tmp_path: Path) -> None:
    """A file or link that somebody put there is not written through."""
    target = tmp_path / "elsewhere"
    target.touch()
    (tmp_path / console_token.FILE).symlink_to(target)
    made = console_token.establish(tmp_path, settings(tmp_path).console)
    assert target.read_text() == ""
    assert console_token.read(tmp_path) == made


def test_up_prints_a_link_that_carries_the_token(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text(
        '[project]\nname = "small"\n[log]\nlisten = "127.0.0.1:0"\n[console]\nlisten = "127.0.0.1:0"\n'
    )
    program = str(Path(sys.executable).with_name("tailrace"))
    command = [program, "up", str(tmp_path), "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            [line] = [line for line in iter(process.stdout.readline, "ready\n") if line]
            address = line.strip().removeprefix("console http://").partition("/")[0]
            # Nobody gets another address, and with it more guesses, by saying that they have it.
            found = [guess(address, f"192.0.2.{number}") for number in range(MOST + 1)]
            assert found == [401] * MOST + [429]
        finally:
            process.terminate()
    prefix, _, token = line.strip().partition("/#token=")
    assert prefix.startswith("console http://127.0.0.1:")
    assert token == console_token.read(tmp_path / ".tailrace")
    everything = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    holding = [path.name for path in everything if token.encode() in path.read_bytes()]
    assert holding == [console_token.FILE]


def guess(address: str, forwarded: str) -> int:
    connection = http.client.HTTPConnection(address, timeout=60)
    headers = {"authorization": "Bearer a guess", "x-forwarded-for": forwarded}
    connection.request("GET", "/api/status", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


VIEWER = "a token for those who look"


def test_viewers_look_and_do_not_operate(
    console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tailrace.console.audit")
    access = Access("127.0.0.1", TOKEN, viewer=VIEWER)
    reset = "/api/groups/nobody/reset"
    looks = {"authorization": f"Bearer {VIEWER}"}
    with guarded(console, access) as client:
        assert client.get("/api/status", headers=looks).status_code == 200
        asked = client.post("/api/sql", json={"sql": "SELECT 1 AS one"}, headers=looks)
        assert asked.json()["rows"] == [{"one": 1}]
        refused = client.post(reset, json={}, headers=looks)
        assert (refused.status_code, refused.json()["code"]) == (403, "console-viewer")
        begun = client.post("/api/session", headers=looks)
        assert TOKEN not in begun.headers["set-cookie"]
        assert VIEWER not in begun.headers["set-cookie"]
        own = {"origin": LOCAL}
        assert client.get("/api/status").status_code == 200  # by the cookie
        assert client.post(reset, json={}, headers=own).status_code == 403
        client.cookies.clear()
        client.post("/api/session", headers=BEARER)
        by_operator = client.post(reset, json={}, headers=own)
        assert by_operator.status_code not in (401, 403)
        client.cookies.clear()
        assert client.post(reset, json={}).status_code == 401
    told = [
        (record.role, record.path, record.status)
        for record in caplog.records
        if record.name.endswith("console.audit")
    ]  # type: ignore[attr-defined]
    assert told == [
        ("viewer", reset, 403),
        ("viewer", reset, 403),
        ("operator", reset, by_operator.status_code),
        ("none", reset, 401),
    ]
    assert TOKEN not in caplog.text
    assert VIEWER not in caplog.text


def test_wrong_tokens_are_counted_for_viewers_too(console: Console) -> None:
    with guarded(console, Access("127.0.0.1", TOKEN, chosen=False, viewer=VIEWER)) as client:
        wrong = {"authorization": "Bearer a guess"}
        for _ in range(MOST):
            assert client.get("/api/status", headers=wrong).status_code == 401
        looks = {"authorization": f"Bearer {VIEWER}"}
        assert client.get("/api/status", headers=looks).status_code == 429
        assert client.get("/api/status", headers=BEARER).status_code == 200  # made at random


def test_a_viewers_token_that_tells_nobody_apart_is_refused(tmp_path: Path) -> None:
    def loaded(text: str) -> config.Settings:
        (tmp_path / "tailrace.toml").write_text(f"[console]\n{text}\n")
        return config.load(tmp_path)

    settings = loaded(f'viewer_token = "{VIEWER}"').console
    assert settings.viewer_token == VIEWER
    assert VIEWER not in repr(settings)
    for text in (
        f'token = "{VIEWER}"\nviewer_token = "{VIEWER}"',
        f'token = "none"\nviewer_token = "{VIEWER}"',
        'viewer_token = "none"',
        'viewer_token = "short"',
    ):
        with pytest.raises(ConfigError):
            loaded(text)
