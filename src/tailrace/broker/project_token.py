"""The token by which a broker knows the processes of its project.

Kept in `project-token` of the first data directory, mode 0600, made at the first start and
never changed after. A crash while it is made leaves none or a whole one.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
from pathlib import Path

from tailrace.project_token import TOKEN_FILE, parse_token, token_line
from tailrace.wire.project_identity import NONCE_BYTES, proof

log = logging.getLogger(__name__)

TOKEN_BYTES = 32


class ProjectToken:
    """Owns the token file of a data directory."""

    def __init__(self, directory: Path) -> None:
        self.path = (directory / TOKEN_FILE).absolute()
        self._token = ""

    def challenge(self) -> bytes:
        """What a client must answer: random bytes, and where the token lies."""
        self._load()
        return os.urandom(NONCE_BYTES) + os.fsencode(self.path)

    def accepts(self, challenge: bytes, answer: bytes) -> bool:
        """Whether `answer` comes from somebody who knows the token."""
        self._load()
        return bool(self._token) and hmac.compare_digest(proof(self._token, challenge), answer)

    def derived(self, purpose: bytes) -> bytes:
        """A secret of this log for one purpose, the same after every start."""
        return hmac.digest(self.reveal().encode(), purpose, "sha256")

    def reveal(self) -> str:
        """The token itself; random, and of this process alone, if the file cannot be kept."""
        self._load()
        if not self._token:
            self._token = secrets.token_hex(TOKEN_BYTES)
        return self._token

    def _load(self) -> None:
        if not self._token:
            try:
                self._token = self._read() or self._make()
            except OSError as error:
                log.error(
                    "the project's token cannot be kept",
                    extra={"path": str(self.path), "error": str(error)},
                )

    def _read(self) -> str | None:
        try:
            return parse_token(self.path.read_text("ascii"))
        except (FileNotFoundError, ValueError):
            return None

    def _make(self) -> str:
        token = secrets.token_hex(TOKEN_BYTES)
        beside = self.path.with_name(TOKEN_FILE + ".new")
        beside.unlink(missing_ok=True)
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(number, token_line(token).encode("ascii"))
            os.fsync(number)
        finally:
            os.close(number)
        os.replace(beside, self.path)
        return token
