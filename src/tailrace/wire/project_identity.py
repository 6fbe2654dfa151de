"""How a client shows that it belongs to the project, before there are users.

An embedded broker keeps a random token in `project-token` of its first data directory,
readable by its owner alone. A client that wants to write the project's own topics asks for
SASL mechanism TAILRACE-PROJECT:

    client                            broker
    SaslHandshake(mechanism)      →
                                  ←   0, or 33/34 from a broker that does not know it
    SaslAuthenticate(empty)       →
                                  ←   challenge: 32 random bytes, then the token file's path
    SaslAuthenticate(proof)       →   proof = HMAC-SHA-256(token, challenge)
                                  ←   0 or 58

The token itself never travels. Who can read the file is the project; a process that cannot,
because it runs elsewhere, is given the token in `TAILRACE_LOG_TOKEN`. The file is one line,
`tailrace-project TOKEN`, so that a broker cannot have an arbitrary file used.

Where a listener asks everybody who they are, the project is the user `PROJECT_USER`, who logs in
by SCRAM with a password that is derived from the token: any client can do that.
"""

from __future__ import annotations

import hmac

MECHANISM = "TAILRACE-PROJECT"
TOKEN_FILE = "project-token"
ENVIRONMENT = "TAILRACE_LOG_TOKEN"
NONCE_BYTES = 32
PROJECT_USER = "__tailrace"
_WORD = "tailrace-project"


def token_line(token: str) -> str:
    """The content of the token file."""
    return f"{_WORD} {token}\n"


def parse_token(text: str) -> str | None:
    """The token of a file's content; None if it is no token file."""
    words = text.split()
    if len(words) != 2 or words[0] != _WORD or len(words[1]) < 32:
        return None
    return words[1]


def proof(token: str, challenge: bytes) -> bytes:
    """What only somebody who knows the token can answer."""
    return hmac.digest(token.encode(), challenge, "sha256")


def project_password(token: str) -> str:
    """The password of `PROJECT_USER`."""
    return hmac.digest(token.encode(), b"the project's log-in", "sha256").hex()
