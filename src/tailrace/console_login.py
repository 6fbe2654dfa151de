"""Who may log in at the console besides those who know its token, as `tailrace.toml` says it.

    [console.oidc]    an issuer of OpenID Connect: its users, their roles from a claim
    [console.proxy]   a proxy that has asked already: it names user and groups in headers

A role is given to groups, to single users as `user:NAME`, or to everybody as `*`; who has none is let
in nowhere. A bare name is never that of a user: at many issuers people choose theirs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from tailrace.errors import ConfigValueError
from tailrace.loopback import is_loopback
from tailrace.masking import remember

OPERATOR, VIEWER = "operator", "viewer"
EVERYBODY = "*"
USER = "user:"
LONGEST_SESSION = timedelta(days=7)
SCOPES, CLAIM, NAME, SESSION = (
    "openid profile email",
    "groups",
    "preferred_username",
    timedelta(hours=8),
)
_HEADER_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Roles:
    """Those who operate, and those who look: groups, `user:NAME`, or `*`."""

    operators: frozenset[str]
    viewers: frozenset[str]

    def of(self, user: str, groups: Collection[str]) -> str | None:
        """The role of a user in these groups; None if they may not even look."""
        names = {one for one in groups if not one.startswith(USER)} | {USER + user}
        for role, given in ((OPERATOR, self.operators), (VIEWER, self.viewers)):
            if EVERYBODY in given or not given.isdisjoint(names):
                return role
        return None


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Log-in at an issuer of OpenID Connect: the authorization code flow with PKCE."""

    issuer: str
    client_id: str
    roles: Roles
    client_secret: str | None = field(default=None, repr=False)
    scopes: str = SCOPES
    claim: str = CLAIM
    name: str = NAME
    session: timedelta = SESSION

    def __str__(self) -> str:
        return self.issuer


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """A proxy at one of these addresses says in a header who calls."""

    addresses: tuple[Network, ...]
    roles: Roles
    user: bytes = b"x-forwarded-user"
    groups: bytes = b"x-forwarded-groups"

    def __str__(self) -> str:
        return ", ".join(map(str, self.addresses))

    def trusts(self, address: str) -> bool:
        """Whether a connection from this address is the proxy's."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in network for network in self.addresses)


def make_oidc(given: Mapping[str, Any], session: timedelta | None) -> OidcSettings:
    """From `[console.oidc]`; raises ConfigValueError."""
    what = "console.oidc"
    _refuse_unknown(what, given, {"issuer", "client_id", "client_secret", "scopes", "claim", "name", "operators", "viewers", "session"})  # fmt: skip
    issuer = _text(what, given, "issuer", None)
    try:
        url = urlsplit(issuer)
        host = url.hostname
    except ValueError:
        host = None
    if not host or url.username or url.query or url.fragment or not (
        url.scheme == "https" or (url.scheme == "http" and is_loopback(host))
    ):  # fmt: skip
        raise ConfigValueError(
            f"{what}.issuer is not the https:// address of an issuer",
            hint="write it as the issuer does in its discovery document, for example "
            "https://login.example/realms/company",
        )
    secret = _text(what, given, "client_secret", "") or None
    remember(secret or "")
    scopes = _text(what, given, "scopes", SCOPES)
    if "openid" not in scopes.split():
        raise ConfigValueError(f"{what}.scopes lacks openid, so the issuer would name nobody")
    if session is not None and not timedelta(minutes=1) <= session <= LONGEST_SESSION:
        raise ConfigValueError(f"{what}.session must be between 1 minute and 7 days")
    return OidcSettings(
        issuer=issuer,
        client_id=_text(what, given, "client_id", None),
        roles=_roles(what, given),
        client_secret=secret,
        scopes=scopes,
        claim=_text(what, given, "claim", CLAIM),
        name=_text(what, given, "name", NAME),
        session=session or SESSION,
    )


def make_proxy(given: Mapping[str, Any]) -> ProxySettings:
    """From `[console.proxy]`; raises ConfigValueError."""
    what = "console.proxy"
    _refuse_unknown(what, given, {"addresses", "user", "groups", "operators", "viewers"})
    networks: list[Network] = []
    for one in _names(what, given, "addresses"):
        try:
            network = ipaddress.ip_network(one)
        except ValueError as error:
            raise ConfigValueError(
                f"{what}.addresses holds {one!r}, which is no address and no network",
                hint='write addresses = ["10.0.0.7"], or a network such as "10.0.7.0/24"',
            ) from error
        if network.prefixlen == 0:
            raise ConfigValueError(
                f"{what}.addresses holds every address",
                detail="whoever reaches the console could then say who they are",
                hint="name the addresses of your proxy alone",
            )
        networks.append(network)
    if not networks:
        raise ConfigValueError(f"{what} names no addresses", hint='addresses = ["10.0.0.7"]')
    return ProxySettings(
        addresses=tuple(networks),
        roles=_roles(what, given),
        user=_header(what, given, "user", "X-Forwarded-User"),
        groups=_header(what, given, "groups", "X-Forwarded-Groups"),
    )


def _refuse_unknown(what: str, given: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(given) - known):
        raise ConfigValueError(
            f"{what} has no setting {unknown[0]!r}", hint=f"settings: {', '.join(sorted(known))}"
        )


def _roles(what: str, given: Mapping[str, Any]) -> Roles:
    roles = Roles(
        frozenset(_names(what, given, "operators")), frozenset(_names(what, given, "viewers"))
    )
    if not roles.operators and not roles.viewers:
        raise ConfigValueError(
            f"{what} lets nobody in",
            hint='name groups: operators = ["operations"], viewers = ["*"] for everybody',
        )
    return roles


def _names(what: str, given: Mapping[str, Any], name: str) -> list[str]:
    value = given.get(name, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ConfigValueError(f"{what}.{name} must be a list of names")
    return value


def _text(what: str, given: Mapping[str, Any], name: str, default: str | None) -> str:
    value = given.get(name, default)
    if value is None:
        raise ConfigValueError(f"{what} lacks {name}")
    if not isinstance(value, str) or (not value and default is None):
        raise ConfigValueError(f"{what}.{name} must be text")
    return value


def _header(what: str, given: Mapping[str, Any], name: str, default: str) -> bytes:
    value = _text(what, given, name, default).lower()
    if not value or not _HEADER_CHARACTERS.issuperset(value) or value in ("host", "cookie", "authorization", "origin"):  # fmt: skip
        raise ConfigValueError(f"{what}.{name} is not the name of a header for it")
    return value.encode()
