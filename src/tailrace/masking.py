"""Secrets that never show: a type that holds one, and `mask` for texts that might.

`Secret` keeps what a declaration was given, and prints as `***`. Every secret that is
made, and every one read from the environment for a declaration, is also remembered in this
process, so that `mask` finds it in any text, whoever wrote it there and in whatever form:
a driver's error message, a traceback, a report. Passwords that nobody declared are found
by how they are written: in URLs, after `password=` and its relatives, after `Bearer`.

All patterns here are bounded, because the texts are often other people's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

HIDDEN = "***"
SHORTEST = 8  # what is shorter stands in other words too

_NAMES = (
    r"passw(?:or)?d|passphrase|\bpwd|secret|token|credentials?|account_?key|access_?key"
    r"|api[_-]?key|private_?key|mask_?key|\bsig|signature"
)
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(://[^:/@\s'\"]{0,200}:)[^\s'\"]{1,400}@")
_ASSIGNED = re.compile(
    rf"((?:{_NAMES})[\w.-]{{0,30}}\s{{0,3}}=\s{{0,3}})('[^']*'|\"[^\"]*\"|[^\s&;,'\"]+)", re.IGNORECASE
)  # fmt: skip
_QUOTED = re.compile(
    rf"((?:{_NAMES}|authorization)[\w.-]{{0,30}}[\"']\s{{0,3}}:\s{{0,3}})('[^']*'|\"[^\"]*\")",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(\bauthorization\s{0,3}[:=]\s{0,3})(\w{1,20}\s)?[^\s'\",]{1,4000}", re.IGNORECASE
)
_BEARER = re.compile(r"(\bBearer\s{1,3})(?=[^\s'\"]{0,200}[\d._-])[^\s'\",]{8,4000}", re.IGNORECASE)
_TRACES = ("=", "://", ":", "earer ")

_known: tuple[str, ...] = ()  # longest first


class Secret:
    """Text that is shown nowhere; `reveal` gives it to whoever needs it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        remember(text)

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self._text,)  # the process that it comes to remembers it too


def remember(text: str) -> None:
    """Have `mask` hide this secret, and the parts of it that are secret by themselves."""
    global _known
    found = {part for part in _parts(text) if len(part) >= SHORTEST}
    if not found.issubset(_known):
        _known = tuple(sorted(found.union(_known), key=len, reverse=True))


def remember_named(settings: Mapping[str, str]) -> None:
    """The same for those settings whose names say that they are secret."""
    for name, value in settings.items():
        if names_a_secret(name):
            remember(value)


def names_a_secret(name: str) -> bool:
    """Whether the name of a setting says that it is secret."""
    return _SECRET_NAME.search(name) is not None


def mask(text: str) -> str:
    """`text` with every secret in it replaced by `***`."""
    for secret in _known:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    if not any(trace in text for trace in _TRACES):
        return text
    text = _URL_PASSWORD.sub(rf"\1{HIDDEN}@", text)
    text = _QUOTED.sub(rf"\1'{HIDDEN}'", text)
    text = _HEADER.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return _ASSIGNED.sub(_hidden, text)


def mask_all(value: Any) -> Any:
    """A document of JSON with every text in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {name: mask_all(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_all(item) for item in value]
    return value


def host_of(url: str) -> str:
    """`https://host[:port]` of a URL: path and query of a web hook are its password."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return HIDDEN
    if not parts.scheme or not parts.hostname:
        return HIDDEN
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"


def _hidden(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    if value.isdigit() and len(value) <= 3 and name.lower().startswith(("api_key", "apikey")):
        return found[0]  # the number of a kind of request in Kafka's protocol
    return name + HIDDEN


def _parts(text: str) -> Iterator[str]:
    """A secret in whole, and what of it a driver may show alone."""
    yield text
    try:
        url = urlsplit(text)
        names = {url.scheme, url.hostname, url.username, url.path.strip("/"), ""}
        password = url.password
    except ValueError:  # it cannot be taken apart: whatever stands where a password does
        if found := re.search(r"://[^:/@\s]{0,200}:(\S+)@", text):
            yield found[1]
        return
    if password is not None and password not in names:
        yield password
        yield unquote(password)
    if url.scheme in ("http", "https") and len(url.path) > 1:
        yield url.path + (f"?{url.query}" if url.query else "")
        yield url.path
        yield url.path.rpartition("/")[2]
    for name, value in parse_qsl(url.query):
        if _SECRET_NAME.search(name):
            yield value
    for assigned in _ASSIGNED.finditer(text):
        value = assigned[2].strip("'\"")
        if f"={value}" not in text.replace(assigned[0], ""):
            yield value
