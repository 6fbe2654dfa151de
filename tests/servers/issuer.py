"""A small issuer of OpenID Connect for tests: real keys, real signatures, on this machine alone.

It logs in at once whoever `person` is, and can be told to lie: `claims` go over those of a right ID
token, `sign` makes another token of them, `about` goes over its discovery document.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "console", "client-secret-canary"


@cache
def new_key(kid: str, number: int = 0) -> RSAKey:
    """A key of its own for each name and number; made once, because that takes a while."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


class Issuer:
    """Runs until `close`."""

    def __init__(self) -> None:
        self.key = new_key("one")
        self.published = [self.key]
        self.person: dict[str, Any] = {"sub": "7", "preferred_username": "carol", "groups": []}
        self.more: dict[str, Any] = {}
        """What only the userinfo endpoint tells."""
        self.claims: dict[str, Any] = {}
        self.about: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(urlsplit(self.path).path)
                issuer._get(self)

            def do_POST(self) -> None:
                issuer.asked.append(self.path)
                length = int(self.headers["content-length"])
                issuer._post(self, self.rfile.read(length).decode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def signed(self, claims: dict[str, Any], key: RSAKey | None = None) -> str:
        key = key or self.key
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(10)

    # what it answers

    def _get(self, request: BaseHTTPRequestHandler) -> None:
        url = urlsplit(request.path)
        match url.path:
            case "/.well-known/openid-configuration":
                given = {name: f"{self.url}/{name}" for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")}  # fmt: skip
                _answer(request, {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **given, **self.about})  # fmt: skip
            case "/keys":
                _answer(request, {"keys": [one.as_dict(private=False) for one in self.published]})
            case "/authorization_endpoint":
                asked = {name: values[0] for name, values in parse_qs(url.query).items()}
                assert asked["response_type"] == "code"
                assert asked["client_id"] == CLIENT
                assert asked["code_challenge_method"] == "S256"
                code = secrets.token_urlsafe(8)
                self._codes[code] = asked
                back = urlencode({"code": code, "state": asked["state"]})
                request.send_response(302)
                request.send_header("location", f"{asked['redirect_uri']}?{back}")
                request.end_headers()
            case "/userinfo_endpoint":
                _answer(request, {**self.person, **self.more})
            case "/moved":
                request.send_response(302)
                request.send_header("location", "/keys")
                request.end_headers()
            case _:
                request.send_error(404)

    def _post(self, request: BaseHTTPRequestHandler, body: str) -> None:
        given = {name: values[0] for name, values in parse_qs(body).items()}
        asked = self._codes.pop(given.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or request.headers["authorization"] != f"Basic {basic}"
            or given["redirect_uri"] != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
        ):
            _answer(request, {"error": "invalid_grant"}, 400)
            return
        now = int(time.time())
        claims = {
            **self.person, "iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], **self.claims,
        }  # fmt: skip
        told = {name: value for name, value in claims.items() if value is not None}
        tokens = {"token_type": "Bearer", "access_token": "access", "id_token": self.sign(told)}
        _answer(request, tokens)


def _answer(request: BaseHTTPRequestHandler, document: object, status: int = 200) -> None:
    body = json.dumps(document).encode()
    request.send_response(status)
    request.send_header("content-type", "application/json")
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
