"""Avro schemas: parsed to types, written in one form.

The form is that of Avro's own libraries: no spaces, attributes in a fixed order, a namespace only
where it changes, a type defined where it first appears and named after that. Two texts of one form
are one schema. `normal` sorts the properties that Avro does not know, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.model import Texts
from tailrace.schemas.reading import read_json, write_json

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED = ("record", "error", "enum", "fixed")
_KNOWN = {
    "record": {"type", "name", "namespace", "doc", "fields", "aliases"},
    "enum": {"type", "name", "namespace", "doc", "symbols", "default", "aliases"},
    "fixed": {"type", "name", "namespace", "doc", "size", "aliases"},
    "array": {"type", "items"},
    "map": {"type", "values"},
}
_FIELD_KNOWN = {"name", "type", "doc", "default", "order", "aliases"}
MISSING: Any = object()


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: Type
    doc: str | None
    default: Any
    order: str | None
    aliases: list[str]
    properties: dict[str, Any]


@dataclass(slots=True, eq=False)
class Type:
    """One type; a named one is a single object wherever it is used, so types may form a ring."""

    kind: str
    name: str = ""
    namespace: str | None = None
    doc: str | None = None
    fields: list[Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default: Any = MISSING
    size: int = 0
    inner: list[Type] = field(default_factory=list)  # items, values, or branches of a union
    aliases: list[str] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    error: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


def parse(text: str, references: Texts | None = None, *, check_defaults: bool = True) -> Type:
    """The type a schema describes. Raises InvalidSchemaError, with the path."""
    names: dict[str, Type] = {}
    for name, used in (references or {}).items():
        try:
            _Parser(names, check_defaults=False).parse(read_json(used, "Avro"), None, "")
        except InvalidSchemaError as error:
            raise InvalidSchemaError(
                f'the reference "{name}" cannot be used', detail=error.detail or error.message
            ) from error
    stripped = text.strip()
    value = stripped if stripped in PRIMITIVES else read_json(text, "Avro")
    try:
        return _Parser(names, check_defaults=check_defaults).parse(value, None, "")
    except RecursionError:
        raise InvalidSchemaError("the Avro schema is nested too deeply") from None


def canonical(root: Type, references: Texts | None = None, *, normal: bool = False) -> str:
    """The one text of a type. Types that come from references are named only."""
    defined: set[str] = set()
    for used in (references or {}).values():
        names: dict[str, Type] = {}
        _Parser(names, check_defaults=False).parse(read_json(used, "Avro"), None, "")
        defined.update(names)
    return write_json(_Writer(defined, normal).write(root, None))


class _Parser:
    def __init__(self, names: dict[str, Type], *, check_defaults: bool) -> None:
        self._names = names
        self._check_defaults = check_defaults

    def parse(self, value: Any, space: str | None, path: str) -> Type:
        if isinstance(value, str):
            return self._named(value, space, path)
        if isinstance(value, list):
            return self._union(value, space, path)
        if not isinstance(value, dict):
            raise _wrong(path, f"a type is a name, a list or an object, not {_shown(value)}")
        kind = value.get("type")
        if isinstance(kind, dict | list):
            # {"type": {"type": "array", …}}: some writers wrap once more than needed.
            return self.parse(kind, space, f"{path}/type")
        if not isinstance(kind, str):
            raise _wrong(path, 'it has no "type"')
        if kind in PRIMITIVES:
            return Type(kind, properties=_rest(value, {"type"}))
        if kind in _NAMED:
            return self._definition(kind, value, space, path)
        if kind in ("array", "map"):
            inside = "items" if kind == "array" else "values"
            if inside not in value:
                raise _wrong(path, f'the {kind} has no "{inside}"')
            made = Type(kind, properties=_rest(value, _KNOWN[kind]))
            made.inner = [self.parse(value[inside], space, f"{path}/{inside}")]
            return made
        return self._named(kind, space, path)

    def _named(self, name: str, space: str | None, path: str) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        found = None
        if "." not in name and space:
            found = self._names.get(f"{space}.{name}")
        found = found or self._names.get(name)
        if found is None:
            raise _wrong(path, f'the type "{name}" is not defined')
        return found

    def _union(self, value: list[Any], space: str | None, path: str) -> Type:
        branches = [self.parse(one, space, f"{path}/{number}") for number, one in enumerate(value)]
        seen: set[str] = set()
        for number, branch in enumerate(branches):
            if branch.kind == "union":
                raise _wrong(f"{path}/{number}", "a union directly in a union")
            name = branch.full_name or branch.kind
            if name in seen:
                raise _wrong(f"{path}/{number}", f"{name} is twice in the union")
            seen.add(name)
        return Type("union", inner=branches)

    def _definition(self, kind: str, value: dict[str, Any], space: str | None, path: str) -> Type:
        name, namespace = value.get("name"), value.get("namespace")
        if not isinstance(name, str):
            raise _wrong(path, f'the {kind} has no "name"')
        if namespace is not None and not isinstance(namespace, str):
            raise _wrong(path, '"namespace" is no text')
        if "." in name:
            namespace, _, name = name.rpartition(".")
        elif namespace is None:
            namespace = space
        _check_name(name, path)
        for part in (namespace or "").split("."):
            if part:
                _check_name(part, f"{path}/namespace")
        base = "record" if kind == "error" else kind
        made = Type(
            base,
            name,
            namespace or None,
            _text(value, "doc", path),
            aliases=_texts(value, "aliases", path),
            properties=_rest(value, _KNOWN[base]),
            error=kind == "error",
        )
        if made.full_name in self._names:
            raise _wrong(path, f'"{made.full_name}" is defined twice')
        if name in PRIMITIVES and not made.namespace:
            raise _wrong(path, f'"{name}" is the name of a primitive type')
        self._names[made.full_name] = made
        if base == "record":
            self._fields(made, value.get("fields"), path)
        elif base == "enum":
            self._symbols(made, value, path)
        else:
            size = value.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise _wrong(path, 'a fixed needs its "size"')
            made.size = size
        return made

    def _symbols(self, made: Type, value: dict[str, Any], path: str) -> None:
        symbols = value.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
            raise _wrong(path, 'an enum needs its "symbols"')
        for number, symbol in enumerate(symbols):
            _check_name(symbol, f"{path}/symbols/{number}")
        if len(set(symbols)) != len(symbols):
            raise _wrong(f"{path}/symbols", "a symbol is there twice")
        made.symbols = symbols
        if "default" in value:
            made.default = value["default"]
            if made.default not in symbols:
                raise _wrong(f"{path}/default", "the default is not among the symbols")

    def _fields(self, made: Type, fields: Any, path: str) -> None:
        if not isinstance(fields, list):
            raise _wrong(path, 'a record needs its "fields"')
        seen: set[str] = set()
        for number, one in enumerate(fields):
            here = f"{path}/fields/{number}"
            if not isinstance(one, dict):
                raise _wrong(here, f"a field is an object, not {_shown(one)}")
            name = one.get("name")
            if not isinstance(name, str):
                raise _wrong(here, 'the field has no "name"')
            _check_name(name, here)
            if name in seen:
                raise _wrong(here, f'"{name}" is there twice')
            seen.add(name)
            if "type" not in one:
                raise _wrong(here, f'the field "{name}" has no "type"')
            order = one.get("order")
            if order is not None and order not in ("ascending", "descending", "ignore"):
                raise _wrong(f"{here}/order", "ascending, descending or ignore")
            kind = self.parse(one["type"], made.namespace, f"{here}/type")
            default = one.get("default", MISSING)
            if self._check_defaults and default is not MISSING and not fits(kind, default):
                raise _wrong(
                    f"{here}/default",
                    f'the default of "{name}", {_shown(default)}, does not fit its type',
                )
            made.fields.append(
                Field(
                    name, kind, _text(one, "doc", here), default, order,
                    _texts(one, "aliases", here), _rest(one, _FIELD_KNOWN),
                )
            )  # fmt: skip


def fits(kind: Type, value: Any) -> bool:
    """Whether a JSON value may be the default of a field."""
    match kind.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return _whole(value) and -(2**31) <= value < 2**31
        case "long":
            return _whole(value) and -(2**63) <= value < 2**63
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed" | "enum":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list) and all(fits(kind.inner[0], one) for one in value)
        case "map":
            return isinstance(value, dict) and all(
                fits(kind.inner[0], one) for one in value.values()
            )
        case "union":
            return any(fits(one, value) for one in kind.inner)
        case _:
            return isinstance(value, dict) and all(
                fits(one.type, value[one.name]) if one.name in value else one.default is not MISSING
                for one in kind.fields
            )


class _Writer:
    def __init__(self, defined: set[str], normal: bool) -> None:
        self._defined = set(defined)
        self._normal = normal

    def write(self, kind: Type, space: str | None) -> Any:
        if kind.kind in PRIMITIVES:
            return (
                {"type": kind.kind, **self._rest(kind.properties)} if kind.properties else kind.kind
            )
        if kind.kind == "union":
            return [self.write(one, space) for one in kind.inner]
        if kind.kind in ("array", "map"):
            inside = "items" if kind.kind == "array" else "values"
            return {
                "type": kind.kind,
                inside: self.write(kind.inner[0], space),
                **self._rest(kind.properties),
            }
        if kind.full_name in self._defined:
            return kind.name if kind.namespace == space or not kind.namespace else kind.full_name
        self._defined.add(kind.full_name)
        made: dict[str, Any] = {"type": "error" if kind.error else kind.kind, "name": kind.name}
        if kind.namespace:
            if kind.namespace != space:
                made["namespace"] = kind.namespace
        elif space:
            made["namespace"] = ""
        if kind.doc is not None:
            made["doc"] = kind.doc
        match kind.kind:
            case "record":
                made["fields"] = [self._field(one, kind.namespace) for one in kind.fields]
            case "enum":
                made["symbols"] = kind.symbols
                if kind.default is not MISSING:
                    made["default"] = kind.default
            case _:
                made["size"] = kind.size
        made.update(self._rest(kind.properties))
        if kind.aliases:
            made["aliases"] = sorted(kind.aliases) if self._normal else kind.aliases
        return made

    def _field(self, one: Field, space: str | None) -> dict[str, Any]:
        made: dict[str, Any] = {"name": one.name, "type": self.write(one.type, space)}
        if one.doc is not None:
            made["doc"] = one.doc
        if one.default is not MISSING:
            made["default"] = one.default
        if one.order not in (None, "ascending"):
            made["order"] = one.order
        if one.aliases:
            made["aliases"] = sorted(one.aliases) if self._normal else one.aliases
        made.update(self._rest(one.properties))
        return made

    def _rest(self, properties: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted(properties.items())) if self._normal else properties


def _wrong(path: str, text: str) -> InvalidSchemaError:
    return InvalidSchemaError("the Avro schema is not valid", detail=f"{text} (at {path or '/'})")


def _shown(value: Any) -> str:
    text = write_json(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _check_name(name: str, path: str) -> None:
    plain = name.replace("_", "a")
    if not plain or not plain.isalnum() or not (plain[0].isalpha()):
        shown = name if len(name) <= 60 else f"{name[:57]}…"
        raise _wrong(
            path, f'"{shown}" is no name: letters, digits and _, not beginning with a digit'
        )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: dict[str, Any], name: str, path: str) -> str | None:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        raise _wrong(f"{path}/{name}", f'"{name}" is no text')
    return found


def _texts(value: dict[str, Any], name: str, path: str) -> list[str]:
    found = value.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise _wrong(f"{path}/{name}", f'"{name}" is no list of names')
    return found


def _rest(value: dict[str, Any], known: set[str]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if name not in known}
