"""The user that a client certificate stands for: its name as Java writes it, then the rules.

Java's `X500Principal.getName("RFC2253")` begins with the last part, knows nine keywords and writes
every other attribute as `OID=#HEX` of its encoding. Rules are `ssl.principal.mapping.rules`:

    RULE:^CN=([^,]+),OU=Apps.*$/$1/L, DEFAULT

The first rule that matches the whole name wins, `$1` stands for a group, L and U change the case,
DEFAULT is the name as it is. No rule that matches is a failed log-in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.extras import require
from tailrace.log.errors import InvalidConfigError

_KEYWORDS = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O",
    "2.5.4.11": "OU", "2.5.4.9": "STREET", "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}  # fmt: skip
_RULE = re.compile(
    r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^/\\])*)/((?:\\.|[^/\\])*)/([LU]?))\s*(?:,|$)", re.DOTALL
)
_REFERENCE = re.compile(r"\$(\d)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; without a pattern it is DEFAULT."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        found = _REFERENCE.sub(lambda one: match[int(one[1])] or "", self.replacement)
        return {"L": found.lower(), "U": found.upper()}.get(self.case, found)


def parse_rules(text: str) -> list[Rule]:
    """Raises InvalidConfigError."""
    rules: list[Rule] = []
    position = 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise InvalidConfigError(
                f"ssl.principal.mapping.rules cannot be read from {text[position:][:60]!r} on",
                hint="use RULE:pattern/replacement/ (with L or U behind it) or DEFAULT",
            )
        position = match.end()
        if match[1]:
            rules.append(Rule(None))
            continue
        try:
            pattern = re.compile(match[2].replace("\\/", "/"))
        except re.error as error:
            raise InvalidConfigError(
                "a pattern of ssl.principal.mapping.rules is none", detail=str(error)
            ) from error
        replacement = match[3].replace("\\/", "/")
        most = max((int(number) for number in _REFERENCE.findall(replacement)), default=0)
        if most > pattern.groups:
            raise InvalidConfigError(f"a rule uses ${most}, and its pattern has fewer groups")
        rules.append(Rule(pattern, replacement, match[4]))
    return rules or [Rule(None)]


def user_of(name: str, rules: Sequence[Rule]) -> str | None:
    """The user's name by the first rule that matches; None if none does."""
    for rule in rules:
        found = rule.apply(name)
        if found is not None:
            return found or None
    return None


def subject(certificate: bytes) -> str:
    """The subject of a certificate in DER, as Java writes it."""
    require("cryptography")
    from cryptography import x509

    name = x509.load_der_x509_certificate(certificate).subject
    return ",".join("+".join(_attribute(each) for each in rdn) for rdn in reversed(name.rdns))


def _attribute(attribute: object) -> str:
    from cryptography import x509

    assert isinstance(attribute, x509.NameAttribute)
    oid, value = attribute.oid.dotted_string, attribute.value
    keyword = _KEYWORDS.get(oid)
    if keyword is None or isinstance(value, bytes):
        return f"{keyword or oid}=#{_encoding(x509.Name([attribute]).public_bytes()).hex()}"
    return f"{keyword}={_escaped(value)}"


def _escaped(value: str) -> str:
    text = "".join("\\" + each if each in ',=+<>#;"\\' else each for each in value)
    text = text.replace("\0", "\\00")
    stripped = text.lstrip(" ")
    text = "\\ " * (len(text) - len(stripped)) + stripped
    if not stripped:
        return text  # nothing but spaces, each escaped once
    stripped = text.rstrip(" ")
    return stripped + "\\ " * (len(text) - len(stripped))


def _encoding(name: bytes) -> bytes:
    """The encoding of the value in a Name of one attribute: sequence, set, sequence, OID, value."""
    position = 0
    for _ in range(3):
        position, _ = _content(name, position)
    _, end = _content(name, position)
    return name[end:]


def _content(data: bytes, position: int) -> tuple[int, int]:
    """Where the content of the element at `position` begins and ends."""
    length = data[position + 1]
    begin = position + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(data[begin : begin + size], "big")
        begin += size
    return begin, begin + length
