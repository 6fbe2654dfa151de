"""Addresses of MySQL: `mysql://user:password@db1:3306,db2:3306/shop?ssl-mode=REQUIRED`."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tailrace.sources.errors import SourceDeclarationError

SSL_MODES = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
EXAMPLE = "mysql://user:password@host:3306/database"


@dataclass(frozen=True, slots=True)
class Address:
    """Where to log in, and as whom. `hosts` are tried in order."""

    hosts: tuple[tuple[str, int], ...]
    user: str
    password: str = field(repr=False)
    database: str
    options: tuple[tuple[str, str], ...] = ()

    def driver(self, number: int) -> dict[str, Any]:
        """What the driver needs to reach the given host."""
        host, port = self.hosts[number]
        return {
            "host": host, "port": port, "user": self.user, "password": self.password,
            "database": self.database, **_encryption(dict(self.options)),
        }  # fmt: skip


def parse_address(source: str, text: str) -> Address:
    """Read an address; the error names what is wrong and never the password."""
    parts = urlsplit(text)
    database = unquote(parts.path.strip("/"))
    if parts.scheme not in ("mysql", "mariadb") or not database or "/" in database:
        raise SourceDeclarationError(f'source "{source}" has no MySQL address', hint=EXAMPLE)
    login, _, listed = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    try:
        hosts = tuple(_host(one) for one in listed.split(","))
    except ValueError:
        raise SourceDeclarationError(
            f'source "{source}" names a server that cannot be read',
            detail=f"servers: {listed}",
            hint=EXAMPLE,
        ) from None
    options = tuple(parse_qsl(parts.query, keep_blank_values=True))
    _check_options(source, dict(options))
    return Address(hosts, unquote(user) or "root", unquote(password), database, options)


def _host(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    number = int(port or "3306")
    if not 0 < number < 1 << 16:
        raise ValueError
    return host or "127.0.0.1", number


def _check_options(source: str, given: dict[str, str]) -> None:
    mode = given.pop("ssl-mode", "DISABLED").upper()
    for name in ("ca", "cert", "key"):
        given.pop(f"ssl-{name}", None)
    if given or mode not in SSL_MODES:
        raise SourceDeclarationError(
            f'source "{source}" has an unknown option in its address',
            detail=", ".join(sorted(given)) or f"ssl-mode={mode}",
            hint=f"ssl-mode ({', '.join(SSL_MODES)}), ssl-ca, ssl-cert and ssl-key",
        )


def _encryption(given: dict[str, str]) -> dict[str, Any]:
    default = "VERIFY_IDENTITY" if "ssl-ca" in given else "DISABLED"
    mode = given.get("ssl-mode", default).upper()
    if mode == "DISABLED":
        return {"ssl_disabled": True}
    files = [given.get(f"ssl-{name}") for name in ("ca", "cert", "key")]
    try:
        context = ssl.create_default_context(cafile=files[0])
        if files[1]:
            context.load_cert_chain(files[1], files[2])
    except OSError as reason:
        raise SourceDeclarationError(
            "the certificates of the address cannot be read",
            detail=f"{reason.strerror or reason}: {', '.join(filter(None, files))}",
        ) from reason
    context.check_hostname = mode == "VERIFY_IDENTITY"
    if mode == "REQUIRED":
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}
