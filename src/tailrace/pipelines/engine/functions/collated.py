"""Keys of collations: texts that a collation takes for equal have equal keys, in its order."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.pipelines.engine.functions.scalar import simple

# A final sigma is a sigma; and letters of Unicode 16 and 17, which not every Python knows.
_OTHERS = str.maketrans({
    0x03C2: 0x03C3, 0x1C89: 0x1C8A, 0xA7CB: 0x0264, 0xA7CC: 0xA7CD, 0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3, 0xA7D4: 0xA7D5, 0xA7DA: 0xA7DB, 0xA7DC: 0x019B,
    **{0x10D50 + at: 0x10D70 + at for at in range(22)},
    **{0x16EA0 + at: 0x16EBB + at for at in range(25)},
})  # fmt: skip


def lower_case(text: str) -> str:
    """Letter by letter, without regard to its neighbours."""
    if text.isascii():
        return text.lower()
    return "".join(letter.lower() for letter in text).translate(_OTHERS)


def _trimmed(text: str) -> str:
    return text.rstrip(" ")


KEYS: dict[str, Callable[[str], str]] = {
    "UTF8_BINARY": str,
    "UTF8_LCASE": lower_case,
    "UTF8_BINARY_RTRIM": _trimmed,
    "UTF8_LCASE_RTRIM": lambda text: lower_case(_trimmed(text)),
}

simple("collation_key", lambda text, name: KEYS[name](text))
simple("collate", lambda text, name: text)
