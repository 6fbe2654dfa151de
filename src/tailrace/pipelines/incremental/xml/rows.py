"""Structs from and to XML texts, and the types a text seems to have, as Spark's XML source."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.casts import parse_timestamp
from tailrace.pipelines.incremental.library import csv
from tailrace.pipelines.incremental.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    is_float,
)
from tailrace.pipelines.incremental.xml.tree import Node, XmlError, read

OPTIONS = {
    "rowtag": "ROW", "attributeprefix": "_", "valuetag": "_VALUE", "nullvalue": None,
    "excludeattribute": "false", "arrayelementname": "item", "dateformat": None,
    "timestampformat": None, "timestampntzformat": None, "mode": "PERMISSIVE",
    "roottag": None,  # of files, says Spark
}  # fmt: skip
_NAME = re.compile(r"[^\W\d][\w.\-·]*(?::[^\W\d][\w.\-·]*)?")
_LOCAL = re.compile(r".*[0-9]:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]*)?)?")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TEXT = {38: "&amp;", 60: "&lt;", 13: "&#xd;"}
_ATTRIBUTE = {**_TEXT, 34: "&quot;", 9: "&#x9;", 10: "&#xa;"}


@dataclass(frozen=True, slots=True)
class Form:
    """The options of a call that are known here."""

    row: str
    prefix: str
    value: str
    null: str | None
    bare: bool  # without attributes
    item: str
    scalars: csv.Form


@lru_cache(64)
def read_form(options: str) -> Form:
    """The options of a call, a JSON object; ValueError names one that is not known."""
    known: dict[str, Any] = dict(OPTIONS)
    for name, value in json.loads(options).items():
        if name.lower() not in OPTIONS:
            raise ValueError(f"option {name!r} is not known here")
        known[name.lower()] = value
    if known["mode"].upper() != "PERMISSIVE":
        raise ValueError("the only mode here is PERMISSIVE")
    scalars = csv.Form(
        date=known["dateformat"],
        timestamp=known["timestampformat"],
        timestamp_ntz=known["timestampntzformat"],
    )
    return Form(
        known["rowtag"], known["attributeprefix"], known["valuetag"], known["nullvalue"],
        known["excludeattribute"].lower() == "true", known["arrayelementname"], scalars,
    )  # fmt: skip


# from_xml -----------------------------------------------------------------------------------------


def readable(kind: pa.DataType, *, inside: bool = False) -> str:
    """Why values of a type cannot be read; empty when they can."""
    if pa.types.is_struct(kind):
        return next((why for f in kind if (why := readable(f.type, inside=True))), "")
    if pa.types.is_map(kind):
        if kind.key_type != STRING or pa.types.is_nested(kind.item_type):
            return "a map has texts for keys and plain values"
        return readable(kind.item_type)
    if pa.types.is_list(kind):
        if not inside or pa.types.is_list(kind.value_type):
            return "an array stands in a struct, and not in an array"
        return readable(kind.value_type)
    if kind == VARIANT:
        return "from_xml gives no VARIANT here"
    return ""


class _Unfit(ValueError):
    """A value that does not fit its type: nothing behind it is read."""


def row_of(text: str, kind: pa.DataType, form: Form) -> dict[str, Any]:
    """The struct of a text: what stands before the first value that does not fit; NULLs for a
    text that is no XML."""
    row: dict[str, Any] = {field.name: None for field in kind}
    try:
        root = read(text, leading=True).root
    except XmlError:
        return row
    element = next(one for one in root.children if one.kind == "element")
    try:
        _fill(row, element, kind, form)
    except _Unfit:
        pass
    return row


def _fill(row: dict[str, Any], element: Node, kind: pa.DataType, form: Form) -> None:
    """Set the fields of a struct as the parts of its element come."""
    fields = {field.name.lower(): field for field in kind}
    for attribute in () if form.bare else element.attributes:
        field = fields.get((form.prefix + attribute.name).lower())
        if field is not None:
            row[field.name] = _plain(attribute.value, field.type, form)
    for part in element.children:
        name = form.value if part.kind == "text" else part.name
        field = fields.get(name.lower())
        if field is None or part.kind not in ("text", "element"):
            continue
        if part.kind == "text" and not part.value.strip():
            continue
        inner = field.type.value_type if pa.types.is_list(field.type) else field.type
        made = _plain(part.value, inner, form) if part.kind == "text" else _typed(part, inner, form)
        if pa.types.is_list(field.type):
            row[field.name] = [*(row[field.name] or ()), made]
        else:
            row[field.name] = made


def _typed(element: Node, kind: pa.DataType, form: Form) -> Any:
    if pa.types.is_struct(kind):
        row: dict[str, Any] = {field.name: None for field in kind}
        _fill(row, element, kind, form)
        return row
    children = [one for one in element.children if one.kind == "element"]
    if pa.types.is_map(kind):
        pairs: dict[str, Any] = {}
        for attribute in () if form.bare else element.attributes:
            pairs[form.prefix + attribute.name] = _plain(attribute.value, kind.item_type, form)
        for child in children:
            pairs[child.name] = _typed(child, kind.item_type, form)
        return list(pairs.items()) if pairs else None
    if children:
        if kind != STRING:
            raise _Unfit
        return "".join(map(_markup, element.children)).strip()
    texts = [one.value for one in element.children if one.kind == "text"]
    if len(texts) > 1 and kind != STRING:
        raise _Unfit
    return _plain("".join(texts), kind, form)


def _markup(node: Node) -> str:
    """A node as it is written."""
    if node.kind != "element":
        return node.value.translate(_TEXT) if node.kind == "text" else ""
    attributes = "".join(f' {a.name}="{a.value.translate(_ATTRIBUTE)}"' for a in node.attributes)
    return f"<{node.name}{attributes}>{''.join(map(_markup, node.children))}</{node.name}>"


def _plain(text: str, kind: pa.DataType, form: Form) -> Any:
    """A text in a plain type; _Unfit when it has no such value."""
    text = text.strip()
    if text == form.null or (not text and kind != STRING):
        return None
    try:
        if kind == BOOLEAN:
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if kind == BINARY:
            raise _Unfit
        if is_float(kind) and re.fullmatch("[+-]?inf", text.lower()):
            raise _Unfit
        if kind == DATE and form.scalars.date is None and not _ISO_DATE.fullmatch(text):
            raise _Unfit
        zoned = ":" in text and not _LOCAL.fullmatch(text)
        if kind == TIMESTAMP_NTZ and form.scalars.timestamp_ntz is None and zoned:
            raise _Unfit
        return csv.reader(kind, form.scalars)(text)
    except (ValueError, OverflowError, KeyError, EvaluationError) as error:
        raise _Unfit from error


# to_xml -------------------------------------------------------------------------------------------


def unwritable(kind: pa.DataType, form: Form, *, name: str = "ROW") -> str:
    """Why values of a type cannot be written; empty when they can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name of XML"
    if kind == VARIANT:
        return "to_xml takes no VARIANT here"
    if pa.types.is_struct(kind):
        for field in kind:
            marked = bool(form.prefix) and field.name.startswith(form.prefix)
            if (marked or field.name == form.value) and pa.types.is_nested(field.type):
                return f"{field.name!r} is an attribute or a text, which is plain"
            bare = field.name.removeprefix(form.prefix) if form.prefix else field.name
            if why := unwritable(field.type, form, name=bare or field.name):
                return why
    if pa.types.is_map(kind):
        return "" if kind.key_type == STRING else "a map with keys that are no texts"
    if pa.types.is_list(kind):
        return unwritable(kind.value_type, form)
    return ""


def written(row: dict[str, Any], kind: pa.DataType, form: Form) -> str:
    """A struct as XML, indented by four."""
    return "\n".join(_element(form.row, row, kind, form, ""))


def _element(name: str, value: Any, kind: pa.DataType, form: Form, indent: str) -> list[str]:
    """The lines of an element."""
    if not _NAME.fullmatch(name):
        raise EvaluationError(f"{name!r} is no name of XML")
    if value is None:
        return [] if form.null is None else [_line(name, "", form.null.translate(_TEXT), indent)]
    if pa.types.is_struct(kind):
        parts = [(field.name, value[field.name], field.type) for field in kind]
    elif pa.types.is_map(kind):
        parts = [(key, part, kind.item_type) for key, part in value]
    elif pa.types.is_list(kind):
        parts = [(form.item, part, kind.value_type) for part in value]
    else:
        text = csv.shown(value, kind, form.scalars).translate(_TEXT)
        return [_line(name, "", text, indent)]
    attributes, text, lines = "", "", list[str]()
    holds_text = False
    for key, part, inner in parts:
        if key == form.value:
            shown = None if part is None else csv.shown(part, inner, form.scalars)
            if shown is not None and lines:  # behind what stands there
                lines[-1] += shown.translate(_TEXT)
            elif shown is not None:
                text, holds_text = shown.translate(_TEXT), True
        elif form.prefix and key.startswith(form.prefix):
            shown = form.null if part is None else csv.shown(part, inner, form.scalars)
            if shown is not None:
                attributes += f' {key[len(form.prefix) :]}="{shown.translate(_ATTRIBUTE)}"'
        elif pa.types.is_list(inner) and not pa.types.is_list(kind):
            for one in part or ():
                lines += _element(key, one, inner.value_type, form, indent + "    ")
        else:
            lines += _element(key, part, inner, form, indent + "    ")
    if holds_text and not lines:
        return [_line(name, attributes, text, indent)]
    if not lines:
        return [f"{indent}<{name}{attributes}/>"]
    return [f"{indent}<{name}{attributes}>{text}", *lines, f"{indent}</{name}>"]


def _line(name: str, attributes: str, text: str, indent: str) -> str:
    return f"{indent}<{name}{attributes}>{text}</{name}>"


# schema_of_xml ------------------------------------------------------------------------------------


def schema_of(text: str, form: Form) -> str:
    """The type a text seems to have, in Spark's words."""
    try:
        root = read(text, leading=True).root
    except XmlError:
        return "STRUCT<_corrupt_record: STRING>"
    element = next(one for one in root.children if one.kind == "element")
    found = _guessed(element, form)
    if not isinstance(found, dict):
        found = {form.value: found} if found is not None else {}
    return _words(found)


def _guessed(element: Node, form: Form) -> Any:
    """A name, a list of one (an array), a dict (a struct), or None for nothing."""
    fields: dict[str, Any] = {}
    for attribute in () if form.bare else element.attributes:
        _add(fields, form.prefix + attribute.name, _scalar(attribute.value, form))
    nested = bool(fields)
    for part in element.children:
        if part.kind == "element":
            nested = True
            _add(fields, part.name, _guessed(part, form))
        elif part.kind == "text" and part.value.strip():
            _add(fields, form.value, _scalar(part.value, form))
    if nested:
        return fields
    return fields.get(form.value)


def _add(fields: dict[str, Any], name: str, kind: Any) -> None:
    same = next((known for known in fields if known.lower() == name.lower()), None)
    if same is None:
        fields[name] = kind
        return
    before = fields[same]
    inner = before[0] if isinstance(before, list) else before
    fields[same] = [_both(inner, kind)]


def _both(one: Any, other: Any) -> Any:
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return {n: _both(one.get(n), other.get(n)) for n in {**one, **other}}
    for left, right in ((one, other), (other, one)):
        if isinstance(left, dict) and isinstance(right, str) and "_VALUE" in left:
            return {**left, "_VALUE": _both(left["_VALUE"], right)}
    pair = {kind for kind in (one, other) if isinstance(kind, str)}
    if pair == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    return "TIMESTAMP" if pair == {"DATE", "TIMESTAMP"} else "STRING"


def _scalar(text: str, form: Form) -> str | None:
    text = text.strip()
    if not text or text == form.null:
        return None
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return "BIGINT" if -(1 << 63) <= int(text) < 1 << 63 else "DOUBLE"
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return "DOUBLE"
    if text.lower() in ("true", "false"):
        return "BOOLEAN"
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", text):
        try:
            datetime.date(*map(int, text.split("-")))
        except ValueError:
            return "STRING"
        return "DATE"
    if re.fullmatch(r"[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2})?", text):
        return "TIMESTAMP"  # of today, says Spark
    try:
        parse_timestamp(text)
    except (ValueError, OverflowError):
        return "STRING"
    return "TIMESTAMP"


def _words(kind: Any) -> str:
    if isinstance(kind, dict):
        inner = (f"{_quoted(name)}: {_words(kind[name])}" for name in sorted(kind))
        return f"STRUCT<{', '.join(inner)}>"
    if isinstance(kind, list):
        return f"ARRAY<{_words(kind[0])}>"
    return str(kind or "STRING")


def _quoted(name: str) -> str:
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    return "`" + name.replace("`", "``") + "`"
