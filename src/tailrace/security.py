"""How one identifies oneself to a log: protocol, mechanism, certificates, secrets.

A `Security` never prints what it holds. A `LogAddress` is the text `HOST:PORT,…` that everything
which talks to a log takes, with the security of that log behind it: whoever opens a connection
asks `security_of(address)`, and an address without any is plain text, as it always was.

Certificates and keys are held as PEM text, read once when the settings are loaded, so that tasks
on other hosts need no files.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tailrace.errors import ConfigValueError, EnvironmentProblem

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_JAVA = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""The first bytes of Java's own key stores."""
_CALLBACK = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@dataclass(frozen=True, slots=True, repr=False)
class Security:
    """The security of one log, as a client needs it. `make` validates and reads files."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = None
    token_endpoint: str | None = None
    scope: str | None = None
    check_hostname: bool = True

    def __repr__(self) -> str:
        named = f", {self.mechanism}" if self.mechanism else ""
        return f"Security({self.protocol}{named})"

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    def librdkafka(self) -> dict[str, str]:
        """The same, by librdkafka's names."""
        chosen: dict[str, str | None] = {"security.protocol": self.protocol}
        if self.tls:
            chosen |= {
                "ssl.ca.pem": self.ca,
                "ssl.certificate.pem": self.certificate,
                "ssl.key.pem": self.key,
                "ssl.key.password": self.key_password,
                "ssl.endpoint.identification.algorithm": "https" if self.check_hostname else "none",
            }
        if self.sasl:
            chosen["sasl.mechanism"] = self.mechanism
            if self.mechanism == "OAUTHBEARER":
                chosen |= {
                    "sasl.oauthbearer.method": "oidc",
                    "sasl.oauthbearer.client.id": self.username,
                    "sasl.oauthbearer.client.secret": self.password,
                    "sasl.oauthbearer.token.endpoint.url": self.token_endpoint,
                    "sasl.oauthbearer.scope": self.scope,
                }
            else:
                chosen |= {"sasl.username": self.username, "sasl.password": self.password}
        return {name: value for name, value in chosen.items() if value is not None}

    def java(self) -> dict[str, str]:
        """The same, by the names of Kafka's Java client (Spark's connector prefixes `kafka.`)."""
        chosen: dict[str, str | None] = {"security.protocol": self.protocol}
        if self.tls:
            if self.ca is not None:
                chosen |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.ca}
            if self.certificate is not None:
                chosen |= {
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.certificate.chain": self.certificate,
                    "ssl.keystore.key": self.key,
                    "ssl.key.password": self.key_password,
                }
            if not self.check_hostname:
                chosen["ssl.endpoint.identification.algorithm"] = ""
        if self.sasl:
            chosen |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._jaas()}
            if self.mechanism == "OAUTHBEARER":
                chosen |= {
                    "sasl.login.callback.handler.class": _CALLBACK,
                    "sasl.oauthbearer.token.endpoint.url": self.token_endpoint,
                }
        return {name: value for name, value in chosen.items() if value is not None}

    def _jaas(self) -> str:
        package = "org.apache.kafka.common.security"
        module, names = {
            "PLAIN": ("plain.PlainLoginModule", ("username", "password")),
            "OAUTHBEARER": ("oauthbearer.OAuthBearerLoginModule", ("clientId", "clientSecret")),
        }.get(self.mechanism or "", ("scram.ScramLoginModule", ("username", "password")))
        values = dict(zip(names, (self.username, self.password), strict=True))
        if self.mechanism == "OAUTHBEARER":
            values["scope"] = self.scope
        options = " ".join(
            f'{name}="{_quoted(value)}"' for name, value in values.items() if value is not None
        )
        return f"{package}.{module} required {options};"

    def context(self) -> ssl.SSLContext:
        """For our own connections: TLS 1.2 or newer, the server's certificate checked."""
        context = ssl.create_default_context(cadata=self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.check_hostname
        if self.certificate is not None:
            # load_cert_chain reads files only; this one is never on a disk.
            handle = os.memfd_create("tailrace-certificate")
            try:
                with os.fdopen(os.dup(handle), "wb") as file:
                    file.write(f"{self.certificate}\n{self.key or ''}".encode())
                context.load_cert_chain(
                    f"/proc/self/fd/{handle}", password=lambda: self.key_password or ""
                )
            except ssl.SSLError as error:
                raise EnvironmentProblem(
                    "the client certificate and its key cannot be used",
                    detail=error.reason or "they do not belong together",
                    hint="check certificate, key and key_password under [log.security]",
                ) from error
            finally:
                os.close(handle)
        return context


class LogAddress(str):
    """`HOST:PORT,…` of a log, and how to identify oneself there. Prints as the address alone."""

    __slots__ = ("security",)
    security: Security

    def __new__(cls, address: str, security: Security) -> LogAddress:
        made = super().__new__(cls, address)
        made.security = security
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return (LogAddress, (str(self), self.security))


def security_of(address: str) -> Security | None:
    """How to identify oneself at this address; None: plain text, as anybody."""
    return address.security if isinstance(address, LogAddress) else None


def librdkafka_settings(address: str) -> dict[str, str]:
    """What every client of librdkafka needs to reach this log."""
    security = security_of(address)
    return {
        "bootstrap.servers": str(address),
        **({} if security is None else security.librdkafka()),
    }


# Spark shows the options of a reader in its plans; it hides those called a password.
_OPTION = "log.password"


def reader_options(address: str) -> dict[str, str]:
    """An address as options of a Spark reader, which are texts."""
    security = security_of(address)
    options = {"bootstrap": str(address)}
    return options if security is None else {**options, _OPTION: json.dumps(asdict(security))}


def address_of(options: Mapping[str, str]) -> str:
    """The address that `reader_options` made options of."""
    found = {name.lower(): value for name, value in options.items()}
    if _OPTION not in found:
        return found["bootstrap"]
    return LogAddress(found["bootstrap"], Security(**json.loads(found[_OPTION])))


def make_security(values: Mapping[str, str | bool | None], base: Path | None = None) -> Security:
    """From settings: `ca`, `certificate` and `key` may be paths (from `base`) or PEM text.

    Raises ConfigValueError.
    """
    known = {each.name for each in fields(Security)}
    if unknown := sorted(set(values) - known):
        raise ConfigValueError(
            f"security has no setting {unknown[0]!r}", hint=f"settings: {', '.join(sorted(known))}"
        )
    given = {name: value for name, value in values.items() if value not in (None, "")}
    for name in ("ca", "certificate", "key"):
        if name in given:
            given[name] = _pem(name, str(given[name]), base)
    if isinstance(given.get("check_hostname"), str):
        given["check_hostname"] = str(given["check_hostname"]).lower() not in (
            "false",
            "none",
            "no",
        )
    given["protocol"] = str(given.get("protocol", _protocol(given))).upper()
    if "mechanism" in given:
        given["mechanism"] = str(given["mechanism"]).upper()
    security = Security(**given)  # type: ignore[arg-type]
    _validate(security)
    return security


def _protocol(given: Mapping[str, object]) -> str:
    """Unsaid, the safe one that fits what was given."""
    return "SASL_SSL" if "mechanism" in given or "username" in given else "SSL"


def _validate(security: Security) -> None:
    if security.protocol not in PROTOCOLS:
        raise ConfigValueError(
            f"{security.protocol!r} is not a security protocol", hint=f"use {', '.join(PROTOCOLS)}"
        )
    if not security.sasl:
        if security.mechanism or security.username:
            raise ConfigValueError(
                f"a user name has no meaning under {security.protocol}", hint="use SASL_SSL"
            )
    else:
        if security.mechanism not in MECHANISMS:
            raise ConfigValueError(
                f"{security.mechanism!r} is not a mechanism of ours"
                if security.mechanism
                else f"{security.protocol} needs a mechanism",
                detail="GSSAPI (Kerberos) is not supported."
                if security.mechanism == "GSSAPI"
                else "",
                hint=f"mechanism = one of {', '.join(MECHANISMS)}",
            )
        if not security.username or security.password is None:
            raise ConfigValueError(
                f"{security.mechanism} needs username and password",
                hint='write password = "${NAME}" and set the variable',
            )
        if security.mechanism == "OAUTHBEARER" and not security.token_endpoint:
            raise ConfigValueError("OAUTHBEARER needs token_endpoint, an https:// address")
    if security.key and not security.certificate:
        raise ConfigValueError("a key needs its certificate", hint="set certificate as well")
    if not security.tls and (security.ca or security.certificate):
        raise ConfigValueError(
            f"certificates have no meaning under {security.protocol}", hint="use SSL or SASL_SSL"
        )


def _pem(name: str, value: str, base: Path | None) -> str:
    if "-----BEGIN" in value:
        return value
    path = Path(value).expanduser()
    path = path if path.is_absolute() or base is None else base / path
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigValueError(
            f"the file of {name} cannot be read", detail=f"{path}: {error.strerror}"
        ) from error
    if b"-----BEGIN" not in data:
        java = data[:4] in _JAVA
        raise ConfigValueError(
            f"the file of {name} is {'a Java key store (JKS)' if java else 'not PEM'}",
            detail=str(path),
            hint="convert it: "
            + (f"keytool -importkeystore -srckeystore {path.name} -destkeystore {path.name}.p12 -deststoretype PKCS12, then " if java else "")
            + f"openssl pkcs12 -in {path.name}{'.p12' if java else ''} -out {path.name}.pem",
        )  # fmt: skip
    return data.decode("ascii", "ignore")  # comments may be in any language


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
