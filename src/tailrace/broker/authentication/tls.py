"""The broker's side of TLS: its certificate, whom it trusts, and both read again when files change.

A listener keeps the context it has if the new files cannot be used, or if the new certificate
has another name (`ssl.allow.dn.changes`, `ssl.allow.san.changes`); the log says which. Connections
that exist keep what they agreed on.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.broker.authentication.distinguished_names import parse_rules, subject, user_of
from tailrace.broker.errors import CertificateError
from tailrace.broker.principals import ANONYMOUS, Principal
from tailrace.errors import TailraceError
from tailrace.extras import require
from tailrace.project_token import PROJECT_USER

if TYPE_CHECKING:
    from tailrace.broker.settings import BrokerSettings

log = logging.getLogger("tailrace.broker.authentication")

LARGEST_FILE_BYTES = 4 << 20
_VERIFY = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_KERNEL_TLS = 8  # SSL_OP_ENABLE_KTLS, which Python names since 3.12
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True, repr=False)
class _Material:
    """What was read: the key with its chain, and the authorities, as PEM."""

    chain: bytes
    authorities: bytes
    key_password: str


class Tls:
    """The TLS of one listener."""

    def __init__(self, listener: str, settings: BrokerSettings) -> None:
        self.listener = listener
        self._settings = settings
        self._rules = parse_rules(self._text("ssl.principal.mapping.rules"))
        self._stamp = self._look()
        self._identity: tuple[str, frozenset[str]] | None = None
        self.kernel_offload = settings.boolean("tailrace.ssl.kernel.offload")
        self.context = self._make(self._read())
        self.asks = self._text("ssl.client.auth") != "none"
        if self.asks:
            require("cryptography")

    def principal(self, sock: ssl.SSLSocket) -> Principal | None:
        """Who the client's certificate stands for; None if no rule says."""
        shown = sock.getpeercert(True) if self.asks else None
        if shown is None:
            return ANONYMOUS
        user = user_of(subject(shown), self._rules)
        # Nobody can be given the name of the project itself.
        return None if user is None or user == PROJECT_USER else Principal("User", user)

    def refresh(self) -> None:
        """Take the files again if one has changed."""
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        before = self._identity
        try:
            self.context = self._make(self._read())
        except (TailraceError, OSError, ssl.SSLError) as error:
            self._identity = before
            log.error(
                "new certificate not taken",
                extra={
                    "listener": self.listener,
                    "error": error.message if isinstance(error, TailraceError) else str(error),
                },
            )
            return
        log.info("new certificate taken", extra={"listener": self.listener})

    def _text(self, name: str) -> str:
        return self._settings.of_listener(self.listener, name)

    def _look(self) -> Stamp:
        found = []
        for name in ("ssl.keystore.location", "ssl.truststore.location"):
            path = self._text(name)
            try:
                status = os.stat(path) if path else None
            except OSError:
                status = None
            if status is not None:
                found.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
            else:
                found.append((path, 0, 0, 0))
        return tuple(found)

    # reading

    def _read(self) -> _Material:
        password = self._text("ssl.key.password")
        chain = (
            self._text("ssl.keystore.key") + "\n" + self._text("ssl.keystore.certificate.chain")
        ).encode()
        place = self._text("ssl.keystore.location")
        if place:
            chain = _contents(place, "ssl.keystore.location")
            if self._text("ssl.keystore.type") == "PKCS12":
                chain = _from_pkcs12(place, chain, self._text("ssl.keystore.password"))
                password = ""
        if b"-----BEGIN" not in chain:
            raise CertificateError(
                f"listener {self.listener} has no certificate",
                detail=f"ssl.keystore.location is {place or 'not set'}",
                hint="name a PEM file with the private key and the certificate chain; "
                "tailrace certificate dev DIR makes one to try",
            )
        authorities = self._text("ssl.truststore.certificates").encode()
        place = self._text("ssl.truststore.location")
        if place:
            authorities = _contents(place, "ssl.truststore.location")
            if self._text("ssl.truststore.type") == "PKCS12":
                authorities = _from_pkcs12(
                    place, authorities, self._text("ssl.truststore.password"), key=False
                )
        return _Material(chain, authorities, password)

    def _make(self, material: _Material) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        versions = [one.strip() for one in self._text("ssl.enabled.protocols").split(",")]
        context.minimum_version = (
            ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in versions else ssl.TLSVersion.TLSv1_3
        )
        context.maximum_version = (
            ssl.TLSVersion.TLSv1_3 if "TLSv1.3" in versions else ssl.TLSVersion.TLSv1_2
        )
        context.options |= (
            ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
        )
        if self.kernel_offload:
            context.options |= _KERNEL_TLS
        suites = self._text("ssl.cipher.suites")
        asked = self._text("ssl.client.auth")
        try:
            if suites:
                context.set_ciphers(suites.replace(",", ":"))
            _load_chain(context, material)
            if asked != "none":
                self._trust(context, material.authorities)
        except ssl.SSLError as error:
            raise CertificateError(
                f"the certificates of listener {self.listener} cannot be used",
                detail=error.reason or "the key and the certificate do not belong together",
                hint="check the key, its password and the chain: openssl x509 -in FILE -text",
            ) from error
        context.verify_mode = _VERIFY[asked]
        self._same_identity(material.chain)
        return context

    def _trust(self, context: ssl.SSLContext, authorities: bytes) -> None:
        if b"-----BEGIN" not in authorities:
            raise CertificateError(
                f"listener {self.listener} asks for certificates and trusts no authority",
                hint="set ssl.truststore.location to a PEM file with the authorities of clients",
            )
        with _in_memory(authorities) as path:
            context.load_verify_locations(cafile=path)
        if b"-----BEGIN X509 CRL" in authorities:
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF

    def _same_identity(self, chain: bytes) -> None:
        """Refuse a certificate for somebody else in the place of the present one."""
        guarded = [
            name
            for name in ("ssl.allow.dn.changes", "ssl.allow.san.changes")
            if self._text(name).lower() != "true"
        ]
        try:
            found = _identity(chain)
        except ImportError:
            return  # without cryptography names cannot be compared
        before, self._identity = self._identity, found
        if before is None:
            return
        if "ssl.allow.dn.changes" in guarded and before[0] != found[0]:
            raise CertificateError(
                "the new certificate has another name", hint="set ssl.allow.dn.changes=true"
            )
        if "ssl.allow.san.changes" in guarded and not before[1] <= found[1]:
            raise CertificateError(
                "the new certificate lacks host names of the old one",
                hint="set ssl.allow.san.changes=true",
            )


def kernel_encrypts(sock: ssl.SSLSocket) -> bool:
    """Whether the kernel has this connection's keys, so that it encrypts what is sent."""
    try:
        return bool(sock.getsockopt(282, 1, 40))  # SOL_TLS, TLS_TX
    except OSError:
        return False


def _contents(place: str, setting: str) -> bytes:
    try:
        with Path(place).open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise CertificateError(
            f"the file of {setting} cannot be read", detail=f"{place}: {error.strerror}"
        ) from error
    if len(data) > LARGEST_FILE_BYTES:
        raise CertificateError(f"the file of {setting} is too large", detail=place)
    if data[:4] in (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"):
        raise CertificateError(
            f"the file of {setting} is a Java key store (JKS)",
            detail=place,
            hint="convert it: keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 "
            "-deststoretype PKCS12, and set the type to PKCS12",
        )
    return data


def _from_pkcs12(place: str, data: bytes, password: str, *, key: bool = True) -> bytes:
    require("cryptography")
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        found = pkcs12.load_pkcs12(data, password.encode() or None)
    except ValueError as error:
        raise CertificateError(
            f"{place} cannot be opened",
            detail="it is no PKCS12 file, or the password is another",
        ) from error
    text = b""
    if key:
        if found.key is None or found.cert is None:
            raise CertificateError(f"{place} holds no private key with its certificate")
        text += found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        text += found.cert.certificate.public_bytes(Encoding.PEM)
    for each in found.additional_certs:
        text += each.certificate.public_bytes(Encoding.PEM)
    return text


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """A file with these bytes that is on no disk; OpenSSL reads certificates from files alone."""
    handle = os.memfd_create("tailrace-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(handle), "wb") as file:
            file.write(data)
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)


def _load_chain(context: ssl.SSLContext, material: _Material) -> None:
    with _in_memory(material.chain) as path:
        # Without a password of ours OpenSSL would ask at the terminal.
        context.load_cert_chain(path, password=lambda: material.key_password)


def _identity(chain: bytes) -> tuple[str, frozenset[str]]:
    """Name and host names of the first certificate."""
    from cryptography import x509

    begin = chain.index(b"-----BEGIN CERTIFICATE")
    found = x509.load_pem_x509_certificate(chain[begin:])
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return found.subject.rfc4514_string(), frozenset()
    return found.subject.rfc4514_string(), frozenset(str(each.value) for each in names)
