"""Who comes in, and how."""

from __future__ import annotations

import base64
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from registry.conftest import Asking
from tailrace.broker.authentication.throw_away import make
from tailrace.client.log import Log
from tailrace.errors import OpenListenerError, UsageError
from tailrace.http_users import read_users
from tailrace.registry.serve import RegistryServer, Settings


def test_users_are_asked_for_and_some_may_only_read(log: Log, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("# who\nann: secret:word\nbob: other, read\n")
    with RegistryServer(log, Settings("127.0.0.1:0", users=users)) as server:
        server.start()
        url = f"http://{server.address}"
        ann, bob = Asking(url, auth=("ann", "secret:word")), Asking(url, auth=("bob", "other"))
        nobody, wrong = Asking(url), Asking(url, auth=("ann", "guess"))
        assert ann.register("s", '"int"') == 1
        assert bob("GET", "/subjects") == (200, ["s"])
        assert bob("POST", "/subjects/s", {"schema": '"int"'})[0] == 200
        assert bob.code("POST", "/subjects/s/versions", {"schema": '"int"'}) == 403
        assert bob.code("DELETE", "/contexts/.x/subjects/s") == 403
        for stranger in (nobody, wrong):
            assert stranger("GET", "/subjects") == (
                401,
                {"error_code": 401, "message": "Unauthorized"},
            )
        for each in (ann, bob, nobody, wrong):
            each.client.close()


def test_a_file_of_users_that_is_wrong_never_shows_a_password(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann secretword\n")
    with pytest.raises(UsageError) as told:
        read_users(users)
    assert "secretword" not in told.value.render()
    users.write_text("ann: secretword\n")
    assert "secretword" not in repr(read_users(users))


def test_a_registry_is_not_opened_to_all_by_mistake(log: Log, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: x\n")
    for settings in (Settings("0.0.0.0:0"), Settings("0.0.0.0:0", users=users)):
        with pytest.raises(OpenListenerError):
            RegistryServer(log, settings)
    RegistryServer(log, Settings("0.0.0.0:0", insecure=True)).close()


def test_https_with_a_certificate(log: Log, tmp_path: Path) -> None:
    made = make(tmp_path / "certificates")
    settings = Settings("127.0.0.1:0", certificate=made["broker"], key=made["broker"])
    with RegistryServer(log, settings) as server:
        server.start()
        context = ssl.create_default_context(cafile=str(made["ca"]))
        ask = Asking(f"https://localhost:{server.address.rpartition(':')[2]}", verify=context)
        assert ask.register("s", '"int"') == 1
        ask.client.close()
        host, _, port = server.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as plain:
            plain.sendall(b"GET /subjects HTTP/1.1\r\n\r\n")
            with suppress(ConnectionResetError):
                assert not plain.recv(100).startswith(b"HTTP")


BAD: list[tuple[bytes, bytes]] = [
    (b"nonsense\r\n\r\n", b"400"),
    (b"GET subjects HTTP/1.1\r\n\r\n", b"400"),
    (b"GET /%ff HTTP/1.1\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
    (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n", b"431"),
    (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, b"431"),
]


@pytest.mark.parametrize(("sent", "status"), BAD)
def test_what_is_no_request_is_answered_and_hung_up_on(
    url: str, sent: bytes, status: bytes
) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        sock.sendall(sent)
        answer = b""
        while received := sock.recv(4096):
            answer += received
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_a_body_may_come_in_chunks_and_a_connection_goes_on(url: str) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    body = b'{"schema": "\\"int\\""}'
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        head = b"POST /subjects/s/versions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        sock.sendall(
            head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\nGET /subjects HTTP/1.1\r\n"
        )
        sock.sendall(b"Connection: close\r\n\r\n")
        answer = b""
        while received := sock.recv(4096):
            answer += received
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.endswith(b'["s"]')


def test_credentials_that_are_no_base64_are_refused(log: Log, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: x\n")
    with RegistryServer(log, Settings("127.0.0.1:0", users=users)) as server:
        server.start()
        for header in (
            "Basic",
            "Basic ###",
            "Bearer x",
            f"Basic {base64.b64encode(b'ann').decode()}",
        ):
            ask = Asking(f"http://{server.address}", headers={"authorization": header})
            assert ask("GET", "/subjects")[0] == 401
            ask.client.close()
