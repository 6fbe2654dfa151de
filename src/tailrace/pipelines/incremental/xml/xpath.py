"""The value of an XPath in a document: a list of nodes, a text, a number or a truth value."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tailrace.pipelines.incremental.casts import format_float
from tailrace.pipelines.incremental.xml.grammar import parse
from tailrace.pipelines.incremental.xml.tree import Document, Node

Value: TypeAlias = "list[Node] | str | float | bool"
_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")
_SPACE = " \t\r\n"
_XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
_REVERSE = {"ancestor", "ancestor-or-self", "preceding", "preceding-sibling"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def evaluate(path: str, document: Document) -> Value:
    """The value of a path at the root of a document."""
    return _Evaluation(document).value(parse(path), document.root, 1, 1)


# Conversions --------------------------------------------------------------------------------------


def text_of(value: Value) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case list():
            return value[0].text() if value else ""
    return _number_text(float(value))


def _number_text(value: float) -> str:
    """A number without exponent, whole ones without a point."""
    text = format_float(value)
    if "E" in text:
        mantissa, _, exponent = text.partition("E")
        sign = "-" if mantissa.startswith("-") else ""
        whole, _, rest = mantissa.lstrip("-").partition(".")
        digits, place = (whole + rest).rstrip("0"), len(whole) + int(exponent)
        if place <= 0:
            return f"{sign}0.{'0' * -place}{digits}"
        digits = digits.ljust(place, "0")
        return sign + digits[:place] + ("." + digits[place:] if digits[place:] else "")
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


def number_of(value: Value) -> float:
    if isinstance(value, bool | float):
        return float(value)
    found = _NUMBER.fullmatch(text_of(value))
    return float(found[1]) if found else math.nan


def truth_of(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value == value and value != 0
    return bool(value)


# Axes ---------------------------------------------------------------------------------------------


def _siblings(node: Node) -> list[Node]:
    if node.parent is None or node.kind in ("attribute", "namespace"):
        return []
    return node.parent.children


def _ancestors(node: Node) -> list[Node]:
    found = []
    above = node.parent
    while above is not None:
        found.append(above)
        above = above.parent
    return found


def _namespaces(node: Node) -> list[Node]:
    if node.kind != "element":
        return []
    found: dict[str, Node] = {}
    for holder in (node, *_ancestors(node)):
        for attribute in holder.attributes:
            if attribute.name == "xmlns" or attribute.name.startswith("xmlns:"):
                prefix = attribute.name.partition(":")[2]
                if prefix not in found:
                    found[prefix] = _namespace(prefix, attribute.value, node)
    found.setdefault("xml", _namespace("xml", _XML_NAMESPACE, node))
    return [one for one in found.values() if one.value]


def _namespace(prefix: str, address: str, node: Node) -> Node:
    made = Node("namespace", prefix, node, node.order)
    made.value = made.first = address
    return made


def _is_declaration(node: Node) -> bool:
    return node.name == "xmlns" or node.name.startswith("xmlns:")


def _reached(axis: str, node: Node) -> Iterable[Node]:
    """The nodes of an axis, nearest first."""
    match axis:
        case "child":
            return node.children
        case "attribute":
            return [one for one in node.attributes if not _is_declaration(one)]
        case "self":
            return [node]
        case "parent":
            return [node.parent] if node.parent is not None else []
        case "descendant":
            return node.walk()
        case "descendant-or-self":
            return [node, *node.walk()]
        case "ancestor":
            return _ancestors(node)
        case "ancestor-or-self":
            return [node, *_ancestors(node)]
        case "following-sibling":
            return [one for one in _siblings(node) if one.order > node.order]
        case "preceding-sibling":
            return [one for one in reversed(_siblings(node)) if one.order < node.order]
        case "namespace":
            return _namespaces(node)
    above = _ancestors(node)
    everything = above[-1].walk() if above else iter(())
    if axis == "following":
        below = {id(one) for one in node.walk()}
        return [one for one in everything if one.order > node.order and id(one) not in below]
    barred = {id(one) for one in above}
    before = [one for one in everything if one.order < node.order and id(one) not in barred]
    return before[::-1]


def _passes(node: Node, test: Any, axis: str) -> bool:
    principal = axis if axis in ("attribute", "namespace") else "element"
    match test[0]:
        case "node":
            return True
        case "any":
            return node.kind == principal
        case "name":
            return node.kind == principal and node.name == test[1] and ":" not in test[1]
    return node.kind == test[1] and (test[2] is None or node.name == test[2])


# Expressions --------------------------------------------------------------------------------------


class _Evaluation:
    def __init__(self, document: Document) -> None:
        self._document = document

    def value(self, tree: Any, node: Node, position: int, size: int) -> Value:
        def inner(part: Any) -> Value:
            return self.value(part, node, position, size)

        match tree[0]:
            case "number" | "text":
                return tree[1]  # type: ignore[no-any-return]
            case "path":
                return self._path(tree, node, position, size)
            case "filter":
                found: list[Node] = self._nodes(inner(tree[1]))
                for predicate in tree[2]:
                    found = self._kept(found, predicate)
                return found
            case "call":
                return self._call(tree[1], tree[2], node, position, size)
            case "negative":
                return -number_of(inner(tree[1]))
            case "or":
                return truth_of(inner(tree[1])) or truth_of(inner(tree[2]))
            case "and":
                return truth_of(inner(tree[1])) and truth_of(inner(tree[2]))
            case "|":
                sides = (inner(tree[1]), inner(tree[2]))
                return _ordered([one for side in sides if isinstance(side, list) for one in side])
            case "=" | "!=" | "<" | "<=" | ">" | ">=":
                return _compared(tree[0], inner(tree[1]), inner(tree[2]))
        return _arithmetic(tree[0], number_of(inner(tree[1])), number_of(inner(tree[2])))

    def _nodes(self, value: Value) -> list[Node]:
        if not isinstance(value, list):
            raise ValueError("nodes are needed here")
        return value

    def _path(self, tree: Any, node: Node, position: int, size: int) -> list[Node]:
        _, start, steps = tree
        if start is None:
            found = [node]
        elif start == "root":
            found = [self._document.root]
        else:
            found = self._nodes(self.value(start, node, position, size))
        for axis, test, predicates in steps:
            reached: list[Node] = []
            for one in found:
                passing = [other for other in _reached(axis, one) if _passes(other, test, axis)]
                for predicate in predicates:
                    passing = self._kept(passing, predicate)
                reached += passing
            found = _ordered(reached) if len(found) > 1 or axis in _REVERSE else reached
        return found

    def _kept(self, nodes: list[Node], predicate: Any) -> list[Node]:
        kept = []
        for position, node in enumerate(nodes, 1):
            value = self.value(predicate, node, position, len(nodes))
            if value == position if isinstance(value, float) else truth_of(value):
                kept.append(node)
        return kept

    def _call(self, name: str, arguments: list[Any], node: Node, position: int, size: int) -> Value:
        values = [self.value(argument, node, position, size) for argument in arguments]
        match name:
            case "last":
                return float(size)
            case "position":
                return float(position)
            case "count":
                return float(len(self._nodes(values[0])))
            case "sum":
                return math.fsum(number_of(one.text()) for one in self._nodes(values[0]))
            case "id":
                given = values[0] if isinstance(values[0], list) else None
                texts = [one.text() for one in given] if given is not None else [text_of(values[0])]
                words = [word for text in texts for word in text.split()]
                return _ordered([self._document.ids[w] for w in words if w in self._document.ids])
            case "name" | "local-name" | "namespace-uri":
                nodes = self._nodes(values[0]) if values else [node]
                return _name(name, nodes[0]) if nodes else ""
            case "lang":  # attributes have no namespace here, so that none is xml:lang
                return False
            case "true" | "false":
                return name == "true"
            case "not":
                return not truth_of(values[0])
            case "boolean":
                return truth_of(values[0])
        if name in ("string", "number", "string-length", "normalize-space") and not values:
            values = [node.text()]
        if name in ("number", "floor", "ceiling", "round"):
            return _rounded(name, number_of(values[0]))
        return _of_texts(name, values)


def _ordered(nodes: list[Node]) -> list[Node]:
    unique = {id(one): one for one in nodes}
    return sorted(unique.values(), key=lambda one: one.order)


def _name(function: str, node: Node) -> str:
    if function == "namespace-uri":
        return ""
    return node.name.rpartition(":")[2] if function == "local-name" else node.name


def _rounded(name: str, value: float) -> float:
    if name == "number" or not math.isfinite(value):
        return value
    match name:
        case "floor":
            return float(math.floor(value))
        case "ceiling":
            return float(math.ceil(value))
    return float(math.floor(value + 0.5))


def _arithmetic(sign: str, left: float, right: float) -> float:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "div":
            if right == 0:
                if left == 0 or left != left:
                    return math.nan
                return math.copysign(math.inf, left) * math.copysign(1, right)
            return left / right
    if right == 0 or not math.isfinite(left) or right != right:
        return math.nan
    return math.fmod(left, right)


def _compared(sign: str, left: Value, right: Value) -> bool:
    if isinstance(right, list) and not isinstance(left, list):
        left, right, sign = right, left, _SWAPPED.get(sign, sign)
    if not isinstance(left, list):
        return _plainly(sign, left, right)
    if isinstance(right, bool):
        return _plainly(sign, bool(left), right)
    others: list[Value] = [one.text() for one in right] if isinstance(right, list) else [right]
    return any(_plainly(sign, one.text(), other) for one in left for other in others)


def _plainly(sign: str, left: Value, right: Value) -> bool:
    if sign in _COMPARE:
        return _COMPARE[sign](number_of(left), number_of(right))
    if isinstance(left, bool) or isinstance(right, bool):
        equal = truth_of(left) == truth_of(right)
    elif isinstance(left, float) or isinstance(right, float):
        equal = number_of(left) == number_of(right)
    else:
        equal = text_of(left) == text_of(right)
    return equal == (sign == "=")


def _of_texts(name: str, values: list[Value]) -> Value:
    texts = [text_of(value) for value in values]
    match name:
        case "string":
            return texts[0]
        case "concat":
            return "".join(texts)
        case "starts-with":
            return texts[0].startswith(texts[1])
        case "contains":
            return texts[1] in texts[0]
        case "substring-before":
            before, found, _ = texts[0].partition(texts[1]) if texts[1] else ("", "", "")
            return before if found else ""
        case "substring-after":
            return texts[0].partition(texts[1])[2] if texts[1] else texts[0]
        case "string-length":
            return float(len(texts[0].encode("utf-16-be", "surrogatepass")) // 2)
        case "normalize-space":
            return " ".join(part for part in re.split(f"[{_SPACE}]+", texts[0]) if part)
        case "translate":
            return _translated(*texts)
    return _substring(texts[0], *map(number_of, values[1:]))


def _translated(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for place, letter in enumerate(old):
        table.setdefault(ord(letter), new[place] if place < len(new) else None)
    return text.translate(table)


def _substring(text: str, start: float, length: float = math.inf) -> str:
    """The letters (of UTF-16) at places from round(start) to before round(start) + round(length)."""
    first = _rounded("round", start)
    end = first + _rounded("round", length)
    data = text.encode("utf-16-be", "surrogatepass")
    places = [p for p in range(1, len(data) // 2 + 1) if first <= p < end]
    if not places:
        return ""
    part = data[2 * places[0] - 2 : 2 * places[-1]].decode("utf-16-be", "surrogatepass")
    return part.encode("utf-8", "replace").decode()
