"""The addresses a broker listens on, each with a name and a protocol, as Kafka writes them.

    listeners                      NAME://HOST:PORT,…
    advertised.listeners           the same names, with the addresses that clients are told
    listener.security.protocol.map NAME:PROTOCOL,…

A name that is a protocol needs no entry in the map. `HOST:PORT` alone is `PLAINTEXT://HOST:PORT`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tailrace.errors import OpenListenerError
from tailrace.log.errors import InvalidConfigError
from tailrace.loopback import is_loopback

if TYPE_CHECKING:
    from tailrace.broker.settings import BrokerSettings

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
IN_PROCESS = "in-process"
PROJECT_LISTENER = "TAILRACE"
"""Where a project's own processes come in when others are asked who they are."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener. `port` is 0 if the system is to pick one; an empty `told_host` means
    that clients are told the address listened on. A `host` of None takes no connections
    from outside the process."""

    name: str
    protocol: str
    host: str | None
    port: int
    told_host: str = ""
    told_port: int = 0

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def open_to_others(self) -> bool:
        """Whether other machines can come in without saying who they are, or be overheard."""
        return (
            self.protocol in ("PLAINTEXT", "SASL_PLAINTEXT")
            and self.host is not None
            and not is_loopback(self.host)
        )


def endpoints(settings: BrokerSettings) -> list[Endpoint]:
    """What `listeners` and its relatives say; raises InvalidConfigError. None if unset."""
    protocols = _protocol_map(settings.text("listener.security.protocol.map"))
    found = [
        Endpoint(name, _protocol(name, protocols), host, port)
        for name, host, port in _addresses("listeners", settings.text("listeners"))
    ]
    _refuse_twins("listeners", [each.name for each in found])
    used = [(each.host, each.port) for each in found if each.port]
    if len(set(used)) != len(used):
        raise InvalidConfigError("two listeners have the same address")
    return told(found, settings)


def told(found: list[Endpoint], settings: BrokerSettings) -> list[Endpoint]:
    """The same endpoints with the addresses of `advertised.listeners`."""
    advertised = list(_addresses("advertised.listeners", settings.text("advertised.listeners")))
    _refuse_twins("advertised.listeners", [name for name, _, _ in advertised])
    names = {each.name for each in found}
    if (
        len(advertised) == 1
        and len(found) == 1
        and "://" not in settings.text("advertised.listeners")
    ):
        (_, host, port) = advertised[0]
        return [replace(found[0], told_host=host, told_port=port)]
    by_name = {name: (host, port) for name, host, port in advertised}
    if unknown := sorted(set(by_name) - names):
        raise InvalidConfigError(
            f"advertised.listeners names {unknown[0]}, which is no listener",
            hint=f"listeners has {', '.join(sorted(names))}",
        )
    for name, (host, port) in by_name.items():
        if host in ("", "0.0.0.0", "::") or not port:
            raise InvalidConfigError(
                f"clients cannot connect to the advertised address of {name}",
                hint="advertise a name and a port that clients can reach",
            )
    return [
        replace(each, told_host=by_name[each.name][0], told_port=by_name[each.name][1])
        if each.name in by_name
        else each
        for each in found
    ]


def refuse_open_endpoints(found: list[Endpoint], *, insecure: bool) -> None:
    """Raise `OpenListenerError` if strangers could come in, or overhear, unless that is meant."""
    for each in found:
        if each.open_to_others and not insecure:
            raise OpenListenerError(
                "a log that other machines can reach is open to all of them"
                if each.protocol == "PLAINTEXT"
                else "passwords and records would cross the network in the clear",
                detail=f"listener {each.name} is {each.protocol} on {each.host or 'every address'}",
                hint="speak SASL_SSL or SSL there, listen on 127.0.0.1, or say --insecure "
                "(allow.insecure.listeners=true) where a firewall keeps strangers out",
            )


def _addresses(setting: str, text: str) -> Iterator[tuple[str, str, int]]:
    for part in (one.strip() for one in text.split(",")):
        if not part:
            continue
        name, separator, address = part.rpartition("://")
        name = name if separator else "PLAINTEXT"
        host, colon, port = address.rpartition(":")
        if (
            not _NAME.fullmatch(name)
            or not colon
            or not (port.isascii() and port.isdigit() and int(port) <= 65535)
            or any(character in host for character in "/@ ")
        ):
            raise InvalidConfigError(
                f"{setting} has an address that is none: {part!r}",
                hint=f"for example {setting}=SASL_SSL://0.0.0.0:9093",
            )
        yield name.upper(), host.strip("[]"), int(port)


def _protocol_map(text: str) -> dict[str, str]:
    found = {name: name for name in PROTOCOLS}
    for part in (one.strip() for one in text.split(",")):
        if not part:
            continue
        name, _, protocol = part.partition(":")
        if protocol.strip().upper() not in PROTOCOLS:
            raise InvalidConfigError(
                f"listener.security.protocol.map gives {name.strip()} no protocol",
                hint=f"use NAME:PROTOCOL with {', '.join(PROTOCOLS)}",
            )
        found[name.strip().upper()] = protocol.strip().upper()
    return found


def _protocol(name: str, protocols: dict[str, str]) -> str:
    if name not in protocols:
        raise InvalidConfigError(
            f"listener {name} has no protocol",
            hint=f"add {name}:SASL_SSL to listener.security.protocol.map",
        )
    return protocols[name]


def _refuse_twins(setting: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidConfigError(f"{setting} names {name} twice")


def warnings(settings: BrokerSettings) -> Iterator[tuple[str, str]]:
    """What of a project's listeners is open, or shut, for `check` and `doctor`: what it is,
    what that means."""
    found = endpoints(settings)
    if not found and settings.text("authorizer.class.name"):
        yield (
            "authorizer.class.name without listeners",
            "only the project's own processes come in: name a listener for others",
        )
    for each in found:
        if each.open_to_others:
            yield (
                f"listener {each.name}: {each.protocol}",
                "whoever reaches it reads and writes everything"
                if each.protocol == "PLAINTEXT"
                else "whoever can listen on the network reads everything",
            )
        if each.tls:
            place = settings.of_listener(each.name, "ssl.keystore.location")
            with contextlib.suppress(OSError):
                if place and os.stat(place).st_mode & 0o077:
                    yield f"{place}: readable by others", f"the private key of listener {each.name}"
