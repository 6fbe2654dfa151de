"""The token by which an embedded log knows its project's processes, as it lies on the disk.

One line, `tailrace-project TOKEN`, so that a broker cannot have an arbitrary file used. Where a
listener asks everybody who they are, the project is the user `PROJECT_USER`, who logs in by SCRAM
with a password that is derived from the token: any client can do that.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from tailrace.security import Security

TOKEN_FILE = "project-token"
ENVIRONMENT = "TAILRACE_LOG_TOKEN"
PROJECT_USER = "__tailrace"
PROJECT_MECHANISM = "SCRAM-SHA-256"
LONGEST_FILE = 1024
_WORD = "tailrace-project"


def asks_everybody(broker: Mapping[str, str]) -> bool:
    """Whether a project's own log with these settings asks its processes who they are.

    It does where it has listeners for others, and where an authorizer decides who may do what:
    without a log-in the project's readers would be nobody.
    """
    return bool(broker.get("listeners") or broker.get("authorizer.class.name"))


def token_line(token: str) -> str:
    """The content of the token file."""
    return f"{_WORD} {token}\n"


def parse_token(text: str) -> str | None:
    """The token of a file's content; None if it is no token file."""
    words = text.split()
    if len(words) != 2 or words[0] != _WORD or len(words[1]) < 32:
        return None
    return words[1]


def read_token(path: Path, environment: Mapping[str, str] | None = None) -> str | None:
    """The token of the environment, or of the file; None if neither can be had."""
    given = (os.environ if environment is None else environment).get(ENVIRONMENT)
    if given:
        return given.strip()
    try:
        with path.open("rb") as file:
            return parse_token(file.read(LONGEST_FILE).decode("ascii"))
    except (OSError, ValueError):
        return None


def project_password(token: str) -> str:
    """The password of `PROJECT_USER`."""
    return hmac.digest(token.encode(), b"the project's log-in", "sha256").hex()


def project_security(directory: Path) -> Security | None:
    """How the project's processes log in at its own log in `directory`; None if the token
    is not there yet."""
    token = read_token(directory / TOKEN_FILE)
    if token is None:
        return None
    return Security(
        protocol="SASL_PLAINTEXT",
        mechanism=PROJECT_MECHANISM,
        username=PROJECT_USER,
        password=project_password(token),
    )
