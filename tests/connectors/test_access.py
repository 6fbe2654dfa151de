"""Who may use a worker: TLS, log-ins, and workers among themselves."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest

import tailrace as tr
from connectors.conftest import PLUGINS, until
from tailrace.broker.authentication.throw_away import make
from tailrace.client.log import Log
from tailrace.connectors.serve import ConnectServer, Settings
from tailrace.errors import OpenListenerError, UsageError


def test_workers_with_tls_ask_who_comes_in_and_pass_requests_on(address: str, log: Log, tmp_path: Path) -> None:  # fmt: skip
    users, files = tmp_path / "users", make(tmp_path / "certificates")
    users.write_text("ann: secret:word\nbob: other, read\n")
    given = {
        "group.id": "guarded",
        "config.storage.topic": "guarded",
        "offset.storage.partitions": "1",
    }
    settings = Settings(
        "127.0.0.1:0", [PLUGINS], given, False, users, files["broker"], files["broker"], files["ca"]
    )
    context = ssl.create_default_context(cafile=str(files["ca"]))
    with tr.connect(address) as second, ConnectServer(log, address, settings) as one, ConnectServer(second, address, settings) as two:  # fmt: skip
        one.start()
        two.start()
        until(lambda: len(one.worker.workers()) == len(two.worker.workers()) == 2)
        follower = next(each for each in (one, two) if not each.worker.leads)
        url = f"https://{follower.address}"

        def ask(method: str, path: str, who: tuple[str, str] | None, body: object = None) -> httpx.Response:  # fmt: skip
            return httpx.request(
                method, url + path, auth=who, json=body, verify=context, timeout=60
            )

        ann, bob = ("ann", "secret:word"), ("bob", "other")
        made = {"name": "n", "config": {"connector.class": "Numbers", "topic": "guarded-numbers", "parts": "1", "end": "1"}}  # fmt: skip
        for who in (None, ("ann", "guess"), ("eve", "other")):
            refused = ask("GET", "/connectors", who)
            assert (refused.status_code, refused.json()["error_code"]) == (401, 401)
            assert refused.headers["www-authenticate"].startswith("Basic ")
        assert ask("POST", "/connectors", bob, made).status_code == 403
        answer = ask("POST", "/connectors", ann, made)
        assert (answer.status_code, answer.headers["location"].partition(":")[0]) == (201, "https")
        assert ask("GET", "/connectors", bob).json() == ["n"]
        assert ask("PUT", "/connector-plugins/Numbers/config/validate", bob, made["config"]).status_code == 200  # fmt: skip
        assert ask("DELETE", "/connectors/n", bob).status_code == 403
        assert ask("DELETE", "/connectors/n", ann).status_code == 204


def test_a_worker_is_not_opened_to_all_by_mistake(address: str, log: Log, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: x\n")
    with pytest.raises(OpenListenerError):
        ConnectServer(log, address, Settings("0.0.0.0:0", users=users))
    with pytest.raises(UsageError):
        ConnectServer(log, address, Settings("127.0.0.1:0", certificate=users, key=users))
