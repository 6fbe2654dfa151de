"""Hooks made at a provider and removed there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner

import tailrace as tr
from tailrace import sources
from tailrace.cli.main import cli
from tailrace.client.log import Log
from tailrace.plain_http import Answer, HttpServer, Request
from tailrace.sources.edges.figures import Figures
from tailrace.sources.edges.registration import Hook, Provider, Registrar
from tailrace.sources.edges.runner import register
from tailrace.sources.edges.webhook import Receiver
from tailrace.sources.errors import HookError, SourceDeclarationError

URL = "https://shop.example/in"


class FakeProvider:
    """A provider's list of hooks, as its scheme has it."""

    def __init__(self) -> None:
        self.hooks: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.broken: Answer | None = None
        self._next = 1
        self.server = HttpServer("127.0.0.1", 0, self, refuse=lambda s, r: Answer(s, r.encode()))
        self.server.start()

    @property
    def api(self) -> str:
        return f"http://{self.server.address}/hooks"

    def __call__(self, request: Request) -> Answer:
        self.asked.append(request.method)
        if self.broken is not None:
            return self.broken
        if request.headers.get("authorization") != "Bearer t0ken":
            return Answer(401, b"{}")
        form = "x-www-form-urlencoded" in request.headers.get("content-type", "")
        match request.method, request.path:
            case "GET", ("hooks",):
                rows = list(self.hooks.values())
                return Answer(200, json.dumps({"data": rows} if self._stripe else rows).encode())
            case "POST", ("hooks",):
                body = _form(request.body) if form else json.loads(request.body)
                made = {"id": self._next, **body}
                self._stripe = form
                self.hooks[str(self._next)] = made
                self._next += 1
                told = {**made, "secret": f"whsec_{made['id']}"} if form else made
                return Answer(201, json.dumps(told).encode())
            case "PATCH", ("hooks", identity):
                self.hooks[identity] |= json.loads(request.body)
                return Answer(200, json.dumps(self.hooks[identity]).encode())
            case "DELETE", ("hooks", identity):
                found = self.hooks.pop(identity, None)
                return Answer(404 if found is None else 204, b"")
        return Answer(404, b"{}")

    _stripe = False


def _form(body: bytes) -> dict[str, Any]:
    given = parse_qs(body.decode())
    return {"url": given["url"][0], "enabled_events": given["enabled_events[]"]}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    made = FakeProvider()
    yield made
    made.server.close()


def declared(provider: FakeProvider, scheme: str = "standard", **more: Any) -> sources.Webhook:
    given = {"api": provider.api, "url": URL, "token": "t0ken", "events": "paid, refunded"}
    secret = () if scheme == "stripe" else more.pop("secret", "s3cret")
    return sources.Webhook(
        "hooks", "127.0.0.1:0", secret, scheme=scheme, register={**given, **more}
    )


@pytest.mark.parametrize("scheme", ["standard", "github", "stripe"])
def test_a_hook_is_made_once_and_removed(provider: FakeProvider, scheme: str, tmp_path: Path) -> None:  # fmt: skip
    edge = declared(provider, scheme)
    made = Provider(edge, tmp_path).make()
    assert Provider(edge, tmp_path).make() == made
    (hook,) = provider.hooks.values()
    if scheme == "github":
        assert hook["config"] == {"url": URL, "content_type": "json", "secret": "s3cret"}
        assert (hook["name"], hook["events"]) == ("web", ["paid", "refunded"])
    elif scheme == "stripe":
        assert hook["enabled_events"] == ["paid", "refunded"]
        assert made.secret == "whsec_1"
    else:
        assert (hook["url"], hook["secret"]) == (URL, "s3cret")
    provider.hooks["other"] = {"id": "other", "url": "https://elsewhere.example"}
    assert len(list(Provider(edge, tmp_path).remove())) == 1
    assert list(provider.hooks) == ["other"]
    assert list(Provider(edge, tmp_path).remove()) == []


@pytest.mark.parametrize("scheme", ["standard", "github", "stripe"])
def test_one_that_changed_or_went_is_made_again(provider: FakeProvider, scheme: str, tmp_path: Path) -> None:  # fmt: skip
    Provider(declared(provider, scheme), tmp_path).make()
    Provider(declared(provider, scheme, url=URL + "/new"), tmp_path).make()
    (hook,) = provider.hooks.values()
    assert (hook.get("config") or hook)["url"] == URL + "/new"
    again = Provider(declared(provider, scheme, url=URL + "/new"), tmp_path / "other")
    assert len(provider.hooks) == 1, "also where it is not known any more which it was"
    again.make()
    assert len(provider.hooks) == 1
    provider.hooks.clear()
    again.make()
    assert len(provider.hooks) == 1


def test_what_is_kept_cannot_be_read_by_others_and_has_no_secret(provider: FakeProvider, tmp_path: Path) -> None:  # fmt: skip
    Provider(declared(provider), tmp_path).make()
    path = tmp_path / "hooks" / "hooks.json"
    assert path.stat().st_mode & 0o077 == 0
    assert "s3cret" not in path.read_text()
    assert "t0ken" not in path.read_text()


@pytest.mark.parametrize(
    "answer",
    [Answer(500, b""), Answer(302, b"", headers=(("Location", "http://127.0.0.1:1/"),)),
     Answer(200, b"<html>"), Answer(200, b'"x"'), Answer(200, b"[1, {}]")],
)  # fmt: skip
def test_a_provider_that_answers_nonsense_is_told(provider: FakeProvider, answer: Answer, tmp_path: Path) -> None:  # fmt: skip
    provider.broken = answer
    with pytest.raises(HookError) as caught:
        Provider(declared(provider), tmp_path).make()
    assert "t0ken" not in str(caught.value) + str(caught.value.detail)


def test_a_registrar_goes_on_until_the_provider_answers(provider: FakeProvider, tmp_path: Path) -> None:  # fmt: skip
    provider.broken = Answer(503, b"")
    found: list[Hook] = []
    registrar = Registrar(Provider(declared(provider), tmp_path), found.append)
    registrar.start()
    try:
        until = time.monotonic() + 30
        while registrar.error is None and time.monotonic() < until:
            time.sleep(0.01)
        assert registrar.report()["hook"] is None
        assert registrar.report()["error"]
        provider.broken = None
        while not found and time.monotonic() < until:
            time.sleep(0.01)
        assert found
        while registrar.error is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert registrar.report() == {"hook": "1", "error": None}
    finally:
        registrar.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as opened:
        yield opened


def test_a_secret_that_the_provider_made_is_trusted_from_then_on(provider: FakeProvider, log: Log, tmp_path: Path) -> None:  # fmt: skip
    edge = declared(provider, "stripe")
    for _ in range(2):
        work = Receiver(edge, log, Figures())
        registrar = register(edge, tmp_path / "state", work)
        until = time.monotonic() + 30
        while registrar.hook is None and time.monotonic() < until:
            time.sleep(0.01)
        registrar.close()
        assert work._secrets == ["whsec_1"]


def test_a_project_drops_the_hook_of_its_edge(provider: FakeProvider, tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text("")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "edges.py").write_text(
        "from tailrace import sources\n"
        f'hooks = sources.Webhook("hooks", "127.0.0.1:0", "s3cret", register={{"api": "{provider.api}", "url": "{URL}", "token": "t0ken"}})\n'
    )
    Provider(declared(provider, events="*"), tmp_path / ".tailrace").make()
    dropped = CliRunner().invoke(cli, ["source", "drop", "hooks", "--yes", "--log", str(tmp_path)])
    assert (dropped.exit_code, dropped.output) == (0, f"dropped hook 1 at {provider.api}\n")
    assert not provider.hooks
    dropped = CliRunner().invoke(cli, ["source", "drop", "hooks", "--yes", "--log", str(tmp_path)])
    assert dropped.output == "hooks has left nothing at its provider\n"


@pytest.mark.parametrize(
    ("given", "why"),
    [({"api": "https://a.example"}, "needs 'url'"), ({"url": URL}, "needs 'api'"),
     ({"api": "ftp://a", "url": URL}, "https"), ({"api": "http://a.example", "url": URL}, "https"),
     ({"api": "https://a.example", "url": URL, "colour": "red"}, "knows no 'colour'")],
)  # fmt: skip
def test_a_registration_that_means_nothing_is_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(SourceDeclarationError, match=why):
        sources.Webhook("h", "127.0.0.1:1", "s", register=given)


def test_a_token_is_not_shown(provider: FakeProvider) -> None:
    assert "t0ken" not in repr(declared(provider))
