"""XPath 1.0 → a tree of tuples; ValueError for a text that is no path.

("or" | "and" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "+" | "-" | "*" | "div" | "mod" | "|", left, right)
("negative", operand)   ("number", value)   ("text", value)   ("call", name, [operand, …])
("path", start, [step, …])   start: None (the context), "root", or an operand
("filter", operand, [predicate, …])
step: (axis, test, [predicate, …])   test: ("name", n) ("any",) ("node",) ("kind", k, n)
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

AXES = {
    "ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self",
    "following", "following-sibling", "namespace", "parent", "preceding", "preceding-sibling",
    "self",
}  # fmt: skip
# Least and most arguments.
FUNCTIONS = {
    "last": (0, 0), "position": (0, 0), "count": (1, 1), "id": (1, 1), "local-name": (0, 1),
    "namespace-uri": (0, 1), "name": (0, 1), "string": (0, 1), "concat": (2, 999),
    "starts-with": (2, 2), "contains": (2, 2), "substring-before": (2, 2),
    "substring-after": (2, 2), "substring": (2, 3), "string-length": (0, 1),
    "normalize-space": (0, 1), "translate": (3, 3), "boolean": (1, 1), "not": (1, 1),
    "true": (0, 0), "false": (0, 0), "lang": (1, 1), "number": (0, 1), "sum": (1, 1),
    "floor": (1, 1), "ceiling": (1, 1), "round": (1, 1),
}  # fmt: skip
_KINDS = {"comment": "comment", "text": "text", "processing-instruction": "instruction"}
_NAME = r"[^\W\d][\w.\-·]*"
_TOKEN = re.compile(
    rf"""\s*(?:(?P<text>"[^"]*"|'[^']*')|(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<sign>\.\.|::|//|!=|<=|>=|[()\[\].@,/|+=<>*$-])
    |(?P<name>{_NAME}(?::(?!:)(?:{_NAME}|\*))?))""",
    re.X,
)
_OPERATORS = ("or", "and", "div", "mod")
_LEVELS = (("or",), ("and",), ("=", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "div", "mod"))
_DESCEND: Any = ("descendant-or-self", ("node",), [])
Tokens = list[tuple[str, str]]


def _tokens(path: str) -> Tokens:
    """Kinds and texts; `*` and words that stand behind an operand are operators."""
    tokens: Tokens = []
    at = 0
    while path[at:].strip():
        found = _TOKEN.match(path, at)
        if found is None:
            raise ValueError(f"{path[at:].strip()[:20]!r} is not understood")
        kind, text = str(found.lastgroup), found[str(found.lastgroup)]
        if kind == "number" and re.match(r"[\w.]", path[found.end() :]):
            raise ValueError(f"{path[found.start() :].strip()[:20]!r} is no number")
        operand = bool(tokens) and (
            tokens[-1][0] in ("text", "number", "name")
            or tokens[-1][1] in (")", "]", ".", "..")
            or tokens[-1] == ("any", "*")
        )
        if text == "*":
            kind = "operator" if operand else "any"
        elif kind == "name" and operand and text in _OPERATORS:
            kind = "operator"
        tokens.append((kind, text))
        at = found.end()
    return tokens


@lru_cache(1024)
def parse(path: str) -> Any:
    """The tree of a path."""
    reader = _Reader(_tokens(path))
    tree = reader.level(0)
    if reader.at < len(reader.tokens):
        raise ValueError(f"{reader.tokens[reader.at][1]!r} is not expected there")
    return tree


class _Reader:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.at = tokens, 0

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ("end", "")

    def _take(self, text: str) -> bool:
        if self._peek()[1] == text and self._peek()[0] in ("sign", "operator"):
            self.at += 1
            return True
        return False

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise ValueError(f"{text!r} is expected, not {self._peek()[1] or 'the end'!r}")

    def level(self, number: int) -> Any:
        if number == len(_LEVELS):
            return self._unary()
        left = self.level(number + 1)
        while self._peek()[1] in _LEVELS[number] and self._peek()[0] in ("sign", "operator"):
            operator = self._peek()[1]
            self.at += 1
            left = (operator, left, self.level(number + 1))
        return left

    def _unary(self) -> Any:
        if self._take("-"):
            return ("negative", self._union())
        return self._union()

    def _union(self) -> Any:
        left = self._path()
        while self._take("|"):
            left = ("|", left, self._path())
        return left

    def _path(self) -> Any:
        kind, text = self._peek()
        called = self._peek(1)[1] == "(" and kind == "name"
        node_type = text in _KINDS or text == "node"
        if kind in ("text", "number") or text in ("(", "$") or (called and not node_type):
            start = self._primary()
            predicates = self._predicates()
            if predicates:
                start = ("filter", start, predicates)
            if self._peek()[1] not in ("/", "//"):
                return start
            return ("path", start, self._steps([]))
        if text in ("/", "//"):
            if text == "/" and not self._begins_step(1):
                self.at += 1
                return ("path", "root", [])
            return ("path", "root", self._steps([]))
        return ("path", None, self._steps([self._step()]))

    def _begins_step(self, ahead: int) -> bool:
        kind, text = self._peek(ahead)
        return kind in ("name", "any") or text in (".", "..", "@")

    def _steps(self, steps: list[Any]) -> list[Any]:
        while self._peek()[1] in ("/", "//") and self._peek()[0] == "sign":
            if self._peek()[1] == "//":
                steps.append(_DESCEND)
            self.at += 1
            steps.append(self._step())
        return steps

    def _step(self) -> Any:
        if self._take("."):
            return ("self", ("node",), [])
        if self._take(".."):
            return ("parent", ("node",), [])
        axis = "child"
        if self._take("@"):
            axis = "attribute"
        elif self._peek(1)[1] == "::":
            axis = self._peek()[1]
            if axis not in AXES:
                raise ValueError(f"there is no axis {axis!r}")
            self.at += 2
        return (axis, self._test(), self._predicates())

    def _test(self) -> Any:
        kind, text = self._peek()
        self.at += 1
        if kind == "any":
            return ("any",)
        if kind != "name":
            raise ValueError(f"a step is expected, not {text or 'the end'!r}")
        if self._peek()[1] != "(":
            return ("name", text)
        self._need("(")
        wanted = None
        if text == "processing-instruction" and self._peek()[0] == "text":
            wanted = self._peek()[1][1:-1]
            self.at += 1
        self._need(")")
        if text == "node":
            return ("node",)
        if text not in _KINDS:
            raise ValueError(f"{text}() is no test of a node")
        return ("kind", _KINDS[text], wanted)

    def _predicates(self) -> list[Any]:
        found = []
        while self._take("["):
            found.append(self.level(0))
            self._need("]")
        return found

    def _primary(self) -> Any:
        kind, text = self._peek()
        self.at += 1
        if kind == "text":
            return ("text", text[1:-1])
        if kind == "number":
            return ("number", float(text))
        if text == "(":
            inner = self.level(0)
            self._need(")")
            return inner
        if text == "$":
            raise ValueError("there are no variables here")
        if text not in FUNCTIONS:
            raise ValueError(f"there is no function {text!r}")
        self._need("(")
        arguments = []
        if not self._take(")"):
            arguments.append(self.level(0))
            while self._take(","):
                arguments.append(self.level(0))
            self._need(")")
        least, most = FUNCTIONS[text]
        if not least <= len(arguments) <= most:
            raise ValueError(f"{text}() takes another number of arguments")
        return ("call", text, arguments)
