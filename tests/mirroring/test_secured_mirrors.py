"""Mirrors of a project between clusters that speak TLS and ask who is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.authentication.guarded_broker import PASSWORD, Guarded
from tailrace.cli.main import cli
from tailrace.client.admin import Admin
from tailrace.client.errors import AuthenticationError
from tailrace.client.fetcher import Fetcher
from tailrace.client.log import connect

SITES = ("ams", "ber")


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[dict[str, Guarded]]:
    found = {}
    for site in SITES:
        (tmp_path / site).mkdir()
        found[site] = Guarded(tmp_path / site)
    yield found
    for each in found.values():
        each.thread.stop()


def _project(folder: Path, guarded: dict[str, Guarded]) -> None:
    tables = '[project]\nname = "shop"\n'
    for site, one in guarded.items():
        tables += f"""
[clusters.{site}]
bootstrap = "127.0.0.1:{one.ports["SASL_SSL"]}"
[clusters.{site}.security]
protocol = "SASL_SSL"
mechanism = "SCRAM-SHA-512"
username = "alice"
password = "${{ALICES_PASSWORD}}"
ca = "{one.truststore}"
"""
    tables += '[mirrors.to-berlin]\nfrom = "ams"\nto = "ber"\ntopics = ["orders"]\nshards = 2\n'
    (folder / "tailrace.toml").write_text(tables)


def _mirror(folder: Path, *words: str) -> str:
    result = CliRunner().invoke(cli, ["mirror", *words, "--project", str(folder)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_mirror_is_run_told_compared_left_and_come_back_to_over_tls_without_a_secret_told(
    tmp_path: Path, guarded: dict[str, Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    _project(tmp_path, guarded)
    ams, ber = (guarded[site].alice("SASL_SSL", "SCRAM-SHA-512") for site in SITES)
    with Admin(ams) as admin:
        admin.create_topic("orders", 2)
    with connect(ams) as log, log.producer() as producer:
        for number in range(6):
            producer.send("orders", value=b"%d" % number, partition=number % 2)
    said = ""
    for shard in ("0/2", "1/2"):
        said += _mirror(tmp_path, "run", "to-berlin", "--until-caught-up", "--shard", shard)
    status = _mirror(tmp_path, "status", "to-berlin", "--json")
    assert (json.loads(status)["lag_records"], json.loads(status)["records"]) == (0, 6)
    compared = _mirror(tmp_path, "verify", "to-berlin", "--json")
    assert json.loads(compared)["equal"]
    said += status + compared + _mirror(tmp_path, "list")
    said += _mirror(tmp_path, "fail-over", "to-berlin", "--execute")
    with connect(ber) as log, log.producer() as producer:
        producer.send("orders", value=b"6", partition=0)
    said += _mirror(tmp_path, "fail-back", "to-berlin", "--execute")
    with Fetcher(ams) as here, Fetcher(ber) as there:
        values = [[each.value for each in one.read_all("orders", 0)] for one in (here, there)]
        rows = b"".join((each.key or b"") + (each.value or b"") for each in there.read_all("__tailrace_mirrors"))  # fmt: skip
    assert values == [[b"0", b"2", b"4", b"6"]] * 2
    assert PASSWORD not in said
    assert PASSWORD.encode() not in rows


def test_a_wrong_password_ends_a_mirror_and_is_not_told(
    tmp_path: Path, guarded: dict[str, Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", "wrong-canary")
    _project(tmp_path, guarded)
    with pytest.raises(AuthenticationError) as refused:
        _mirror(tmp_path, "run", "to-berlin", "--until-caught-up", "--shard", "0/2")
    assert "wrong-canary" not in refused.value.render()
