"""Showing an embedded broker that this client belongs to the project.

See `wire.project_identity` for the exchange. Apache Kafka refuses the mechanism and nothing
else happens; there its own ACLs decide who writes the project's topics.
"""

from __future__ import annotations

import os
from pathlib import Path

from tailrace.client.connection import Connection
from tailrace.project_token import ENVIRONMENT, TOKEN_FILE, read_token
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tailrace.wire.project_identity import MECHANISM, NONCE_BYTES, proof

HANDSHAKE = APIS[ApiKey.SASL_HANDSHAKE]
AUTHENTICATE = APIS[ApiKey.SASL_AUTHENTICATE]


def identify(connection: Connection) -> bool:
    """Whether the broker now takes this connection for the project's.

    False, without an error, where that is not possible: the broker is not an embedded one,
    or its token cannot be read here. A write that needs it is refused then, with the reason.
    """
    if not (connection.offers(HANDSHAKE) and connection.offers(AUTHENTICATE)):
        return False
    if connection.session_ends and not os.environ.get(ENVIRONMENT):
        # Where log-ins are renewed a handshake is the beginning of one. Kafka lets it pass only
        # in the first second, and hangs up later because it does not know the mechanism.
        return False
    answer = connection.request(HANDSHAKE, SaslHandshakeRequest(MECHANISM), 1)
    assert isinstance(answer, SaslHandshakeResponse)
    if answer.error_code != ErrorCode.NONE:
        return False
    challenge = _authenticate(connection, b"")
    if challenge is None or len(challenge) < NONCE_BYTES:
        return False
    token = _find_token(challenge[NONCE_BYTES:])
    return token is not None and _authenticate(connection, proof(token, challenge)) is not None


def _authenticate(connection: Connection, data: bytes) -> bytes | None:
    answer = connection.request(AUTHENTICATE, SaslAuthenticateRequest(data))
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer.auth_bytes if answer.error_code == ErrorCode.NONE else None


def _find_token(place: bytes) -> str | None:
    path = Path(os.fsdecode(place))
    if path.name != TOKEN_FILE or not path.is_absolute():
        path = Path(os.devnull)  # only the environment's then
    return read_token(path)
