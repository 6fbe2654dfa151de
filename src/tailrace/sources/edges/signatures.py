"""Who signed a call: Standard Webhooks, GitHub's and Stripe's signatures.

    standard   webhook-id, webhook-timestamp, webhook-signature: `v1,BASE64 …` over `ID.TIME.BODY`
    github     x-github-delivery, x-hub-signature-256: `sha256=HEX` over the body; no time
    stripe     stripe-signature: `t=TIME,v1=HEX,…` over `TIME.BODY`; the id is that of the event

Signatures are HMAC-SHA256. A secret that begins with `whsec_` is the base64 of the key for
Standard Webhooks; Stripe's begins so, too, and is the key itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ID_LIMIT = 256


class Unsigned(Exception):
    """The call is not to be taken; `status` is the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Call:
    """A call that its signature proves."""

    id: str
    body: bytes


def prove(
    scheme: str,
    secrets: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    tolerance: float,
) -> Call:
    """The call, or Unsigned: 400 if something is missing, 401 if it is forged or too old."""
    match scheme:
        case "github":
            identity = _header(headers, "x-github-delivery")
            given = [_header(headers, "x-hub-signature-256").removeprefix("sha256=")]
            signed, when = body, None
            keys = [secret.encode() for secret in secrets]
            expected = [hmac.new(key, signed, hashlib.sha256).hexdigest() for key in keys]
        case "stripe":
            parts = [
                one.strip().partition("=")
                for one in _header(headers, "stripe-signature").split(",")
            ]
            when = next((value for name, _, value in parts if name == "t"), "")
            given = [value for name, _, value in parts if name == "v1"]
            signed = when.encode() + b"." + body
            keys = [secret.encode() for secret in secrets]
            expected = [hmac.new(key, signed, hashlib.sha256).hexdigest() for key in keys]
            identity = ""
        case _:
            identity = _header(headers, "webhook-id")
            when = _header(headers, "webhook-timestamp")
            versions = [one.partition(",") for one in _header(headers, "webhook-signature").split()]
            given = [value for name, _, value in versions if name == "v1"]
            signed = f"{identity}.{when}.".encode() + body
            expected = [
                base64.b64encode(hmac.new(_key(one), signed, hashlib.sha256).digest()).decode()
                for one in secrets
            ]
    if not any(
        hmac.compare_digest(one.encode(), other.encode()) for one in given for other in expected
    ):
        raise Unsigned(401, "the signature is not that of the secret")
    if when is not None and not (when.isascii() and when.isdigit() and len(when) < 15):
        raise Unsigned(400, "the time is no number of seconds")
    if when is not None and abs(now - int(when)) > tolerance:
        raise Unsigned(401, "the call is too old, or from the future")
    if scheme == "stripe":
        identity = _event_id(body)
    if not 0 < len(identity) <= _ID_LIMIT:
        raise Unsigned(400, "the id has no usable length")
    return Call(identity, body)


def _header(headers: Mapping[str, str], name: str) -> str:
    if name not in headers:
        raise Unsigned(400, f"the header {name} is missing")
    return headers[name]


def _key(secret: str) -> bytes:
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        return secret.encode()


def _event_id(body: bytes) -> str:
    try:
        found = json.loads(body)["id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unsigned(400, "the event has no id") from None
    if not isinstance(found, str):
        raise Unsigned(400, "the event has no id")
    return found
