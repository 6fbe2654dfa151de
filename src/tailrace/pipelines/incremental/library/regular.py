"""Regular expressions of Java, as far as Python's mean the same.

What Python reads differently is translated; what it has no word for is an error, so that no
pattern silently means something else.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tailrace.pipelines.errors import EvaluationError

_CLASSES = {
    "Lower": "a-z", "Upper": "A-Z", "ASCII": "\\x00-\\x7F", "Alpha": "a-zA-Z", "Digit": "0-9",
    "Alnum": "a-zA-Z0-9", "Punct": "!-/:-@\\[-`{-~", "Graph": "!-~", "Print": " -~",
    "Blank": " \\t", "Cntrl": "\\x00-\\x1F\\x7F", "XDigit": "0-9a-fA-F", "Space": " \\t\\n\\x0B\\f\\r",
}  # fmt: skip


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled once."""
    try:
        return _compile(pattern)
    except re.error as error:
        raise EvaluationError(
            f"bad regular expression {pattern!r}", detail=str(error), hint="write it more simply"
        ) from error


@lru_cache(1024)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(_translated(pattern), re.ASCII)


def _translated(pattern: str) -> str:
    out: list[str] = []
    at, depth = 0, 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and at + 1 < len(pattern):
            at = _escape(pattern, at, depth, out)
            continue
        if depth and letter == "[":
            raise re.error("a class inside a class")
        if depth and pattern.startswith("&&", at):
            raise re.error("&& inside a class")
        if letter == "[":
            depth = 1
            if pattern.startswith("[^]", at) or pattern.startswith("[]", at):
                raise re.error("an empty class")
        elif letter == "]":
            depth = 0
        elif not depth and letter == "$":
            out.append(r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)")
            at += 1
            continue
        elif not depth and letter == ".":
            out.append(r"[^\n\r\x85\u2028\u2029]")
            at += 1
            continue
        elif not depth and pattern.startswith("(?<", at) and pattern[at + 3 : at + 4].isalpha():
            out.append("(?P<")
            at += 3
            continue
        elif not depth and pattern.startswith("(?", at):
            flags = re.match(r"\(\?([a-zA-Z-]+)[):]", pattern[at:])
            if flags is not None and not set(flags[1]) <= set("i"):
                raise re.error(f"the flags {flags[1]!r}")
        out.append(letter)
        at += 1
    return "".join(out)


def _escape(pattern: str, at: int, depth: int, out: list[str]) -> int:
    letter = pattern[at + 1]
    if letter == "Q":
        end = pattern.find("\\E", at + 2)
        stop = end if end >= 0 else len(pattern)
        out.append(re.escape(pattern[at + 2 : stop]))
        return stop + 2
    if letter in "pP":
        found = re.match(r"\{(\w+)\}", pattern[at + 2 :])
        members = _CLASSES.get(found[1]) if found is not None else None
        if members is None or found is None or (depth and letter == "P"):
            raise re.error(f"the class {pattern[at : at + 12]!r}")
        out.append(members if depth else f"[{'^' if letter == 'P' else ''}{members}]")
        return at + 2 + found.end()
    replaced = {"z": r"\Z", "h": r"[ \t\xA0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
                "R": r"(?:\r\n|[\n\x0B\f\r\x85\u2028\u2029])", "e": r"\x1B",
                "Z": r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"}  # fmt: skip
    if letter in "GXHVckN" or (letter in "hRvV" and depth):
        raise re.error(f"\\{letter}")
    if letter == "v":
        out.append(r"[\n\x0B\f\r\x85\u2028\u2029]")
    elif letter in replaced and not (depth and letter in "zZ"):
        out.append(replaced[letter])
    elif letter == "x" and pattern.startswith("{", at + 2):
        raise re.error("\\x{…}")
    elif letter.isascii() and letter.isalpha() and letter not in "dDwWsSbBAtnrfaxu":
        raise re.error(f"\\{letter}")
    elif letter == "0":
        raise re.error("an octal escape")
    else:
        out.append(pattern[at : at + 2])
    return at + 2


@lru_cache(1024)
def replacement_of(text: str) -> str:
    """Java's replacement text (`$1`, `${name}`) as Python's."""

    def part(found: re.Match[str]) -> str:
        if found[2]:
            return f"\\g<{found[2]}>"
        if found[3]:
            return f"\\g<{found[3]}>"
        return found[1].replace("\\", "\\\\")

    return re.sub(r"\\(.)|\$(\d)|\$\{(\w+)\}|\\", part, text)


def extract(found: re.Match[str], group: int) -> str:
    """A group of a match; one that took no part is empty."""
    try:
        return found[group] or ""
    except IndexError:
        raise EvaluationError(f"the regular expression has no group {group}") from None
