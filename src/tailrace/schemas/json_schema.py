"""JSON Schema, draft 4 to 2020-12, as the kinds of values that a schema lets through.

A schema object becomes one node. Keywords of several kinds in one object (`type` beside `enum`,
`allOf` beside `properties`) are a node `all` of them; a `type` that is a list is an `any`. Older
drafts read `$ref` alone, those from 2019-09 read what stands beside it, too. The newer names are
brought to the older ones: `prefixItems` and `items` to `items` and `additionalItems`,
`dependentRequired` and `dependentSchemas` to `dependencies`.

References are resolved when a node is used, so schemas may refer to themselves. Nothing is ever
fetched: a URI must be an `$id` or `$anchor` of the schema, a registered reference, or a draft's own
schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.model import Texts
from tailrace.schemas.reading import read_json

TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
_STRING = ("minLength", "maxLength", "pattern", "format")
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_ARRAY = (
    "items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "prefixItems",
    "unevaluatedItems", "minContains", "maxContains",
)  # fmt: skip
_OBJECT = (
    "properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
    "additionalProperties", "propertyNames", "dependentRequired", "dependentSchemas",
    "unevaluatedProperties",
)  # fmt: skip
_SUBSCHEMAS = ("items", "additionalItems", "additionalProperties", "not", "contains", "if", "then",
               "else", "propertyNames", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
_MAPS = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
           "minContains", "maxContains")  # fmt: skip


@dataclass(slots=True, eq=False)
class Node:
    """What a schema lets through.

    `kind`: empty (all), false (nothing), string, number, boolean, null, array, object, enum, const,
    not, conditional, combined. `values` are the keywords of that kind by their own names.
    """

    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    id: Any = None
    title: Any = None
    description: Any = None
    default: Any = None
    has_default: bool = False
    connect: Any = None
    inner: list[Node | Link] = field(default_factory=list)
    criterion: str = ""  # of a combined node: allOf, anyOf, oneOf
    properties: dict[str, Node | Link] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    patterns: dict[str, Node | Link] = field(default_factory=dict)
    needs: dict[str, frozenset[str]] = field(default_factory=dict)
    implies: dict[str, Node | Link] = field(default_factory=dict)
    more: bool = True  # other properties, or items, are let through
    more_schema: Node | Link | None = None
    unevaluated: Node | Link | None = None
    items: list[Node | Link] = field(default_factory=list)
    every_item: Node | Link | None = None
    source: Any = None  # the JSON it was made of, for telling equal ones


@dataclass(slots=True, eq=False)
class Link:
    """A `$ref`, resolved when it is asked for."""

    schema: JsonSchema
    base: str
    target: str
    source: Any = None

    def node(self) -> Node:
        return self.schema.resolve(self.base, self.target)


class JsonSchema:
    """One schema with those it refers to."""

    def __init__(self, text: str, references: Texts | None = None) -> None:
        self.value = read_json(text, "JSON")
        if not isinstance(self.value, dict | bool):
            raise _wrong("#", "a schema is an object, true or false")
        declared = self.value.get("$schema", "") if isinstance(self.value, dict) else ""
        self.modern = isinstance(declared, str) and ("2019-09" in declared or "2020-12" in declared)
        self._documents: dict[str, Any] = {"": self.value}
        self._anchors: dict[str, Any] = {}
        self._bases: dict[int, str] = {}
        self._nodes: dict[int, Node | Link] = {}
        self._index(self.value, "")
        for name, used in (references or {}).items():
            found = read_json(used, "JSON")
            self._documents[name] = found
            self._index(found, name)
        self._check()
        self.root = self.node(self.value, "#")

    # References ------------------------------------------------------------------

    def _index(self, value: Any, base: str) -> None:
        """Note where schemas with an `$id` or an `$anchor` are."""
        waiting = [(value, base)]
        while waiting:
            one, here = waiting.pop()
            if isinstance(one, list):
                waiting.extend((each, here) for each in one)
                continue
            if not isinstance(one, dict):
                continue
            named = one.get("$id", one.get("id"))
            if isinstance(named, str) and named and not isinstance(one.get("$ref"), str):
                whole, fragment = urldefrag(_join(here, named))
                if fragment and not fragment.startswith("/"):
                    self._anchors[f"{whole}#{fragment}"] = one
                elif whole:
                    here = whole
                    self._documents.setdefault(here, one)
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(one.get(keyword), str):
                    self._anchors[f"{here}#{one[keyword]}"] = one
            self._bases[id(one)] = here
            waiting.extend((each, here) for each in one.values())

    def _check(self) -> None:
        """Every `$ref` leads somewhere, and none only to itself."""
        for document in list(self._documents.values()):
            waiting = [document]
            while waiting:
                one = waiting.pop()
                if isinstance(one, list):
                    waiting.extend(one)
                elif isinstance(one, dict):
                    for name, each in one.items():
                        if name in ("enum", "const", "default", "examples"):
                            continue
                        waiting.append(each)
                    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
                        if isinstance(one.get(keyword), str):
                            self._find(self._bases.get(id(one), ""), one[keyword])

    def _find(self, base: str, target: str) -> tuple[Any, str]:
        """The JSON that a reference means, and the base of references in it."""
        seen: set[tuple[str, str]] = set()
        while True:
            if (base, target) in seen:
                raise _wrong(target, "the reference leads only to itself")
            seen.add((base, target))
            value, base = self._step(base, target)
            alone = not self.modern or (isinstance(value, dict) and len(value) == 1)
            if not (isinstance(value, dict) and isinstance(value.get("$ref"), str) and alone):
                return value, base
            target = value["$ref"]

    def _step(self, base: str, target: str) -> tuple[Any, str]:
        whole, fragment = urldefrag(_join(base, target))
        for name in dict.fromkeys((whole, urldefrag(target)[0])):
            if fragment and f"{name}#{fragment}" in self._anchors:
                return self._anchors[f"{name}#{fragment}"], name
            if name in self._documents:
                return self._point(self._documents[name], unquote(fragment), target), name
        if whole.startswith(("http://json-schema.org/", "https://json-schema.org/")):
            return True, whole
        raise _wrong(target, "the reference leads nowhere; nothing is fetched")

    def _point(self, value: Any, pointer: str, target: str) -> Any:
        if pointer in ("", "/"):
            return value
        if not pointer.startswith("/"):
            raise _wrong(target, "there is no such anchor")
        for part in pointer[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
                value = value[int(name)]
            else:
                raise _wrong(target, "the reference leads nowhere")
        return value

    def resolve(self, base: str, target: str) -> Node:
        value, _ = self._find(base, target)
        found = self.node(value, target)
        return found.node() if isinstance(found, Link) else found

    # Nodes -----------------------------------------------------------------------

    def node(self, value: Any, path: str) -> Node | Link:
        """The node of a schema; one object however often it is reached."""
        if value is True:
            return Node("empty", source=True)
        if value is False:
            return Node("false", source=False)
        if not isinstance(value, dict):
            raise _wrong(path, "a schema is an object, true or false")
        known = self._nodes.get(id(value))
        if known is None:
            known = self._nodes[id(value)] = self._make(value, path)
        return known

    def _make(self, value: dict[str, Any], path: str) -> Node | Link:
        self._types(value, path)
        parts: list[Node | Link] = []
        target = next(
            (
                value[one]
                for one in ("$ref", "$dynamicRef", "$recursiveRef")
                if isinstance(value.get(one), str)
            ),
            None,
        )
        if target is not None:
            link = Link(self, self._bases.get(id(value), ""), target, value)
            if not self.modern:
                return link
            parts.append(link)
        parts += self._parts(value, path)
        if not parts:
            return self._described(Node("empty"), value)
        if len(parts) == 1:
            only = parts[0]
            return only if isinstance(only, Link) else self._described(only, value)
        return self._described(Node("combined", inner=parts, criterion="allOf"), value)

    def _parts(self, value: dict[str, Any], path: str) -> list[Node | Link]:
        parts: list[Node | Link] = []
        if "enum" in value:
            parts.append(Node("enum", {"enum": value["enum"]}, source={"enum": value["enum"]}))
        for criterion in ("allOf", "anyOf", "oneOf"):
            if criterion in value:
                inner = [
                    self.node(one, f"{path}/{criterion}/{number}")
                    for number, one in enumerate(value[criterion])
                ]
                parts.append(
                    Node("combined", inner=inner, criterion=criterion,
                         source={criterion: value[criterion]})
                )  # fmt: skip
        if "not" in value:
            parts.append(
                Node("not", inner=[self.node(value["not"], f"{path}/not")],
                     source={"not": value["not"]})
            )  # fmt: skip
        if "const" in value:
            parts.append(Node("const", {"const": value["const"]}, source={"const": value["const"]}))
        if "if" in value and ("then" in value or "else" in value):
            parts.append(
                Node("conditional", {"if": value["if"], "then": value.get("then"),
                                     "else": value.get("else")})
            )  # fmt: skip
        kinds = value.get("type")
        if isinstance(kinds, list):
            if len(kinds) == 1:
                parts.append(self._typed(kinds[0], value, path))
            else:
                inner = [self._typed(one, value, path) for one in kinds]
                parts.append(
                    Node("combined", inner=list(inner), criterion="anyOf", source={"type": kinds})
                )
        elif isinstance(kinds, str):
            parts.append(self._typed(kinds, value, path))
        else:
            for kind, words in (
                ("string", _STRING), ("array", _ARRAY), ("object", _OBJECT), ("number", _NUMBER),
            ):  # fmt: skip
                if any(word in value for word in words):
                    parts.append(self._typed(kind, value, path))
        return parts

    def _typed(self, kind: str, value: dict[str, Any], path: str) -> Node:
        source = {k: v for k, v in value.items() if k not in ("enum", "const", "not", *_LISTS)}
        made = Node("number" if kind == "integer" else kind, source={**source, "type": kind})
        match kind:
            case "string":
                made.values = {
                    k: value[k] for k in ("minLength", "maxLength", "pattern") if k in value
                }
            case "number" | "integer":
                made.values = {
                    k: value[k] for k in _NUMBER if k in value and not isinstance(value[k], bool)
                }
                made.values["integer"] = kind == "integer"
            case "array":
                self._array(made, value, path)
            case "object":
                self._object(made, value, path)
        return self._described(made, value)

    def _array(self, made: Node, value: dict[str, Any], path: str) -> None:
        made.values = {
            k: value[k]
            for k in ("minItems", "maxItems", "uniqueItems", "minContains", "maxContains")
            if k in value
        }
        items, more = value.get("items"), value.get("additionalItems")
        if self.modern and ("prefixItems" in value or not isinstance(items, list)):
            ahead = value.get("prefixItems")
            if ahead is not None:
                items, more = ahead, value.get("items")
            elif isinstance(items, bool):
                items, more = None, items
            else:
                more = None
        if isinstance(items, list):
            made.items = [
                self.node(one, f"{path}/items/{number}") for number, one in enumerate(items)
            ]
        elif items is not None:
            made.every_item = self.node(items, f"{path}/items")
        if more is False:
            made.more = False
        elif isinstance(more, dict):
            made.more_schema = self.node(more, f"{path}/additionalItems")
        if self.modern and "unevaluatedItems" in value:
            made.unevaluated = self.node(value["unevaluatedItems"], f"{path}/unevaluatedItems")

    def _object(self, made: Node, value: dict[str, Any], path: str) -> None:
        made.values = {k: value[k] for k in ("minProperties", "maxProperties") if k in value}
        required = value.get("required")
        if isinstance(required, list):
            made.required = frozenset(required)
        made.properties = {
            name: self.node(one, f"{path}/properties/{name}")
            for name, one in value.get("properties", {}).items()
        }
        made.patterns = {
            name: self.node(one, f"{path}/patternProperties/{name}")
            for name, one in value.get("patternProperties", {}).items()
        }
        together = {**value.get("dependencies", {}), **value.get("dependentRequired", {}),
                    **value.get("dependentSchemas", {})}  # fmt: skip
        for name, one in together.items():
            if isinstance(one, list):
                made.needs[name] = frozenset(one)
            elif isinstance(one, str):
                made.needs[name] = frozenset((one,))
            else:
                made.implies[name] = self.node(one, f"{path}/dependencies/{name}")
        more = value.get("additionalProperties")
        if more is False:
            made.more = False
        elif isinstance(more, dict):
            made.more_schema = self.node(more, f"{path}/additionalProperties")
        if self.modern and "unevaluatedProperties" in value:
            made.unevaluated = self.node(
                value["unevaluatedProperties"], f"{path}/unevaluatedProperties"
            )

    def _described(self, made: Node, value: dict[str, Any]) -> Node:
        made.id = value.get("$id", value.get("id"))
        made.title = value.get("title")
        made.description = value.get("description")
        made.connect = value.get("connect.type")
        if "default" in value:
            made.default, made.has_default = value["default"], True
        if made.source is None:
            made.source = value
        return made

    def _types(self, value: dict[str, Any], path: str) -> None:
        """Each keyword has a value of the kind that it needs."""
        kinds = value.get("type", "object")
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if kind not in TYPES:
                raise _wrong(f"{path}/type", f"there is no type {kind!r}")
        if kinds == []:
            raise _wrong(f"{path}/type", "no type at all")
        for name in _COUNTS:
            one = value.get(name, 0)
            if (
                isinstance(one, bool)
                or not isinstance(one, int | float)
                or one < 0
                or one != int(one)
            ):
                raise _wrong(f"{path}/{name}", "a number of things, 0 or more")
        for name in ("minimum", "maximum", "multipleOf"):
            one = value.get(name, 1)
            if isinstance(one, bool) or not isinstance(one, int | float):
                raise _wrong(f"{path}/{name}", "a number")
        if value.get("multipleOf", 1) <= 0:
            raise _wrong(f"{path}/multipleOf", "a number above 0")
        for name in ("exclusiveMinimum", "exclusiveMaximum"):
            if not isinstance(value.get(name, 1), int | float):
                raise _wrong(f"{path}/{name}", "a number, or true and false in draft 4")
        for name in ("pattern", "title", "description", "$ref", "$schema", "$id", "format"):
            if name in value and not isinstance(value[name], str):
                raise _wrong(f"{path}/{name}", "a text")
        for name in ("properties", "patternProperties", "dependencies", "definitions", "$defs",
                     "dependentRequired", "dependentSchemas"):  # fmt: skip
            if not isinstance(value.get(name, {}), dict):
                raise _wrong(f"{path}/{name}", "an object")
        for name in _LISTS:
            if name in value and (not isinstance(value[name], list) or not value[name]):
                raise _wrong(f"{path}/{name}", "a list of at least one schema")
        if "enum" in value and not isinstance(value["enum"], list):
            raise _wrong(f"{path}/enum", "a list")
        required = value.get("required", [])
        listed = isinstance(required, list) and all(isinstance(one, str) for one in required)
        if not listed and not isinstance(required, bool):
            raise _wrong(f"{path}/required", "a list of names")


def inner_schemas(value: dict[str, Any]) -> list[Any]:
    """The schemas directly inside a schema object."""
    found: list[Any] = []
    for name in _SUBSCHEMAS:
        one = value.get(name)
        found += one if isinstance(one, list) else [] if one is None else [one]
    for name in _MAPS:
        found += value.get(name, {}).values()
    for name in _LISTS:
        found += value.get(name, [])
    found += [one for one in value.get("dependencies", {}).values() if isinstance(one, dict)]
    return found


def check_all(schema: JsonSchema) -> None:
    """Look at every schema of the document, also at those that nothing refers to."""
    waiting = [schema.value]
    try:
        while waiting:
            one = waiting.pop()
            schema.node(one, "#")
            if isinstance(one, dict):
                waiting.extend(inner_schemas(one))
    except RecursionError:
        raise InvalidSchemaError("the JSON schema is nested too deeply") from None


def _join(base: str, target: str) -> str:
    try:
        return urljoin(base, target) if base else target
    except ValueError as error:
        raise _wrong(target, str(error)) from error


def _wrong(path: str, text: str) -> InvalidSchemaError:
    shown = path if len(path) <= 200 else f"{path[:199]}…"
    return InvalidSchemaError("the JSON schema is not valid", detail=f"{text} (at {shown})")
