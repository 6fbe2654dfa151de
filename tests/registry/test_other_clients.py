"""Confluent's clients and serializers for JavaScript and Go, as they are, over HTTPS with a log-in."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from servers.certificates import self_signed
from tailrace.client.log import Log
from tailrace.registry.serve import RegistryServer, Settings

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}'


@pytest.fixture
def secured(log: Log, tmp_path: Path) -> Iterator[str]:
    """The address of a registry with a certificate and a user."""
    users = tmp_path / "users"
    users.write_text("ann: s3cret\n")
    made = self_signed()
    settings = Settings(
        "127.0.0.1:0", users=users, certificate=made / "localhost.pem", key=made / "localhost.key"
    )
    with RegistryServer(log, settings) as server:
        server.start()
        yield f"https://localhost:{server.address.rpartition(':')[2]}"


def run(command: list[str], directory: Path, url: str, topic: str) -> dict[str, Any]:
    """What the client saw; it reads what Python wrote, and Python what it wrote."""
    ca = str(self_signed() / "localhost.pem")
    settings = {"url": url, "basic.auth.user.info": "ann:s3cret", "ssl.ca.location": ca}
    with SchemaRegistryClient(settings) as client:
        context = SerializationContext(topic, MessageField.VALUE)
        ours = AvroSerializer(client, ORDER)({"id": 9, "note": None}, context)
        assert ours is not None
        done = subprocess.run(
            [*command, url, "ann", "s3cret", ca, base64.b64encode(ours).decode()],
            cwd=directory, capture_output=True, text=True, timeout=120,
            env={**os.environ, "NODE_EXTRA_CA_CERTS": ca},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        saw: dict[str, Any] = json.loads(done.stdout)
        theirs = AvroDeserializer(client)(base64.b64decode(saw["avro"]), context)
        assert theirs == {"id": 7, "note": "x"}
    assert saw["theirs"] == {"id": 9, "note": None}
    assert saw["back"] == {"id": 7, "note": "x"}
    assert base64.b64decode(saw["json"])[5:] == b'{"n":3}'
    assert saw["subjects"] == sorted([f"{topic}-value", "shapes-value"])
    assert saw["versions"] == [1]
    assert saw["refused"] is True
    assert saw["compatible"] is True
    assert saw["level"] == "FULL"
    assert saw["deleted"] == [1]
    return saw


def test_javascript(secured: str, tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs Node.js and npm")
    for name in ("package.json", "client.js"):
        shutil.copy(HERE / "js" / name, tmp_path / name)
    made = subprocess.run(
        [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"npm could not install Confluent's client: {made.stderr[-300:]}")
    saw = run(["node", "client.js"], tmp_path, secured, "js")
    assert saw["incompatible"] == 409


def test_go(secured: str, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go")
    program = tmp_path / "client"
    made = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=HERE / "go", capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"Go could not build Confluent's client: {made.stderr[-300:]}")
    run([str(program)], tmp_path, secured, "go")
