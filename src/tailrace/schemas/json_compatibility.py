"""Whether everything one JSON schema let through, another lets through too.

The rules and their names are those of Confluent's registry. What decides most cases is the content
model of an object: open (other properties are let through), closed (`additionalProperties: false`)
or partly open (they must fit a schema). A property may be added to a closed model and removed from
an open one; the other way round old data may already hold something else under that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from tailrace.schemas.json_schema import JsonSchema, Link, Node
from tailrace.schemas.model import Difference, Find
from tailrace.schemas.reading import Steps, too_deep, write_json

_COMPATIBLE = """
ID_CHANGED DESCRIPTION_CHANGED TITLE_CHANGED DEFAULT_CHANGED SCHEMA_REMOVED TYPE_EXTENDED
MAX_LENGTH_INCREASED MAX_LENGTH_REMOVED MIN_LENGTH_DECREASED MIN_LENGTH_REMOVED PATTERN_REMOVED
MAXIMUM_INCREASED MAXIMUM_REMOVED MINIMUM_DECREASED MINIMUM_REMOVED
EXCLUSIVE_MAXIMUM_INCREASED EXCLUSIVE_MAXIMUM_REMOVED EXCLUSIVE_MINIMUM_DECREASED
EXCLUSIVE_MINIMUM_REMOVED MULTIPLE_OF_REDUCED MULTIPLE_OF_REMOVED
REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED REQUIRED_ATTRIBUTE_REMOVED
DEPENDENCY_ARRAY_NARROWED DEPENDENCY_ARRAY_REMOVED DEPENDENCY_SCHEMA_REMOVED
MAX_PROPERTIES_INCREASED MAX_PROPERTIES_REMOVED MIN_PROPERTIES_DECREASED MIN_PROPERTIES_REMOVED
ADDITIONAL_PROPERTIES_ADDED ADDITIONAL_PROPERTIES_EXTENDED
UNEVALUATED_PROPERTIES_ADDED UNEVALUATED_PROPERTIES_EXTENDED
PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL
REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL
OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL
PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL
PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
MAX_ITEMS_INCREASED MAX_ITEMS_REMOVED MIN_ITEMS_DECREASED MIN_ITEMS_REMOVED
MAX_CONTAINS_INCREASED MAX_CONTAINS_REMOVED MIN_CONTAINS_DECREASED MIN_CONTAINS_REMOVED
UNIQUE_ITEMS_REMOVED ADDITIONAL_ITEMS_ADDED ADDITIONAL_ITEMS_EXTENDED
UNEVALUATED_ITEMS_ADDED UNEVALUATED_ITEMS_EXTENDED
ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_CLOSED_CONTENT_MODEL
ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL
ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
ENUM_ARRAY_EXTENDED COMBINED_TYPE_EXTENDED PRODUCT_TYPE_NARROWED SUM_TYPE_EXTENDED
NOT_TYPE_NARROWED
"""
COMPATIBLE = frozenset(_COMPATIBLE.split())
LENIENT = COMPATIBLE | {
    "ADDITIONAL_PROPERTIES_REMOVED", "ADDITIONAL_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED", "UNEVALUATED_PROPERTIES_NARROWED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}  # fmt: skip

Change = tuple[str, str]  # rule and path, relative to the pair that is compared
Schema = Node | Link


def changes(
    before: JsonSchema, after: JsonSchema, find: Find, compatible: frozenset[str] = COMPATIBLE
) -> list[Change]:
    """Every change, with its path; those not in `compatible` let less through.

    A pair met again inside itself is taken to fit, as long as nothing shows otherwise: the
    comparison is repeated with the pairs that were found not to fit until none is added.
    """
    steps = Steps()
    refused: dict[tuple[int, int], list[Change]] = {}
    try:
        while True:
            work = _Comparison(find, compatible, steps, refused)
            found = work.compare(before.root, after.root, "#")
            now = {
                pair: made
                for pair, made in work.known.items()
                if any(rule not in compatible for rule, _ in made)
            }
            if not work.assumed or now.keys() <= refused.keys():
                return [(rule, f"{path}/" if path == "#" else path) for rule, path in found]
            refused = now
    except RecursionError:
        raise too_deep("JSON") from None


def differences(
    reader: JsonSchema, writer: JsonSchema, find: Find, compatible: frozenset[str] = COMPATIBLE
) -> list[Difference]:
    """What stops the reader, none twice; empty if it can read everything."""
    broken = [
        (rule, path)
        for rule, path in dict.fromkeys(changes(writer, reader, find, compatible))
        if rule not in compatible
    ]
    return [Difference(rule, path, _told(rule, path), _hint(rule)) for rule, path in broken]


class _Comparison:
    def __init__(
        self,
        find: Find,
        compatible: frozenset[str],
        steps: Steps,
        refused: dict[tuple[int, int], list[Change]],
    ) -> None:
        self._find = find
        self._compatible = compatible
        self._steps = steps
        self._refused = refused
        self.known: dict[tuple[int, int], list[Change]] = {}
        self._open: set[tuple[int, int]] = set()
        self._kept: list[Node] = []  # nodes made on the way must keep their identity
        self.assumed = False

    def compare(self, before: Schema | None, after: Schema | None, path: str) -> list[Change]:
        self._steps.take()
        if before is None and after is None:
            return []
        if before is None:
            return [("SCHEMA_ADDED", path)]
        if after is None:
            return [("SCHEMA_REMOVED", path)]
        first = before.node() if isinstance(before, Link) else before
        second = after.node() if isinstance(after, Link) else after
        return [(rule, path + inner[1:]) for rule, inner in self._pair(first, second)]

    def _pair(self, before: Node, after: Node) -> list[Change]:
        pair = (id(before), id(after))
        known = self.known.get(pair)
        if known is not None:
            return known
        if pair in self._open:
            if pair in self._refused:
                return self._refused[pair]
            self.assumed = True
            return []
        self._open.add(pair)
        self._kept += (before, after)
        try:
            made = list(dict.fromkeys(self._kinds(before, after)))
            self._steps.take(len(made))
            self.known[pair] = made
            return made
        finally:
            self._open.discard(pair)

    def _fits(self, made: Sequence[Change]) -> bool:
        return all(rule in self._compatible for rule, _ in made)

    def _kinds(self, before: Node, after: Node) -> list[Change]:
        if before.kind != "combined" and after.kind == "combined":
            if len(after.inner) == 1:
                made = self.compare(before, after.inner[0], "#")
                if self._fits(made):
                    return made
            elif after.criterion in ("anyOf", "oneOf"):
                for one in after.inner:
                    made = self.compare(before, one, "#")
                    if self._fits(made):
                        return [*made, ("SUM_TYPE_EXTENDED", "#")]
        elif before.kind == "combined" and after.kind != "combined":
            if len(before.inner) == 1:
                made = self.compare(before.inner[0], after, "#")
                if self._fits(made):
                    return made
            elif before.criterion == "allOf":
                for one in before.inner:
                    made = self.compare(one, after, "#")
                    if self._fits(made):
                        return [*made, ("PRODUCT_TYPE_NARROWED", "#")]
        if before.kind != after.kind:
            if before.kind == "false" or after.kind == "empty":
                return []
            if before.connect == "bytes" and after.connect == "bytes":
                return []
            return [("TYPE_CHANGED", "#")]
        made = []
        described: tuple[tuple[str, object, object], ...] = (
            ("ID_CHANGED", before.id, after.id),
            ("TITLE_CHANGED", before.title, after.title),
            ("DESCRIPTION_CHANGED", before.description, after.description),
            ("DEFAULT_CHANGED", (before.has_default, before.default),
             (after.has_default, after.default)),
        )  # fmt: skip
        made += [(rule, "#") for rule, one, other in described if one != other]
        work: dict[str, Callable[[Node, Node], list[Change]]] = {
            "string": self._strings,
            "number": self._numbers,
            "const": self._consts,
            "enum": self._enums,
            "combined": self._combined,
            "not": self._negations,
            "object": self._objects,
            "array": self._arrays,
        }
        return made + work[before.kind](before, after) if before.kind in work else made

    # Plain values ------------------------------------------------------------------

    def _limits(self, before: Node, after: Node, *names: tuple[str, str]) -> list[Change]:
        made: list[Change] = []
        for name, rule in names:
            one, other = before.values.get(name), after.values.get(name)
            if one == other:
                continue
            if one is None:
                made.append((f"{rule}_ADDED", f"#/{name}"))
            elif other is None:
                made.append((f"{rule}_REMOVED", f"#/{name}"))
            else:
                made.append((f"{rule}_{'INCREASED' if other > one else 'DECREASED'}", f"#/{name}"))
        return made

    def _strings(self, before: Node, after: Node) -> list[Change]:
        made = self._limits(before, after, ("maxLength", "MAX_LENGTH"), ("minLength", "MIN_LENGTH"))
        one, other = before.values.get("pattern"), after.values.get("pattern")
        if one != other:
            rule = "ADDED" if one is None else "REMOVED" if other is None else "CHANGED"
            made.append((f"PATTERN_{rule}", "#/pattern"))
        return made

    def _numbers(self, before: Node, after: Node) -> list[Change]:
        made = self._limits(
            before,
            after,
            ("maximum", "MAXIMUM"),
            ("minimum", "MINIMUM"),
            ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
            ("exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
        )
        one, other = before.values.get("multipleOf"), after.values.get("multipleOf")
        if one != other:
            made.append((f"MULTIPLE_OF_{_multiple(one, other)}", "#/multipleOf"))
        if before.values["integer"] != after.values["integer"]:
            rule = "TYPE_EXTENDED" if before.values["integer"] else "TYPE_NARROWED"
            made.append((rule, "#"))
        return made

    def _consts(self, before: Node, after: Node) -> list[Change]:
        same = _same(before.values["const"]) == _same(after.values["const"])
        return [] if same else [("ENUM_ARRAY_CHANGED", "#/const")]

    def _enums(self, before: Node, after: Node) -> list[Change]:
        one = {_same(each) for each in before.values["enum"]}
        other = {_same(each) for each in after.values["enum"]}
        if one == other:
            return []
        rule = "EXTENDED" if one <= other else "NARROWED" if other <= one else "CHANGED"
        return [(f"ENUM_ARRAY_{rule}", "#/enum")]

    def _negations(self, before: Node, after: Node) -> list[Change]:
        fits = self._fits(self.compare(after.inner[0], before.inner[0], "#/not"))
        return [("NOT_TYPE_NARROWED" if fits else "NOT_TYPE_EXTENDED", "#/not")]

    # Combinations --------------------------------------------------------------------

    def _combined(self, before: Node, after: Node) -> list[Change]:
        made: list[Change] = []
        alone = len(before.inner) == 1
        if before.criterion != after.criterion:
            extended = (
                after.criterion == "anyOf"
                or (alone and len(after.inner) == 1)
                or (alone and after.criterion == "oneOf")
                or (len(after.inner) == 1 and before.criterion == "allOf")
            )
            if not extended:
                return [("COMBINED_TYPE_CHANGED", "#")]
            made.append(("COMBINED_TYPE_EXTENDED", "#"))
        ones, others = _distinct(before.inner), _distinct(after.inner)
        if len(ones) < len(others):
            product = after.criterion == "allOf"
            made.append(("PRODUCT_TYPE_EXTENDED" if product else "SUM_TYPE_EXTENDED", "#"))
        elif len(ones) > len(others):
            product = before.criterion == "allOf"
            made.append(("PRODUCT_TYPE_NARROWED" if product else "SUM_TYPE_NARROWED", "#"))
        edges: list[dict[int, list[Change]]] = []
        for number, one in enumerate(ones):
            fitting: dict[int, list[Change]] = {}
            for place, other in enumerate(others):
                found = self.compare(one, other, f"#/{before.criterion}/{number}")
                if self._fits(found):
                    fitting[place] = found
            edges.append(fitting)
        matched = _match(edges)
        for place, number in matched.items():
            made += edges[number][place]
        if len(matched) < min(len(ones), len(others)):
            made.append(("COMBINED_TYPE_SUBSCHEMAS_CHANGED", "#"))
        return made

    # Objects -------------------------------------------------------------------------

    def _objects(self, before: Node, after: Node) -> list[Change]:
        made = self._required(before, after)
        for name in dict.fromkeys((*before.properties, *after.properties)):
            made += self._property(before, after, name)
        made += self._dependencies(before, after)
        made += self._more(before, after, "Properties", "PROPERTIES")
        return made + self._limits(
            before, after, ("maxProperties", "MAX_PROPERTIES"), ("minProperties", "MIN_PROPERTIES")
        )

    def _required(self, before: Node, after: Node) -> list[Change]:
        made: list[Change] = []
        for name in before.properties:
            if name not in after.properties:
                continue
            path = f"#/required/{name}"
            if name in before.required and name not in after.required:
                made.append(("REQUIRED_ATTRIBUTE_REMOVED", path))
            elif name not in before.required and name in after.required:
                rule = "WITH_DEFAULT_ADDED" if _has_default(after.properties[name]) else "ADDED"
                made.append((f"REQUIRED_ATTRIBUTE_{rule}", path))
        return made

    def _property(self, before: Node, after: Node, name: str) -> list[Change]:
        self._steps.take()
        path = f"#/properties/{name}"
        one, other = before.properties.get(name), after.properties.get(name)
        if one is not None and other is not None:
            return self.compare(one, other, path)
        if one is not None:
            if _open(after):
                return [("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", path)]
            covering = self._covering(after, name)
            if covering is not None:
                made = self.compare(one, covering, path)
                word = "IS" if self._fits(made) else "NOT"
                return [*made, (f"PROPERTY_REMOVED_{word}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)]  # fmt: skip
            never = "PROPERTY_WITH_FALSE" if _kind(one) == "false" else "PROPERTY"
            return [(f"{never}_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)]
        assert other is not None
        required = name in after.required
        defaulted = "REQUIRED_PROPERTY_WITH_DEFAULT" if _has_default(other) else "REQUIRED_PROPERTY"
        added = defaulted if required else "OPTIONAL_PROPERTY"
        if _open(before):
            if _kind(other) == "empty":
                added = "PROPERTY_WITH_EMPTY_SCHEMA"
            return [(f"{added}_ADDED_TO_OPEN_CONTENT_MODEL", path)]
        made = []
        covering = self._covering(before, name)
        if covering is not None:
            made = self.compare(covering, other, path)
            word = "IS" if self._fits(made) else "NOT"
            made = [*made, (f"PROPERTY_ADDED_{word}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)]
        return [*made, (f"{added}_ADDED_TO_UNOPEN_CONTENT_MODEL", path)]

    def _covering(self, one: Node, name: str) -> Schema | None:
        """The schema that a property without one of its own must fit."""
        for pattern, schema in one.patterns.items():
            try:
                if self._find(pattern, name):
                    return schema
            except ValueError:
                continue  # a pattern that cannot be held against a name covers none
        if one.more_schema is not None:
            return one.more_schema
        return _partly(one)

    def _dependencies(self, before: Node, after: Node) -> list[Change]:
        made: list[Change] = []
        for name in dict.fromkeys((*before.needs, *after.needs)):
            path = f"#/dependencies/{name}"
            one, other = before.needs.get(name), after.needs.get(name)
            if other is None:
                made.append(("DEPENDENCY_ARRAY_REMOVED", path))
            elif one is None:
                made.append(("DEPENDENCY_ARRAY_ADDED", path))
            elif one != other:
                rule = "EXTENDED" if other >= one else "NARROWED" if one >= other else "CHANGED"
                made.append((f"DEPENDENCY_ARRAY_{rule}", path))
        for name in dict.fromkeys((*before.implies, *after.implies)):
            path = f"#/dependencies/{name}"
            first, second = before.implies.get(name), after.implies.get(name)
            if second is None:
                made.append(("DEPENDENCY_SCHEMA_REMOVED", path))
            elif first is None:
                made.append(("DEPENDENCY_SCHEMA_ADDED", path))
            else:
                made += self.compare(first, second, path)
        return made

    def _more(self, before: Node, after: Node, name: str, rule: str) -> list[Change]:
        """`additionalProperties` or `additionalItems`, then what is unevaluated."""
        path = f"#/additional{name}"
        made: list[Change] = []
        if before.more != after.more:
            made.append((f"ADDITIONAL_{rule}_{'ADDED' if after.more else 'REMOVED'}", path))
        elif before.more_schema is None and after.more_schema is not None:
            made.append((f"ADDITIONAL_{rule}_NARROWED", path))
        elif before.more_schema is not None and after.more_schema is None:
            made.append((f"ADDITIONAL_{rule}_EXTENDED", path))
        else:
            made += self.compare(before.more_schema, after.more_schema, path)
        path = f"#/unevaluated{name}"
        one, other = before.unevaluated, after.unevaluated
        if one is None and other is None:
            return made
        kinds = (one and _kind(one), other and _kind(other))
        match kinds:
            case ("false", "false"):
                made += self.compare(one, other, path)
            case (_, "false"):
                made.append((f"UNEVALUATED_{rule}_REMOVED", path))
            case ("false", _):
                made.append((f"UNEVALUATED_{rule}_ADDED", path))
            case ("empty", "empty"):
                made += self.compare(one, other, path)
            case (None, _) | ("empty", _) if other is not None:
                made.append((f"UNEVALUATED_{rule}_NARROWED", path))
            case (_, None) | (_, "empty"):
                made.append((f"UNEVALUATED_{rule}_EXTENDED", path))
            case _:
                made += self.compare(one, other, path)
        return made

    # Arrays --------------------------------------------------------------------------

    def _arrays(self, before: Node, after: Node) -> list[Change]:
        made = self.compare(before.every_item, after.every_item, "#/items")
        for number in range(max(len(before.items), len(after.items))):
            made += self._item(before, after, number)
        made += self._more(before, after, "Items", "ITEMS")
        made += self._limits(before, after, ("maxItems", "MAX_ITEMS"), ("minItems", "MIN_ITEMS"))
        unique = bool(before.values.get("uniqueItems")), bool(after.values.get("uniqueItems"))
        if unique[0] != unique[1]:
            made.append((f"UNIQUE_ITEMS_{'REMOVED' if unique[0] else 'ADDED'}", "#/uniqueItems"))
        return made + self._limits(
            before, after, ("maxContains", "MAX_CONTAINS"), ("minContains", "MIN_CONTAINS")
        )

    def _item(self, before: Node, after: Node, number: int) -> list[Change]:
        self._steps.take()
        path = f"#/items/{number}"
        if number < min(len(before.items), len(after.items)):
            return self.compare(before.items[number], after.items[number], path)
        if number < len(before.items):
            one = before.items[number]
            if _open(after):
                return [("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", path)]
            covering = after.more_schema or _partly(after)
            if covering is not None:
                made = self.compare(one, covering, path)
                word = "IS" if self._fits(made) else "NOT"
                return [
                    *made,
                    (f"ITEM_REMOVED_{word}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path),
                ]
            never = "ITEM_WITH_FALSE" if _kind(one) == "false" else "ITEM"
            return [(f"{never}_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)]
        other = after.items[number]
        if _open(before):
            added = "ITEM_WITH_EMPTY_SCHEMA" if _kind(other) == "empty" else "ITEM"
            return [(f"{added}_ADDED_TO_OPEN_CONTENT_MODEL", path)]
        covering = before.more_schema or _partly(before)
        if covering is None:
            return [("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)]
        made = self.compare(covering, other, path)
        word = "IS" if self._fits(made) else "NOT"
        return [*made, (f"ITEM_ADDED_{word}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)]


def _kind(one: Schema) -> str:
    return (one.node() if isinstance(one, Link) else one).kind


def _has_default(one: Schema) -> bool:
    return not isinstance(one, Link) and one.has_default


def _open(one: Node) -> bool:
    """Whether other properties, or items, are let through whatever they are."""
    if not one.more or one.more_schema is not None or one.patterns:
        return False
    return one.unevaluated is None or _kind(one.unevaluated) == "empty"


def _partly(one: Node) -> Schema | None:
    if one.more and one.more_schema is None and one.unevaluated is not None:
        return None if _kind(one.unevaluated) in ("false", "empty") else one.unevaluated
    return None


def _multiple(one: Any, other: Any) -> str:
    if one is None:
        return "ADDED"
    if other is None:
        return "REMOVED"
    before, after = Decimal(str(one)), Decimal(str(other))
    try:
        if after % before == 0:
            return "EXPANDED"
        return "REDUCED" if before % after == 0 else "CHANGED"
    except ArithmeticError:  # a quotient of more digits than decimals have
        return "CHANGED"


def _same(value: Any) -> str:
    """A text that equal JSON values share."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return write_json(value, sort=True)


def _distinct(schemas: list[Schema]) -> list[Schema]:
    found: dict[str, Schema] = {}
    for one in schemas:
        found.setdefault(write_json(one.source), one)
    return list(found.values())


def _match(edges: list[dict[int, list[Change]]]) -> dict[int, int]:
    """The most pairs of fitting schemas with none in two: place on the right → number on the left."""
    matched: dict[int, int] = {}

    def place(start: int) -> None:
        # One augmenting path, without recursion: as many schemas as there are may stand in it.
        came: dict[int, tuple[int, int | None]] = {}
        waiting: list[tuple[int, int | None]] = [(start, None)]
        while waiting:
            number, through = waiting.pop()
            for right in edges[number]:
                if right in came:
                    continue
                came[right] = (number, through)
                if right not in matched:
                    here: int | None = right
                    while here is not None:
                        left, before = came[here]
                        matched[here] = left
                        here = before
                    return
                waiting.append((matched[right], right))

    for number in range(len(edges)):
        place(number)
    return matched


def _told(rule: str, path: str) -> str:
    where = f"at path '{path}'"
    if rule == "TYPE_CHANGED" or rule.startswith("COMBINED") or rule == "TYPE_NARROWED":
        return f"The type {where} in the {{reader}} schema is not that of the {{writer}} schema"
    if "OPEN_CONTENT_MODEL" in rule or "CLOSED_CONTENT_MODEL" in rule:
        what = "property" if "PROPERTY" in rule else "item"
        if "REMOVED" in rule:
            return (
                f"The {{reader}} schema does not let the {what} {where} of the {{writer}} schema "
                "through any more"
            )
        return (
            f"The {{reader}} schema has a {what} {where} that the {{writer}} schema does not name, "
            "and what was written under it need not fit"
        )
    word = rule.rpartition("_")[2].lower()
    told = {
        "added": "is in the {reader} schema and not in the {writer} schema",
        "removed": "of the {writer} schema is not in the {reader} schema",
        "increased": "is more in the {reader} schema than in the {writer} schema",
        "expanded": "is more in the {reader} schema than in the {writer} schema",
        "decreased": "is less in the {reader} schema than in the {writer} schema",
        "narrowed": "lets less through in the {reader} schema than in the {writer} schema",
        "extended": "asks for more in the {reader} schema than in the {writer} schema",
    }.get(word, "is different in the {reader} and the {writer} schema")
    return f"What stands {where} {told}"


def _hint(rule: str) -> str:
    if rule.startswith("REQUIRED_ATTRIBUTE"):
        return "leave the property optional, or give it a default"
    if rule.startswith("REQUIRED_PROPERTY_ADDED_TO_UNOPEN"):
        return "make the new property optional, or give it a default"
    if "ADDED_TO_OPEN_CONTENT_MODEL" in rule:
        return "additionalProperties: false in the older version, or the level FORWARD"
    if "REMOVED_FROM_CLOSED" in rule:
        return "keep it, or let additional ones through first"
    if "COVERED_BY_PARTIALLY_OPEN" in rule:
        return "let its schema fit that of the additional ones"
    if rule.startswith(("TYPE_", "COMBINED")):
        return "keep the type and add the other one: anyOf, or a list of types"
    return "keep what it was, or ask for less"
