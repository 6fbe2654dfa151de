"""A canary in every secret a project can hold, looked for in everything that comes out."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from click.testing import CliRunner
from fastapi.testclient import TestClient

from tailrace import masking, sinks, sources
from tailrace.cli.main import cli
from tailrace.config import EnvironmentValue, Secret, resolve
from tailrace.console.app import Served, create_app
from tailrace.console.figures import Figures
from tailrace.errors import TailraceError, UsageError
from tailrace.masking import mask
from tailrace.project import load
from tailrace.serving.reader import Views
from tailrace.sinks.base import Shape
from tailrace.sinks.declare import Declaration
from tailrace.sinks.registry import KINDS, Copy, Surroundings, make_sink
from tailrace.telemetry import logs
from tailrace.telemetry.part import Part

CANARY = "cAnArY"  # in every secret below

SETTINGS = """
[project]
name = "shop"
[log]
listen = "127.0.0.1:0"
broker."sasl.password" = "cAnArY-broker"
broker."ssl.keystore.password" = "cAnArY-key-store"
broker."ssl.key.password" = "cAnArY-private-key"
broker."delegation.token.secret.key" = "cAnArY-delegation"
broker."listener.name.x.plain.sasl.jaas.config" = 'PlainLoginModule required user_a="cAnArY-jaas";'
[console]
listen = "127.0.0.1:0"
token = "cAnArY-token-of-the-console"
viewer_token = "cAnArY-token-of-viewers"
[console.oidc]
issuer = "https://127.0.0.1:1"
client_id = "tailrace"
client_secret = "cAnArY-oidc-client"
viewers = ["*"]
[registry]
url = "http://127.0.0.1:1"
user = "shop"
password = "cAnArY-of-the-registry"
[events]
key = "cAnArY that wraps the keys of personal fields"
[spark]
state = "s3://key:cAnArY-state@bucket/state"
conf."spark.hadoop.fs.s3a.secret.key" = "cAnArY-spark"
"""

DECLARED = """
import tailrace as tr
from tailrace import sinks, sources

shop = sources.Postgres("shop", dsn=tr.env("SHOP_DSN"), tables=["orders"],
    mask={"orders": {"note": "sha256"}}, mask_key="cAnArY-mask-key")
other = sources.Postgres("other", dsn=tr.env("OTHER_DSN"), tables=["orders"], mask_key=tr.env("OTHER_KEY"))
lite = sources.SQLite("lite", path="lite.db", tables=["t"], mask_key="cAnArY-lite-key")
maria = sources.MySQL("maria", dsn="mysql://shop:cAnArY-maria@127.0.0.1:1/shop", tables=["orders"], mask_key="cAnArY-maria-key")
calls = sources.Webhook("calls", listen="127.0.0.1:0", secret=["whsec_cAnArYcAnArYcAnArY", tr.env("CALLS_SECRET")])
clicks = sources.HTTP("clicks", listen="127.0.0.1:0", topics=["clicks"], token="cAnArY-token-of-the-edge")
readings = tr.topic("readings", schema='{"type":"record","name":"R","fields":[{"name":"n","type":"long"}]}',
    format="avro", wire="confluent", registry="http://user:cAnArY-registry@127.0.0.1:1")

v = tr.view("v", "SELECT id, count(*) AS n FROM shop.orders GROUP BY id", key="id", to=[
    sinks.Postgres("postgresql://u:cAnArY%21pg@127.0.0.1:1/db", table="t", name="postgres"),
    sinks.Postgres("host=127.0.0.1 port=1 user=u password='cAnArY with spaces'", table="t2", name="postgres-words"),
    sinks.MySQL("mysql://u:cAnArY-my@127.0.0.1:1/db", table="t", name="mysql"),
    sinks.Redis("redis://:cAnArY-redis@127.0.0.1:1/0", prefix="p", name="redis"),
    sinks.Redis(tr.env("REDIS_URL"), prefix="p", name="redis-typo"),
    sinks.Elasticsearch("http://u:cAnArY-es@127.0.0.1:1", index="i", headers={"X-Api-Key": "cAnArY-es-header"}, name="elasticsearch"),
    sinks.Delta("s3://bucket/t", options={"AWS_SECRET_ACCESS_KEY": "cAnArY-delta", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, name="delta"),
    sinks.Iceberg({"type": "rest", "uri": "http://127.0.0.1:1", "credential": "id:cAnArY-iceberg"}, "a.b", name="iceberg"),
    sinks.Webhook("http://127.0.0.1:1/services/T0/cAnArY-hook?sig=cAnArY-sig", secret="cAnArY-hmac", headers={"Authorization": "Bearer cAnArY-bearer"}, name="webhook"),
    sinks.Webhook(tr.env("HOOK_URL"), headers={"Authorization": tr.env("HOOK_HEADER")}, name="webhook-env"),
    sinks.Email("smtp://u:cAnArY-mail@127.0.0.1:1", to="a@b", name="email"),
])
"""
ENVIRONMENT = {
    "SHOP_DSN": "postgress://shop:cAnArY/pg@127.0.0.1:1/shop",  # mistyped, both
    "REDIS_URL": "rediss//:cAnArY-no-scheme@127.0.0.1:1/0",
    "OTHER_DSN": "postgres://shop:cAnArY@pg:odd@127.0.0.1:1/shop",
    "OTHER_KEY": "cAnArY-other-key",
    "CALLS_SECRET": "cAnArY-call-of-environment",
    "HOOK_URL": "https://127.0.0.1:1/services/cAnArY-hook-of-environment",
    "HOOK_HEADER": "Bearer cAnArY-header-of-environment",
}


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_known", ())


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "tailrace.toml").write_text(SETTINGS)
    (tmp_path / "pipelines" / "shop.py").write_text(DECLARED)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def project(directory: Path) -> load.Project:
    return load.load(directory)


def texts(error: BaseException) -> Iterator[str]:
    """An error in all the forms in which somebody sees one."""
    kept = io.StringIO()
    for form in ("human", "json"):
        logs.configure("info", form, kept)
        logger = logging.getLogger("tailrace.test")
        try:
            raise error
        except BaseException:
            logger.exception("it failed", extra={"error": error, "more": {"said": str(error)}})
            logger.warning("it failed: %s", error)
    logs.configure()
    yield kept.getvalue()
    if isinstance(error, TailraceError):
        yield error.render()
        yield json.dumps(error.as_dict())
        yield str(error)
        again = pickle.loads(pickle.dumps(error))
        yield again.render()
        yield "".join(traceback.format_exception_only(error))


def test_every_kind_of_sink_and_source_is_in_the_project(project: load.Project) -> None:
    declared = [copy.declaration for copy in project.sinks.values()]
    without = {"sqlite", "duckdb", "search", "parquet", "topic", "function"}  # no secret in them
    assert {one.kind for one in declared} == set(KINDS) - without
    for one in [*declared, *project.sources.values()]:
        for field in dataclasses.fields(one):
            if field.metadata.get("secret"):
                value = getattr(one, field.name)
                for part in value.values() if isinstance(value, Mapping) else [value]:
                    if part is not None:
                        assert isinstance(part, Secret | EnvironmentValue), (one.kind, field.name)
                        assert CANARY in resolve(part) or part == Secret("rest") or "127" in resolve(part)  # fmt: skip


def test_what_has_no_secret_field_holds_no_text_that_could_be_one() -> None:
    """A new field of a connection is declared as a secret, or added here by somebody."""
    plain = {
        "name", "start", "columns", "table", "create", "schema_change", "path", "prefix", "format",
        "mode", "index", "fields", "mappings", "partition_by", "to", "sender", "subject", "body",
        "topic", "bootstrap", "whole", "batch_rows", "expire", "tombstones", "batch", "parallel",
        "timeout", "digest", "function", "tables", "exclude", "where", "mask", "history", "outbox",
        "snapshot", "partitions", "slot", "publication", "ddl_trigger", "copy_connections",
        "heartbeat", "wal_warning", "wal_critical", "poll", "open",
        "address", "hosts",  # a column, and names of hosts
    }  # fmt: skip
    kinds = [
        getattr(sinks, name) for name in sinks.__all__ if isinstance(getattr(sinks, name), type)
    ]
    for kind in [*kinds, sources.Postgres, sources.SQLite]:
        if dataclasses.is_dataclass(kind) and (issubclass(kind, Declaration) or kind in (sources.Postgres, sources.SQLite)):  # fmt: skip
            found = {f.name for f in dataclasses.fields(kind) if not f.metadata.get("secret")}
            assert found <= plain, kind


def test_no_repr_shows_one(project: load.Project) -> None:
    assert CANARY not in repr(project)
    assert CANARY not in repr(project.settings)
    for copy in project.sinks.values():
        assert CANARY not in f"{copy} {copy.declaration!s} {copy.declaration.place}"
    assert {"calls", "clicks"} <= set(project.edges)
    for source in [*project.sources.values(), *project.edges.values()]:
        assert CANARY not in f"{source} {source!r}"
        assert pickle.loads(pickle.dumps(source)) == source
    assert project.sinks["webhook"].declaration.place == "webhook http://127.0.0.1:1"
    assert project.sinks["webhook-env"].declaration.place == "webhook $HOOK_URL"


def _slow(*commands: list[str]) -> list[ParameterSet]:
    """Those that wait for a log that does not answer."""
    return [pytest.param(one, marks=pytest.mark.thorough) for one in commands]


@pytest.mark.parametrize(
    "command",
    [
        ["check"], ["check", "--json"], ["check", "--origins"], ["check", "--connect"],
        ["check", "--connect", "--json"], ["sink", "list"], ["sink", "list", "--json"],
        ["source", "list"], ["source", "list", "--json"], ["source", "doctor", "shop"],
        ["source", "doctor", "other"], ["source", "status", "shop"], ["graph"],
        ["graph", "--format", "json"], ["graph", "--format", "mermaid"], ["status"],
        ["status", "--json"], ["sink", "status", "webhook"], ["doctor"], ["pipeline", "list"],
        ["view", "explain", "v"], ["source", "doctor", "maria"],
        ["source", "status", "maria"], ["source", "status", "calls"], ["schema", "list"],
        ["schema", "list", "--json"], ["schema", "show", "readings"], ["sql", "SELECT 1"],
        *_slow(
            ["source", "drop", "maria", "--yes"], ["events", "list"], ["events", "owners"],
            ["erase", "list"], ["erase", "verify", "customer", "7"], ["mirror", "list"],
            ["mirror", "list", "--to", "."], ["cluster", "status"], ["pattern", "list"],
            ["cluster", "status", "--bootstrap", "."], ["topic", "list"], ["acl", "list"],
            ["mirror", "start", "--from", ".", "--to", "127.0.0.1:1", "--topics", "x", "m"],
        ),
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_command_shows_one(
    directory: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    result = CliRunner().invoke(cli, command)
    assert CANARY not in result.output
    if result.exception is not None:
        for text in texts(result.exception):
            assert CANARY not in text


SECURED = {
    "mechanism": "OAUTHBEARER", "username": "shop", "password": "cAnArY-password",
    "token_endpoint": "https://127.0.0.1:1/token?key=cAnArY-in-address",
    "certificate": "-----BEGIN CERTIFICATE-----cAnArY-----END CERTIFICATE-----",
    "key": "-----BEGIN PRIVATE KEY-----cAnArY-----END PRIVATE KEY-----",
    "key_password": "cAnArY-of-the-key",
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "lacks"),
    [
        (["check"], ""), (["check", "--origins"], ""), (["doctor"], ""), (["status", "--json"], ""),
        (["topic", "list"], ""), (["cluster", "status"], ""),
        *(pytest.param(command, "", marks=pytest.mark.thorough) for command in (
            ["cluster", "status", "--bootstrap", "."], ["mirror", "list", "--to", "."],
            ["mirror", "start", "m", "--from", ".", "--to", ".", "--topics", "x"],
            ["events", "list"], ["erase", "list"], ["schema", "list"], ["quota", "list"],
        )),
 (["acl", "list"], ""), (["acl", "for-project", "."], ""),
        (["check"], "certificate"), (["check"], "mechanism"), (["status"], "username"),
    ],
)  # fmt: skip
def test_no_command_shows_how_to_log_in_at_a_cluster(
    tmp_path: Path, command: list[str], lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {name: value for name, value in SECURED.items() if name != lacks}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
    (tmp_path / "tailrace.toml").write_text(
        f'[log]\nbootstrap = "127.0.0.1:1"\n[log.security]\n{text}'
    )
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, command)
    assert CANARY not in result.output
    assert result.exception is not None or not lacks
    if result.exception is not None:
        for shown in texts(result.exception):
            assert CANARY not in shown


def test_no_call_of_the_api_shows_one(
    directory: Path, project: load.Project, tailrace_broker: str
) -> None:
    run = directory / ".tailrace"
    part = Part("shop", "source", "shop", "127.0.0.1:1", run)
    part.report("failed", error=UsageError(f"no: {ENVIRONMENT['OTHER_DSN']}").as_dict())
    views, figures = Views(run / "views"), Figures(tailrace_broker)
    app = create_app(Served(project, tailrace_broker, views, figures))
    with TestClient(app, raise_server_exceptions=False) as client:  # its end closes connections
        paths = client.get("/api/openapi.json").json()["paths"]
        for path, methods in paths.items():
            if "get" in methods and not path.endswith(("/live", "/changes", "/records")):
                for name in ("v", "webhook", "shop"):
                    answer = client.get(re.sub(r"{[^}]*}", name, path))
                    assert CANARY not in answer.text, path
    figures.close()
    views.close()


def test_no_sink_that_cannot_reach_its_target_shows_one(
    directory: Path, project: load.Project
) -> None:
    shape = Shape((("id", "BIGINT"), ("n", "BIGINT")), ("id",))
    failed = 0
    for copy in project.sinks.values():
        if copy.declaration.kind in ("delta", "iceberg"):
            continue  # they try again for a long time; their options are Secrets as the others
        part = Part(copy.name, "sink", "shop", "127.0.0.1:1", directory / ".tailrace")
        try:
            sink = make_sink(copy, Surroundings(directory / ".tailrace", "127.0.0.1:1"))
            sink.open(shape)
            sink.position()
            _say_hello(sink, copy)
        except Exception as error:
            failed += 1
            for text in texts(error):
                assert CANARY not in text, (copy.name, text)
            part.report("failed", error={"error": f"{type(error).__name__}: {error}"}, seen=[error])
            assert CANARY not in part.report_path.read_text(), copy.name
    assert failed >= 8


def _say_hello(sink: object, copy: Copy) -> None:
    """Make those that connect late connect."""
    if copy.declaration.kind == "email":
        with sink._errors(), sink._server():  # type: ignore[attr-defined]
            pass
    elif copy.declaration.kind == "webhook":
        sink._lanes[0].post(b"{}", {})  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["shop", "other", "maria"])
def test_no_source_that_cannot_reach_its_database_shows_one(
    directory: Path, tailrace_broker: str, name: str
) -> None:
    command = [sys.executable, "-m", "tailrace.node.child", "source", name, str(directory), tailrace_broker]  # fmt: skip
    report = directory / ".tailrace" / "run" / f"source-{name}.json"
    found = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:  # fmt: skip
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            found = report.read_text() if report.exists() else "{}"
            if json.loads(found).get("error"):
                break
            time.sleep(0.1)
        line = Path(f"/proc/{process.pid}/cmdline")
        title = line.read_bytes().decode() if line.exists() else ""
        process.terminate()
        assert process.stdout is not None
        said = process.stdout.read()
    last = report.read_text()
    assert '"error":{' in found + last
    for text in (said, found, last, title):
        assert CANARY not in text
    kept = [path for path in (directory / ".tailrace").rglob("*") if path.is_file()]
    assert not [path for path in kept if CANARY.encode() in path.read_bytes()]


def test_a_mistyped_setting_is_told_without_its_value(directory: Path) -> None:
    for text in (
        'token = "cAnArY"\n',
        'public = "http://user:cAnArY@host"\n',
        'listen = "http://u:cAnArY@127.0.0.1"\n',
    ):
        (directory / "tailrace.toml").write_text(f"[console]\n{text}")
        with pytest.raises(TailraceError) as refused:
            load.load(directory)
        for shown in texts(refused.value):
            assert CANARY not in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://shop:hush@db/shop", "postgres://shop:***@db/shop"),
        ("redis://:hu/sh@h@db/0", "redis://:***@db/0"),
        ("two a://u:hush@b, c://u:hush@d", "two a://u:***@b, c://u:***@d"),
        ("host=db password='hush it' user=shop", "host=db password=*** user=shop"),
        ("host=db passwd=hush user=shop", "host=db passwd=*** user=shop"),
        ("DefaultEndpointsProtocol=https;AccountKey=hush==;x=1", "DefaultEndpointsProtocol=https;AccountKey=***;x=1"),
        ("https://a/b?sv=1&sig=hush%3D&se=2", "https://a/b?sv=1&sig=***&se=2"),
        ("Authorization: Bearer hush.hush", "Authorization: ***"),
        ("{'Authorization': 'Basic aHVzaA=='}", "{'Authorization': '***'}"),
        ("got Bearer abc.def-123", "got Bearer ***"),
        ('{"password": "hush", "n": 1}', "{\"password\": '***', \"n\": 1}"),
        ("aws_secret_access_key=hush", "aws_secret_access_key=***"),
        ("spark.hadoop.fs.s3a.secret.key=hush", "spark.hadoop.fs.s3a.secret.key=***"),
        ("sasl.password = hush", "sasl.password = ***"),
        # what is no secret stays
        ("request unreadable api_key=18 api_version=4", "request unreadable api_key=18 api_version=4"),
        ("api_key=abcdef", "api_key=***"),
        ("Access denied for user 'u'@'h' (using password: YES)", "Access denied for user 'u'@'h' (using password: YES)"),
        ("unexpected token: SELECT", "unexpected token: SELECT"),
        ("the bearer of this", "the bearer of this"),
        ("pg:shop:0000000201A2B3C4", "pg:shop:0000000201A2B3C4"),
        ("http://127.0.0.1:8080/api", "http://127.0.0.1:8080/api"),
        ("alice@example.org at 10:20", "alice@example.org at 10:20"),
    ],
)  # fmt: skip
def test_secrets_are_known_by_how_they_are_written(text: str, expected: str) -> None:
    assert mask(text) == expected


def test_a_remembered_secret_is_found_in_any_form() -> None:
    Secret("postgres://shop:p%40ss%2Fword@db:5432/shop")
    assert mask('password "p@ss/word" failed; tried p%40ss%2Fword') == (
        'password "***" failed; tried ***'
    )
    Secret("postgres://postgres:postgres@db/postgres")
    assert mask("postgres table postgres.t") == "postgres table postgres.t"
    assert f"{Secret('hush hush')} {Secret('hush hush')!r}" == "*** ***"


def test_hostile_texts_take_no_time() -> None:
    many = 200_000
    began = time.process_time()
    for piece in ("a", "://", "://a:", "password=", "password='", "Bearer ", "=", "authorization:", "token" * 2, '"token":'):  # fmt: skip
        mask(piece * (many // len(piece)))
    assert time.process_time() - began < 20


def test_a_traceback_of_the_command_line_shows_none() -> None:
    code = "import sys; from tailrace.cli import main as m; m.cli.main = lambda **_: 1 / len({}['postgres://u:cAnArY@h/d']); m.main(['status'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert "KeyError" in run.stderr
    assert CANARY not in run.stderr.replace(code, "")


def test_the_log_escapes_what_would_move_a_terminal() -> None:
    kept = io.StringIO()
    logs.configure("info", "human", kept)
    logging.getLogger("tailrace.x").info(
        "a\x1b[2Jb", extra={"client": "one\n10:00:00.000 ERROR forged", "odd": "\x9b\u202e\r"}
    )
    logs.configure()
    [line] = kept.getvalue().splitlines()
    assert "\x1b" not in line
    assert line.endswith("a\\x1b[2Jb  client=one\\n10:00:00.000 ERROR forged odd=\\x9b\\u202e\\r")
    assert os.linesep not in line
