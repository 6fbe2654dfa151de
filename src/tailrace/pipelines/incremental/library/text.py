"""Text and bytes."""

from __future__ import annotations

import base64
import re
import urllib.parse

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import simple
from tailrace.pipelines.incremental.library.regular import (
    compiled,
    extract,
    replacement_of,
)
from tailrace.pipelines.incremental.library.signatures import declare, plain
from tailrace.pipelines.incremental.types import BIGINT, BINARY, BOOLEAN, INT, STRING

_CHARSETS = {
    "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-8": "utf-8", "utf-16be": "utf-16-be",
    "utf-16le": "utf-16-le", "utf-16": "utf-16-be", "utf-32": "utf-32-be",
}  # fmt: skip


@declare("base64", STRING, BINARY)
def _base64(data: bytes) -> str:
    encoded = base64.b64encode(data).decode()
    return "\r\n".join(encoded[at : at + 76] for at in range(0, len(encoded), 76))


_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/=]+")


@declare("unbase64", BINARY, STRING)
def _unbase64(text: str) -> bytes:
    """As Java's decoder of mail does: letters of no alphabet are passed over, and the `=` at the
    end are all there or none of them."""
    letters = _NO_BASE64.sub("", text)
    body, mark, rest = letters.partition("=")
    left = len(body) % 4
    ended = not mark or (left == 2 and rest == "=") or (left == 3 and not rest)
    if left == 1 or not ended:
        raise EvaluationError(f"{text[:80]!r} is not base64")
    return base64.b64decode(body + "=" * (-len(body) % 4))


@declare("unhex", BINARY, STRING)
def _unhex(text: str) -> bytes | None:
    try:
        return bytes.fromhex("0" * (len(text) % 2) + text) if not re.search(r"\s", text) else None
    except ValueError:
        return None


declare("btrim", STRING, STRING, STRING, optional=1)(lambda text, letters=" ": text.strip(letters))
declare("chr", STRING, BIGINT)(lambda number: "" if number < 0 else chr(number % 256))
declare("space", STRING, INT)(lambda count: " " * max(count, 0))
declare("bit_length", INT, BINARY)(lambda data: 8 * len(data))
declare("octet_length", INT, BINARY)(len)
simple("concat_bytes", lambda *parts: b"".join(parts))
declare("quote", STRING, STRING)(lambda text: "'" + text.replace("'", "\\'") + "'")


@declare("decode", STRING, BINARY, STRING)
def _decode(data: bytes, charset: str) -> str:
    try:
        return data.decode(_charset(charset))
    except UnicodeDecodeError as error:
        raise EvaluationError(f"bytes that are not {charset}") from error


@declare("encode", BINARY, STRING, STRING)
def _encode(text: str, charset: str) -> bytes:
    name = _charset(charset)
    try:
        data = text.encode(name)
    except UnicodeEncodeError as error:
        raise EvaluationError(f"text that {charset} cannot hold") from error
    return b"\xfe\xff" + data if charset.lower() == "utf-16" and text else data


def _charset(name: str) -> str:
    try:
        return _CHARSETS[name.lower()]
    except KeyError:
        known = ", ".join(sorted(_CHARSETS))
        raise EvaluationError(f"unknown character set {name!r}", hint=f"one of {known}") from None


@declare("find_in_set", INT, STRING, STRING)
def _find_in_set(word: str, listed: str) -> int:
    if "," in word:
        return 0
    words = listed.split(",")
    return words.index(word) + 1 if word in words else 0


@declare("locate", INT, STRING, STRING, INT, optional=1, keeps_null=True)
def _locate(part: str | None, text: str | None, start: int | None = 1) -> int | None:
    if start is None:
        return 0
    if part is None or text is None:
        return None
    return text.find(part, start - 1) + 1 if start > 0 else 0


@declare("substring_index", STRING, STRING, STRING, INT)
def _substring_index(text: str, separator: str, count: int) -> str:
    if not separator or not count:
        return ""
    parts = text.split(separator)
    return separator.join(parts[:count] if count > 0 else parts[count:])


@declare("overlay", STRING, STRING, STRING, INT, INT, optional=1)
def _overlay(text: str, other: str, start: int, length: int = -1) -> str:
    length = len(other) if length < 0 else length
    first = max(start - 1, 0) if start > 0 else 0
    return text[:first] + other + text[max(start - 1 + length, 0) :]


@declare("levenshtein", INT, STRING, STRING, INT, optional=1)
def _levenshtein(a: str, b: str, limit: int | None = None) -> int:
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return -1 if limit is not None and row[-1] > limit else row[-1]


@declare("soundex", STRING, STRING)
def _soundex(text: str) -> str:
    codes = dict(zip("BFPVCGJKQSXZDTLMNR", "111122222222334556", strict=True))
    if not text or not text[0].isascii() or not text[0].isalpha():
        return text
    upper = text.upper()
    out, last = upper[0], codes.get(upper[0], "0")
    for letter in upper[1:]:
        if not "A" <= letter <= "Z":
            continue
        if letter in "HW":
            continue
        code = codes.get(letter, "0")
        if code not in ("0", last):
            out += code
            if len(out) == 4:
                return out
        last = code
    return out.ljust(4, "0")


@declare("luhn_check", BOOLEAN, STRING)
def _luhn_check(text: str) -> bool:
    if not text or not re.fullmatch(r"[0-9]+", text):
        return False
    total = 0
    for at, digit in enumerate(reversed(text)):
        value = int(digit) * (1 + at % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


@declare(
    "mask", STRING, STRING, STRING, STRING, STRING, STRING, optional=4, keeps_null=True
)  # fmt: skip
def _mask(
    text: str | None,
    upper: str | None = "X",
    lower: str | None = "x",
    digit: str | None = "n",
    other: str | None = None,
) -> str | None:
    if text is None:
        return None
    out = []
    for letter in text:
        chosen = (
            upper if letter.isupper() else lower if letter.islower()
            else digit if letter.isdigit() else other
        )  # fmt: skip
        out.append(letter if chosen is None else chosen)
    return "".join(out)


@declare("elt", STRING, INT, STRING, repeated=True, keeps_null=True)
def _elt(number: int | None, *texts: str | None) -> str | None:
    if number is None:
        return None
    if not 1 <= number <= len(texts):
        raise EvaluationError(f"elt has no text {number}, only {len(texts)}")
    return texts[number - 1]


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@declare("conv", STRING, STRING, INT, INT)
def _conv(text: str, source: int, target: int) -> str | None:
    """A number in another base; 64 bits, as unsigned unless the target base is negative."""
    text = text.strip(" ")
    if not (2 <= source <= 36 and 2 <= abs(target) <= 36) or not text:
        return None
    negative = text[0] == "-"
    value = 0
    for letter in text[negative:].upper():
        digit = _DIGITS.find(letter)
        if not 0 <= digit < source:
            break
        value = value * source + digit
        if value >= 1 << 64:
            raise EvaluationError(f"{text[:80]} in base {source} overflows 64 bits")
    if negative and target > 0:
        value = (1 << 64) - value if value < 1 << 63 else (1 << 64) - 1 if value else 0
        value %= 1 << 64
    if target < 0 and value >= 1 << 63:
        value, negative = (1 << 64) - value, True
    out = ""
    while value or not out:
        value, digit = divmod(value, abs(target))
        out = _DIGITS[digit] + out
    return f"-{out}" if negative and target < 0 else out


@declare("url_encode", STRING, STRING)
def _url_encode(text: str) -> str:
    return urllib.parse.quote_plus(text, safe="*-._").replace("~", "%7E")


def _url_decoded(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(text)
    return urllib.parse.unquote_plus(text)


@declare("url_decode", STRING, STRING)
def _url_decode(text: str) -> str:
    try:
        return _url_decoded(text)
    except ValueError as error:
        raise EvaluationError(
            f"{text[:80]!r} is not a URL in its encoded form", hint="use try_url_decode"
        ) from error


@declare("try_url_decode", STRING, STRING)
def _try_url_decode(text: str) -> str | None:
    try:
        return _url_decoded(text)
    except ValueError:
        return None


_URL = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")


@declare("try_parse_url", STRING, STRING, STRING, STRING, optional=1)
def _try_parse_url(url: str, part: str, key: str | None = None) -> str | None:
    try:
        return _url_part(url, part, key)
    except EvaluationError:
        return None


def _url_part(url: str, part: str, key: str | None = None) -> str | None:
    try:
        if not _URL.fullmatch(url):
            raise ValueError(url)
        parsed = urllib.parse.urlsplit(url)
    except ValueError as error:
        raise EvaluationError(f"{url[:80]!r} is not a URL", hint="use try_parse_url") from error
    if key is not None:
        found = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", parsed.query)
        return found[1] if part == "QUERY" and found and "?" in url else None
    authority = parsed.netloc or None
    match part:
        case "HOST":
            return authority.rpartition("@")[2].partition(":")[0] if authority else None
        case "PATH":
            return parsed.path
        case "QUERY":
            return parsed.query if "?" in url else None
        case "REF":
            return parsed.fragment if "#" in url else None
        case "PROTOCOL":
            return parsed.scheme or None
        case "FILE":
            return parsed.path + (f"?{parsed.query}" if "?" in url else "")
        case "AUTHORITY":
            return authority
        case "USERINFO":
            return authority.rpartition("@")[0] if authority and "@" in authority else None
    return None


declare("parse_url", STRING, STRING, STRING, STRING, optional=1)(_url_part)


# Regular expressions --------------------------------------------------------------------------


@declare("regexp_count", INT, STRING, STRING)
def _regexp_count(text: str, pattern: str) -> int:
    return sum(1 for _ in compiled(pattern).finditer(text))


@declare("regexp_substr", STRING, STRING, STRING)
def _regexp_substr(text: str, pattern: str) -> str | None:
    found = compiled(pattern).search(text)
    return found[0] if found is not None else None


@declare("regexp_instr", INT, STRING, STRING, INT, optional=1)
def _regexp_instr(text: str, pattern: str, group: int = 0) -> int:
    found = compiled(pattern).search(text)
    return found.start() + 1 if found is not None else 0


@declare("regexp_like", BOOLEAN, STRING, STRING)
def _regexp_like(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


@declare("rlike", BOOLEAN, STRING, STRING)
def _rlike(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


@declare("regexp_replace", STRING, STRING, STRING, STRING, INT, optional=1)
def _regexp_replace(text: str, pattern: str, replacement: str, start: int = 1) -> str:
    if start < 1:
        raise EvaluationError("regexp_replace counts positions from 1")
    form = replacement_of(replacement)
    head, tail = text[: start - 1], text[start - 1 :]
    return head + compiled(pattern).sub(form, tail)


@declare("regexp_extract", STRING, STRING, STRING, INT, optional=1)
def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    found = compiled(pattern).search(text)
    return extract(found, group) if found is not None else ""


@plain("regexp_extract_all")
def _regexp_extract_all(text: str, pattern: str, group: int = 1) -> list[str]:
    return [extract(found, group) for found in compiled(pattern).finditer(text)]


@plain("split")
def _split(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Java's split with a limit; an empty match at the start gives nothing."""
    parts: list[str] = []
    at = 0
    for found in compiled(pattern).finditer(text):
        if limit > 0 and len(parts) == limit - 1:
            break
        if found.end() == 0 or (found.start() == found.end() == len(text) and not text):
            continue
        if found.start() == found.end() == len(text):
            continue
        parts.append(text[at : found.start()])
        at = found.end()
    return [*parts, text[at:]]
