"""A certificate authority of one's own, for a laptop: made in a moment, trusted by nobody else.

Files of keys are readable by their owner alone. An authority that is there already is used.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tailrace.broker.errors import CertificateError
from tailrace.extras import require

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_USAGES = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
           "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def make(
    directory: Path, *, hosts: Iterable[str] = (), clients: Iterable[str] = (), days: int = 30
) -> dict[str, Path]:
    """The files by name: `ca`, `broker` and each client; keys and certificates as PEM.

    Raises CertificateError.
    """
    require("cryptography")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lifetime = datetime.timedelta(days=days)
    authority = _Authority(directory, lifetime)
    made = {"ca": directory / "ca.pem"}
    names = ["localhost", socket.gethostname(), "127.0.0.1", "::1", *hosts]
    made["broker"] = authority.issue("broker", dict.fromkeys(names), lifetime)
    for client in clients:
        if client in made or not _NAME.fullmatch(client):
            raise CertificateError(f"{client!r} is no name for a client's certificate")
        made[client] = authority.issue(client, (), lifetime)
    return made


class _Authority:
    def __init__(self, directory: Path, lifetime: datetime.timedelta) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        self._directory = directory
        key_path, path = directory / "ca.key", directory / "ca.pem"
        try:
            key = serialization.load_pem_private_key(key_path.read_bytes(), None)
            self._certificate = x509.load_pem_x509_certificate(path.read_bytes())
        except FileNotFoundError:
            self._key = ec.generate_private_key(ec.SECP256R1())
            name = _name("Tailrace throw-away authority")
            builder = _builder(name, name, self._key, lifetime)
            builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
            signs = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
            builder = builder.add_extension(x509.KeyUsage(**signs), True)
            self._certificate = self._sign(builder)
            _write(key_path, _private(self._key))
            _write(path, _text(self._certificate), mode=0o644)
            return
        except (OSError, ValueError) as error:
            raise CertificateError(
                "the authority that is there cannot be used",
                detail=str(error),
                hint=f"name another directory than {directory}",
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise CertificateError("the authority that is there was not made here")
        self._key = key

    def issue(self, name: str, hosts: Iterable[str], lifetime: datetime.timedelta) -> Path:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._certificate.subject, key, lifetime)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
        )
        known = [_host(each) for each in hosts]
        if known:
            builder = builder.add_extension(x509.SubjectAlternativeName(known), False)
        path = self._directory / f"{name}.pem"
        _write(path, _private(key) + _text(self._sign(builder)) + _text(self._certificate))
        return path

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        from cryptography.hazmat.primitives import hashes

        return builder.sign(self._key, hashes.SHA256())


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    lifetime: datetime.timedelta,
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _text(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _write(path: Path, data: bytes, mode: int = 0o600) -> None:
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.write(number, data)
    finally:
        os.close(number)
    os.replace(beside, path)
