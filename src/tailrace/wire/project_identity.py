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
because it runs elsewhere, is given the token in `TAILRACE_LOG_TOKEN` (`tailrace.project_token`).
"""

from __future__ import annotations

import hmac

MECHANISM = "TAILRACE-PROJECT"
NONCE_BYTES = 32


def proof(token: str, challenge: bytes) -> bytes:
    """What only somebody who knows the token can answer."""
    return hmac.digest(token.encode(), challenge, "sha256")
