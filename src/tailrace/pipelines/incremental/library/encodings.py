"""Text as bytes and back: base 32, UTF-8 that may be broken, keyed hashes; likeness of texts."""

from __future__ import annotations

import base64
import hashlib
import hmac as keyed
from collections.abc import Callable

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import simple
from tailrace.pipelines.incremental.library.signatures import declare
from tailrace.pipelines.incremental.types import BINARY, BOOLEAN, DOUBLE, STRING

_DIGESTS = {
    "SHA-224": "sha224", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512",
    "SHA-1": "sha1", "MD5": "md5", "SHA224": "sha224", "SHA256": "sha256", "SHA384": "sha384",
    "SHA512": "sha512", "SHA1": "sha1",
}  # fmt: skip


@declare("to_base32", STRING, BINARY)
def to_base32(data: bytes) -> str:
    return base64.b32encode(data).decode()


@declare("from_base32", BINARY, STRING)
def from_base32(text: str) -> bytes:
    """As Spark's decoder does: letters of another alphabet are passed over, `=` ends the text, and
    what is left of the last letters is cut to bytes, of one letter to its upper bits."""
    bits, found = 0, bytearray()
    count = 0
    for letter in text.partition("=")[0].upper():
        place = _BASE32.find(letter)
        if place >= 0:
            bits, count = bits << 5 | place, count + 1
            if count == 8:
                found += bits.to_bytes(5, "big")
                bits, count = 0, 0
    if count:
        whole, dropped = {1: (1, 2), 2: (1, 2), 3: (1, 7), 4: (2, 4), 5: (3, 1), 6: (3, 6),
                          7: (4, 3)}[count]  # fmt: skip
        found += ((bits >> dropped) % (1 << 8 * whole)).to_bytes(whole, "big")
    return bytes(found)


_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


@declare("hmac", BINARY, BINARY, BINARY, STRING, optional=1)
def hmac(key: bytes, message: bytes, algorithm: str = "SHA-256") -> bytes:
    digest = _DIGESTS.get(algorithm.upper())
    if digest is None:
        raise EvaluationError(f"unknown algorithm {algorithm!r}", hint="use SHA-256")
    if not key:
        raise EvaluationError("the key of hmac is empty")
    return keyed.new(key, message, getattr(hashlib, digest)).digest()


def _valid(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


declare("is_valid_utf8", BOOLEAN, BINARY)(_valid)
declare("make_valid_utf8", STRING, BINARY)(lambda data: data.decode(errors="replace"))
declare("try_validate_utf8", STRING, BINARY)(lambda d: d.decode() if _valid(d) else None)


@declare("validate_utf8", STRING, BINARY)
def validate_utf8(data: bytes) -> str:
    if not _valid(data):
        raise EvaluationError(f"{data.hex()} is no UTF-8", hint="use try_validate_utf8")
    return data.decode()


def _from_hex(text: str) -> bytes:
    return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)


def _from_base64(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


BINARY_FORMS: dict[str, Callable[[str], bytes]] = {
    "hex": _from_hex, "utf-8": str.encode, "utf8": str.encode, "base64": _from_base64,
}  # fmt: skip


def _to_binary(text: str, form: str) -> bytes:
    try:
        return BINARY_FORMS[form](text)
    except ValueError as error:
        raise EvaluationError(
            f"{text!r} is not {form}", hint="use try_to_binary to get NULL instead"
        ) from error


def _try_to_binary(text: str, form: str) -> bytes | None:
    try:
        return BINARY_FORMS[form](text)
    except ValueError:
        return None


simple("to_binary", _to_binary)
simple("try_to_binary", _try_to_binary)


@declare("jaro_winkler_similarity", DOUBLE, STRING, STRING)
def jaro_winkler_similarity(left: str, right: str) -> float:
    """Between 0 and 1; a common beginning of up to 4 letters counts more."""
    if left == right:
        return 1.0
    if not left or not right:
        return 0.0
    if len(left) > len(right):
        left, right = right, left
    reach = max(0, len(right) // 2 - 1)
    taken = [False] * len(right)
    matches: list[str] = []
    for at, letter in enumerate(left):
        for place in range(max(0, at - reach), min(len(right), at + reach + 1)):
            if not taken[place] and right[place] == letter:
                taken[place] = True
                matches.append(letter)
                break
    if not matches:
        return 0.0
    found = [letter for letter, used in zip(right, taken, strict=True) if used]
    moved = sum(a != b for a, b in zip(matches, found, strict=True)) / 2
    count = len(matches)
    likeness = (count / len(left) + count / len(right) + (count - moved) / count) / 3
    common = 0
    for a, b in zip(left[:4], right[:4], strict=False):
        if a != b:
            break
        common += 1
    return likeness + common * 0.1 * (1 - likeness)
