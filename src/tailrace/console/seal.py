"""Small texts that a browser keeps for us and cannot change.

A sealed text is `payload.mac`: the payload is JSON in base64url, readable by its keeper, and
the mac proves that this process wrote it, for what, and until when. The key is random and lives as
long as the process: what was sealed before a restart means nothing after it.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

import orjson

from tailrace.clock import SYSTEM, Clock

LONGEST = 4096


class Seal:
    """Seals and opens for one process."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._key = secrets.token_bytes(32)
        self._clock = clock

    def close(self, purpose: str, values: Mapping[str, str], seconds: float) -> str:
        """`values`, sealed for `purpose`, good for so many seconds."""
        until = self._clock.wall_ms() + round(seconds * 1000)
        payload = urlsafe_b64encode(orjson.dumps({**values, "until": until})).rstrip(b"=")
        return f"{payload.decode()}.{self._mac(purpose, payload)}"

    def open(self, purpose: str, text: str) -> tuple[dict[str, str], float] | None:
        """The values, and how many seconds they are still good for; None if they are not ours,
        for something else, or no longer good."""
        payload, _, mac = text.partition(".")
        if len(text) > LONGEST or not text.isascii():
            return None
        if not hmac.compare_digest(mac, self._mac(purpose, payload.encode())):
            return None
        values = orjson.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        left = (values.pop("until") - self._clock.wall_ms()) / 1000
        return (values, left) if left > 0 else None

    def _mac(self, purpose: str, payload: bytes) -> str:
        return hmac.new(self._key, purpose.encode() + b"\0" + payload, "sha256").hexdigest()
