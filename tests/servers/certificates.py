"""A throw-away certificate authority for tests: nothing of it outlives them, nothing is stored."""

from __future__ import annotations

import atexit
import datetime
import ipaddress
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Issued:
    """A certificate and its key, as PEM text."""

    certificate: str
    key: str


class Authority:
    """Signs certificates for names and addresses of this machine."""

    def __init__(self, name: str = "tailrace tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key, datetime.timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = _text(self._certificate)

    def issue(
        self,
        common_name: str,
        *,
        addresses: tuple[str, ...] = ("127.0.0.1",),
        names: tuple[str, ...] = ("localhost",),
        lifetime: datetime.timedelta = datetime.timedelta(days=1),
        begins_in: datetime.timedelta | None = None,
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        known = [x509.DNSName(name) for name in names]
        known += [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
        builder = self._builder(subject, key, lifetime, begins_in)
        builder = builder.add_extension(x509.SubjectAlternativeName(known), False)
        signed = builder.sign(self._key, hashes.SHA256())
        return Issued(_text(signed), _private(key))

    def _builder(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        lifetime: datetime.timedelta,
        begins_in: datetime.timedelta | None = None,
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        begin = min(now, now + lifetime) - datetime.timedelta(hours=1)
        if begins_in is not None:
            begin = now + begins_in
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(now + lifetime)
        )


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


@cache
def self_signed() -> Path:
    """A directory with `localhost.pem`, `.key` and, for another name, `stranger.pem`, `.key`;
    each certificate is its own authority. Made once per process, gone at its end."""
    directory = Path(tempfile.mkdtemp(prefix="tailrace-certificates-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    for name, known in (("localhost", ("localhost",)), ("stranger", ("attacker.example",))):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, known[0])])
        alternatives: list[x509.GeneralName] = [x509.DNSName(each) for each in known]
        if name == "localhost":
            alternatives.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        now = datetime.datetime.now(datetime.UTC)
        signed = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(alternatives), False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
            .sign(key, hashes.SHA256())
        )
        (directory / f"{name}.pem").write_text(_text(signed))
        (directory / f"{name}.key").write_text(_private(key))
    directory.chmod(0o755)  # a server of another user reads it
    for path in directory.iterdir():
        path.chmod(0o644)
    return directory
