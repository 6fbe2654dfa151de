"""Receivers for what sinks send: a webhook and a mail server, each in a thread."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson


class WebhookReceiver:
    """Takes POSTs; `judge(change)` may answer with another status."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.changes: list[dict[str, Any]] = []
        self.judge: Callable[[dict[str, Any]], int] = lambda change: 200
        self.delay = 0.0
        self._guard = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.take(dict(self.headers.items()), body)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *arguments: Any) -> None:
                """Silence."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that was killed is no news."""

        self._server_kind = lambda address: Server(address, Handler)
        self.port = 0
        self.start()

    def take(self, headers: dict[str, str], body: bytes) -> int:
        document = orjson.loads(body)
        changes = document.get("changes") or [document]
        with self._guard:
            statuses = [self.judge(change) for change in changes]
            self.requests.append((headers, body))
            if all(status < 300 for status in statuses):
                self.changes += changes
            return max(statuses)

    def start(self) -> None:
        self._server = self._server_kind(("127.0.0.1", self.port))
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def rows(self, view: str) -> list[dict[str, Any]]:
        """What a receiver that drops repeats has."""
        seen: set[str] = set()
        held: dict[bytes, dict[str, Any]] = {}
        for change in self.changes:
            if change["view"] != view or change["id"] in seen:
                continue
            seen.add(change["id"])
            key = orjson.dumps(change["key"])
            held.pop(key, None)
            if change["op"] == "upsert":
                held[key] = change["row"]
        return list(held.values())


class MailReceiver:
    """A small SMTP server; `refuse` is a word that no mail may contain. With a `certificate`
    (.pem and .key) it offers STARTTLS, or speaks TLS `at_once`; `told` is what it heard."""

    def __init__(self, certificate: Path | None = None, *, at_once: bool = False) -> None:
        self.mails: list[EmailMessage] = []
        self.told: list[bytes] = []
        context: ssl.SSLContext | None = None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(
                certificate.with_suffix(".pem"), certificate.with_suffix(".key")
            )
        self.refuse: bytes | None = None
        self.port = 0
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def secure(self) -> None:
                assert context is not None
                self.request = context.wrap_socket(self.request, server_side=True)
                self.rfile = self.request.makefile("rb")
                self.wfile = self.request.makefile("wb", buffering=0)

            def handle(self) -> None:
                with suppress(OSError):
                    self.talk()
                if isinstance(self.request, ssl.SSLSocket):
                    for one in (self.rfile, self.wfile, self.request):
                        with suppress(OSError):
                            one.close()

            def talk(self) -> None:
                if at_once:
                    self.secure()
                self.wfile.write(b"220 here\r\n")
                while line := self.rfile.readline():
                    receiver.told.append(line)
                    word = line[:4].upper()
                    if word == b"EHLO" and context is not None:
                        self.wfile.write(b"250-here\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN\r\n")
                    elif word == b"STAR":
                        self.wfile.write(b"220 go on\r\n")
                        self.secure()
                    elif word == b"AUTH":
                        self.wfile.write(b"235 welcome\r\n")
                    elif word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        lines = []
                        while (text := self.rfile.readline()) not in (b".\r\n", b""):
                            lines.append(
                                text.removeprefix(b".") if text.startswith(b"..") else text
                            )
                        data = b"".join(lines)
                        if receiver.refuse and receiver.refuse in data:
                            self.wfile.write(b"554 not that\r\n")
                            continue
                        receiver.mails.append(message_from_bytes(data, policy=policy.default))  # type: ignore[arg-type]
                        self.wfile.write(b"250 taken\r\n")
                    elif word == b"QUIT":
                        self.wfile.write(b"221 bye\r\n")
                        return
                    else:
                        self.wfile.write(b"250 ok\r\n")

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._kind = lambda address: Server(address, Handler)
        self.start()

    def start(self) -> None:
        self._server = self._kind(("127.0.0.1", self.port))
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
