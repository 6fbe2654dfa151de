"""Who may use a small HTTP service: basic log-ins from a file, TLS from PEM files."""

from __future__ import annotations

import hmac
import ssl
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.errors import UsageError


@dataclass(frozen=True, slots=True)
class User:
    password: str = field(repr=False)
    reads_only: bool = False


def named(header: str, users: Mapping[str, User]) -> User | None:
    """The user of an `Authorization` header; None if it names nobody, or with another password."""
    scheme, _, coded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, password = b64decode(coded.strip(), validate=True).decode().partition(":")
    except (NoBase64, ValueError):
        return None
    user = users.get(name)
    expected = user.password if user is not None else ""
    same = hmac.compare_digest(password.encode(), expected.encode())
    return user if same and user is not None else None


def read_users(path: Path) -> dict[str, User]:
    """Users by name from a file. Raises UsageError; what is in it is never shown."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read", detail=type(error).__name__) from error
    users: dict[str, User] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        password, _, role = rest.strip().partition(",")
        if (
            not colon
            or not name.strip()
            or not password.strip()
            or role.strip() not in ("", "read", "write")
        ):
            raise UsageError(
                f"{path}:{number} names no user", hint="NAME: PASSWORD, or NAME: PASSWORD, read"
            )
        users[name.strip()] = User(password.strip(), role.strip() == "read")
    if not users:
        raise UsageError(f"{path} names no user", hint="NAME: PASSWORD")
    return users


def tls_context(
    certificate: Path | None, key: Path | None, client_ca: Path | None = None
) -> ssl.SSLContext | None:
    """What a server needs for HTTPS; None without files. Raises UsageError."""
    if certificate is None and key is None:
        if client_ca is not None:
            raise UsageError("--client-ca needs --cert and --key")
        return None
    if certificate is None or key is None:
        raise UsageError("--cert and --key go together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            "the certificate or the key cannot be used",
            detail=str(error),
            hint="both are PEM files",
        ) from error
    return context
