"""Protobuf files, syntax proto2 and proto3: parsed to their elements, written in one form.

The form is one declaration a line, two spaces deep, options and reserved numbers kept, comments
not. Two texts of one form are one schema. `normal` sorts what has no order of its own: imports,
options, fields by number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tailrace.schemas.errors import InvalidSchemaError
from tailrace.schemas.known_imports import KNOWN
from tailrace.schemas.model import Texts
from tailrace.schemas.reading import Steps

_SCALARS = (
    "double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool "
    "string bytes"
)
SCALARS = frozenset(_SCALARS.split())
_MAP_KEYS = SCALARS - {"double", "float", "bytes"}
MAX_TAG = 2**29 - 1
NESTING_LIMIT = 64
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>(?:0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)[fF]?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>[{}()\[\]<>=;,.:+\-/])""",
    re.VERBOSE | re.DOTALL,
)

Options = list[tuple[str, str]]


@dataclass(slots=True, eq=False)
class Field:
    name: str
    tag: int
    type: str  # as it was written; `map` types have `key` too
    label: str = ""  # optional, required, repeated
    key: str | None = None
    options: Options = field(default_factory=list)


@dataclass(slots=True, eq=False)
class OneOf:
    name: str
    fields: list[Field] = field(default_factory=list)
    options: Options = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Constant:
    name: str
    tag: int
    options: Options = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Enum:
    name: str
    constants: list[Constant] = field(default_factory=list)
    options: Options = field(default_factory=list)
    reserved: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Message:
    name: str
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    options: Options = field(default_factory=list)
    reserved: list[str] = field(default_factory=list)
    extensions: list[str] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)

    def every_field(self) -> Iterator[Field]:
        yield from self.fields
        for one in self.oneofs:
            yield from one.fields


@dataclass(slots=True, eq=False)
class Extend:
    name: str
    fields: list[Field]


@dataclass(slots=True, eq=False)
class Call:
    name: str
    asks: str
    answers: str
    asks_stream: bool
    answers_stream: bool
    options: Options = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Service:
    name: str
    calls: list[Call] = field(default_factory=list)
    options: Options = field(default_factory=list)


@dataclass(slots=True, eq=False)
class File:
    syntax: str = "proto2"
    package: str = ""
    imports: list[tuple[str, str]] = field(default_factory=list)  # "", public or weak; the path
    options: Options = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._wrong_at(text, at, f"{text[at]!r} means nothing here")
            if found.lastgroup is not None:
                self._tokens.append((found.lastgroup, found[0], at))
            at = found.end()
        self._text = text
        self._at = 0

    # Words -------------------------------------------------------------------------

    def _wrong_at(self, text: str, at: int, what: str) -> InvalidSchemaError:
        line = text.count("\n", 0, at) + 1
        column = at - text.rfind("\n", 0, at)
        return InvalidSchemaError(
            "the Protobuf schema is not valid", detail=f"{what} (line {line}, column {column})"
        )

    def wrong(self, what: str) -> InvalidSchemaError:
        at = self._tokens[self._at][2] if self._at < len(self._tokens) else len(self._text)
        return self._wrong_at(self._text, at, what)

    @property
    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    def peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def next(self) -> str:
        if self.ended:
            raise self.wrong("the text ends too soon")
        self._at += 1
        return self._tokens[self._at - 1][1]

    def accept(self, sign: str) -> bool:
        if self.peek() == sign:
            self._at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.wrong(f"{sign!r} is missing before {self.peek()[:40] or 'the end'!r}")

    def word(self) -> str:
        if self.kind() != "word":
            raise self.wrong(f"a name is missing before {self.peek()[:40] or 'the end'!r}")
        return self.next()

    def name(self) -> str:
        """A name with dots, perhaps one in front."""
        parts = "." if self.accept(".") else ""
        parts += self.word()
        while self.accept("."):
            parts += "." + self.word()
        return parts

    def string(self) -> str:
        if self.kind() != "string":
            raise self.wrong("a text in quotes is missing")
        parts = ""
        while self.kind() == "string":
            quoted = self.next()
            inner = quoted[1:-1]
            parts += inner.replace('"', '\\"') if quoted[0] == "'" else inner
        return parts

    def kind(self) -> str:
        """What comes next: a string, a number, a word, a sign; empty at the end."""
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def whole(self) -> int:
        sign = -1 if self.accept("-") else 1
        if self.kind() != "number":
            raise self.wrong("a whole number is missing")
        text = self.peek()
        try:
            octal = len(text) > 1 and text.startswith("0") and text.isdigit()
            number = int(text, 8) if octal else int(text, 0)
        except ValueError:
            raise self.wrong(f"{text[:40]} is no whole number") from None
        self.next()
        return sign * number

    # Elements ------------------------------------------------------------------------

    def file(self) -> File:
        made = File()
        while not self.ended:
            match self.peek():
                case ";":
                    self.next()
                case "syntax":
                    self.next()
                    self.expect("=")
                    made.syntax = self.string()
                    if made.syntax not in ("proto2", "proto3"):
                        raise self.wrong(
                            f"the syntax is proto2 or proto3, not {made.syntax[:40]!r}"
                        )
                    self.expect(";")
                case "package":
                    self.next()
                    made.package = self.name()
                    self.expect(";")
                case "import":
                    self.next()
                    kind = self.next() if self.peek() in ("public", "weak") else ""
                    made.imports.append((kind, self.string()))
                    self.expect(";")
                case "option":
                    made.options.append(self.option())
                case "message":
                    self.next()
                    made.types.append(self.message(made.syntax, 1))
                case "enum":
                    self.next()
                    made.types.append(self.enum(made.syntax))
                case "extend":
                    made.extends.append(self.extend(made.syntax, None, 1))
                case "service":
                    self.next()
                    made.services.append(self.service())
                case other:
                    raise self.wrong(f"{other[:40]!r} begins no declaration")
        return made

    def option(self) -> tuple[str, str]:
        self.expect("option")
        name = self.option_name()
        self.expect("=")
        value = self.value()
        self.expect(";")
        return name, value

    def option_name(self) -> str:
        name = ""
        while True:
            if self.accept("("):
                name += f"({self.name()})"
                self.expect(")")
            else:
                name += self.word()
            if not self.accept("."):
                return name
            name += "."

    def value(self, depth: int = 0) -> str:
        """The value of an option, in one spelling."""
        if depth > NESTING_LIMIT:
            raise self.wrong("an option is nested too deeply")
        if self.ended:
            raise self.wrong("the text ends too soon")
        kind, text, _ = self._tokens[self._at]
        if kind == "string":
            return f'"{self.string()}"'
        if text in ("+", "-"):
            self.next()
            return ("-" if text == "-" else "") + self.next()
        if text == "{":
            self.next()
            parts = []
            while not self.accept("}"):
                if self.accept("["):
                    name = self.name()
                    while self.accept("/"):
                        name += "/" + self.name()
                    name = f"[{name}]"
                    self.expect("]")
                else:
                    name = self.word()
                inner = self.accept(":")
                if not inner and self.peek() not in ("{", "["):
                    raise self.wrong("':' is missing")
                parts.append(f"{name}: {self.value(depth + 1)}")
                _ = self.accept(",") or self.accept(";")
            return "{ " + ", ".join(parts) + " }" if parts else "{}"
        if text == "[":
            self.next()
            values = []
            while not self.accept("]"):
                values.append(self.value(depth + 1))
                if self.peek() != "]":
                    self.expect(",")
            return "[" + ", ".join(values) + "]"
        if kind == "word":
            return self.name()
        if kind == "number":
            return self.next()
        raise self.wrong(f"{text!r} is no value")

    def options(self) -> Options:
        found: Options = []
        if self.accept("["):
            while True:
                name = self.option_name()
                self.expect("=")
                found.append((name, self.value()))
                if self.accept("]"):
                    return found
                self.expect(",")
        return found

    def message(self, syntax: str, depth: int, name: str | None = None) -> Message:
        if depth > NESTING_LIMIT:
            raise self.wrong(f"messages are nested more than {NESTING_LIMIT} deep")
        made = Message(self.word() if name is None else name)
        self.expect("{")
        while not self.accept("}"):
            match self.peek():
                case ";":
                    self.next()
                case "option":
                    made.options.append(self.option())
                case "message" if self._declares():
                    self.next()
                    made.types.append(self.message(syntax, depth + 1))
                case "enum" if self._declares():
                    self.next()
                    made.types.append(self.enum(syntax))
                case "oneof" if self._declares():
                    self.next()
                    made.oneofs.append(self.oneof(syntax, made, depth))
                case "reserved":
                    self.next()
                    made.reserved.append(self.ranges(names=True))
                case "extensions":
                    self.next()
                    made.extensions.append(self.ranges(names=False))
                case "extend":
                    made.extends.append(self.extend(syntax, made, depth))
                case _:
                    made.fields.append(self.field(syntax, made, depth))
        return made

    def _declares(self) -> bool:
        """Whether `message`, `enum` or `oneof` is the keyword here, not the type of a field."""
        after = self._tokens[self._at + 2 : self._at + 3]
        return bool(after) and after[0][1] == "{"

    def field(
        self, syntax: str, owner: Message | None, depth: int, *, labels: bool = True
    ) -> Field:
        label = ""
        if labels and self.peek() in ("optional", "required", "repeated"):
            label = self.next()
        if label == "required" and syntax == "proto3":
            raise self.wrong("proto3 has no required fields")
        if self.peek() == "group" and owner is not None:
            return self.group(syntax, owner, label, depth)
        if self.peek() == "map" and self._tokens[self._at + 1 : self._at + 2][0][1:2] == ("<",):
            if label:
                raise self.wrong("a map has no label")
            self.next()
            self.expect("<")
            key = self.word()
            if key not in _MAP_KEYS:
                raise self.wrong(f"{key[:40]} cannot be the key of a map")
            self.expect(",")
            kind = self.name()
            self.expect(">")
        else:
            key, kind = None, self.name()
        if labels and not label and key is None and syntax == "proto2":
            raise self.wrong("a field of proto2 needs optional, required or repeated")
        name = self.word()
        self.expect("=")
        made = Field(name, self.tag(), kind, label, key, self.options())
        self.expect(";")
        return made

    def tag(self) -> int:
        number = self.whole()
        if not 1 <= number <= MAX_TAG or 19000 <= number <= 19999:
            raise self.wrong(f"{number} cannot be the number of a field")
        return number

    def group(self, syntax: str, owner: Message, label: str, depth: int) -> Field:
        if syntax == "proto3":
            raise self.wrong("proto3 has no groups")
        self.next()
        name = self.word()
        self.expect("=")
        made = Field(name.lower(), self.tag(), name, label, None, self.options())
        made.options.append(("group", "true"))
        owner.types.append(self.message(syntax, depth + 1, name))
        return made

    def oneof(self, syntax: str, owner: Message, depth: int) -> OneOf:
        made = OneOf(self.word())
        self.expect("{")
        while not self.accept("}"):
            if self.accept(";"):
                continue
            if self.peek() == "option":
                made.options.append(self.option())
            else:
                made.fields.append(self.field(syntax, owner, depth, labels=False))
        return made

    def enum(self, syntax: str) -> Enum:
        made = Enum(self.word())
        self.expect("{")
        while not self.accept("}"):
            match self.peek():
                case ";":
                    self.next()
                case "option":
                    made.options.append(self.option())
                case "reserved":
                    self.next()
                    made.reserved.append(self.ranges(names=True))
                case _:
                    name = self.word()
                    self.expect("=")
                    made.constants.append(Constant(name, self.whole(), self.options()))
                    self.expect(";")
        if syntax == "proto3" and made.constants and made.constants[0].tag != 0:
            raise self.wrong(f'the first value of the enum "{made.name}" must be 0 in proto3')
        return made

    def ranges(self, *, names: bool) -> str:
        parts: list[str] = []
        while True:
            if names and self.kind() == "string":
                parts.append(f'"{self.string()}"')
            else:
                first = str(self.whole())
                if self.accept("to"):
                    first += " to " + (self.next() if self.peek() == "max" else str(self.whole()))
                parts.append(first)
            if not self.accept(","):
                break
        self.options()
        self.expect(";")
        return ", ".join(parts)

    def extend(self, syntax: str, owner: Message | None, depth: int) -> Extend:
        self.expect("extend")
        made = Extend(self.name(), [])
        self.expect("{")
        while not self.accept("}"):
            if not self.accept(";"):
                made.fields.append(self.field(syntax, owner, depth))
        return made

    def service(self) -> Service:
        made = Service(self.word())
        self.expect("{")
        while not self.accept("}"):
            if self.accept(";"):
                continue
            if self.peek() == "option":
                made.options.append(self.option())
                continue
            self.expect("rpc")
            name = self.word()
            asks, asks_stream = self.side()
            self.expect("returns")
            answers, answers_stream = self.side()
            call = Call(name, asks, answers, asks_stream, answers_stream)
            if self.accept("{"):
                while not self.accept("}"):
                    if not self.accept(";"):
                        call.options.append(self.option())
            else:
                self.expect(";")
            made.calls.append(call)
        return made

    def side(self) -> tuple[str, bool]:
        self.expect("(")
        stream = self.accept("stream")
        name = self.name()
        self.expect(")")
        return name, stream


def parse_file(text: str) -> File:
    """The elements of one file. Raises InvalidSchemaError, with line and column."""
    return _Parser(text).file()


# Types of several files -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared:
    """A type where it is declared: in this schema, in a reference, or in a well-known file."""

    element: Message | Enum | None  # None: a well-known one, of which only the name matters
    package: str
    file: str  # "" for the schema itself
    is_enum: bool


class Types:
    """Every type that a schema may name, by its full name."""

    def __init__(self, file: File, references: Texts | None = None) -> None:
        self.file = file
        self.by_name: dict[str, Declared] = {}
        self._steps = Steps()
        self._add(file, "")
        others = {name: parse_file(text) for name, text in (references or {}).items()}
        for name, other in others.items():
            self._add(other, name)
        for _, path in [one for each in (file, *others.values()) for one in each.imports]:
            if path in others:
                continue
            known = KNOWN.get(path)
            if known is None:
                raise InvalidSchemaError(
                    "the Protobuf schema is not valid",
                    detail=f'the import "{path[:200]}" is no reference of this schema',
                    hint='give it: "references": [{"name": "' + path[:200] + '", …}]',
                )
            package, kinds = known
            for kind, is_enum in kinds.items():
                self.by_name[f"{package}.{kind}"] = Declared(None, package, path, is_enum)
        self._check()

    def _add(self, file: File, name: str) -> None:
        waiting: list[tuple[Message | Enum, str]] = [
            (one, f"{file.package}." if file.package else "") for one in file.types
        ]
        while waiting:
            one, prefix = waiting.pop()
            full = prefix + one.name
            if full in self.by_name:
                raise _wrong(f'"{full}" is declared twice')
            self.by_name[full] = Declared(one, file.package, name, isinstance(one, Enum))
            if isinstance(one, Message):
                waiting.extend((each, f"{full}.") for each in one.types)

    def resolve(self, name: str, scope: str) -> str | None:
        """The full name of a type that is named in a scope; None if there is none."""
        self._steps.take()
        if name.startswith("."):
            return name[1:] if name[1:] in self.by_name else None
        while True:
            full = f"{scope}.{name}" if scope else name
            if full in self.by_name:
                return full
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def _check(self) -> None:
        for full, declared in list(self.by_name.items()):
            if declared.file or not isinstance(declared.element, Message):
                continue
            message = declared.element
            tags: dict[int, str] = {}
            names: set[str] = set()
            for one in message.every_field():
                if one.tag in tags:
                    raise _wrong(f'"{full}" uses the number {one.tag} twice')
                if one.name in names:
                    raise _wrong(f'"{full}" has two fields "{one.name}"')
                tags[one.tag] = one.name
                names.add(one.name)
                if one.type not in SCALARS and self.resolve(one.type, full) is None:
                    raise _wrong(
                        f'the type "{one.type[:200]}" of "{full}.{one.name}" is not declared'
                    )
            _check_reserved(message, full)


def _check_reserved(message: Message, full: str) -> None:
    names: set[str] = set()
    ranges: list[tuple[int, int]] = []
    for line in message.reserved:
        for part in line.split(", "):
            if part.startswith('"'):
                names.add(part.strip('"'))
            else:
                first, _, last = part.partition(" to ")
                ranges.append((int(first), MAX_TAG if last == "max" else int(last or first)))
    for one in message.every_field():
        if one.name in names or any(first <= one.tag <= last for first, last in ranges):
            raise _wrong(f'"{full}.{one.name}" uses a reserved name or number')


def _wrong(what: str) -> InvalidSchemaError:
    return InvalidSchemaError("the Protobuf schema is not valid", detail=what)


# Writing ---------------------------------------------------------------------------


def canonical(file: File, *, normal: bool = False) -> str:
    """The one text of a file."""
    lines = [f'syntax = "{file.syntax}";']
    if file.package:
        lines.append(f"package {file.package};")
    imports = sorted(file.imports, key=lambda one: one[1]) if normal else file.imports
    if imports:
        lines.append("")
        lines += [f'import {kind + " " if kind else ""}"{path}";' for kind, path in imports]
    if file.options:
        lines.append("")
        lines += _option_lines(file.options, "", normal)
    for one in file.types:
        lines += ["", *_type_lines(one, "", normal)]
    for extend in file.extends:
        lines += ["", *_extend_lines(extend, "", normal)]
    for service in file.services:
        lines += ["", *_service_lines(service, normal)]
    return "\n".join(lines) + "\n"


def normal(types: Types) -> str:
    """The one text of a file with everything sorted and every type by its full name."""
    file = parse_file(canonical(types.file))
    waiting = [(one, file.package) for one in file.types if isinstance(one, Message)]
    while waiting:
        message, scope = waiting.pop()
        scope = f"{scope}.{message.name}" if scope else message.name
        for one in message.every_field():
            full = types.resolve(one.type, scope)
            if full is not None and ("group", "true") not in one.options:
                one.type = f".{full}"
        waiting += [(one, scope) for one in message.types if isinstance(one, Message)]
    for service in file.services:
        for call in service.calls:
            asks = types.resolve(call.asks, file.package)
            answers = types.resolve(call.answers, file.package)
            call.asks = call.asks if asks is None else f".{asks}"
            call.answers = call.answers if answers is None else f".{answers}"
    return canonical(file, normal=True)


def _sorted(options: Options, normal: bool) -> Options:
    return sorted(options) if normal else options


def _option_lines(options: Options, pad: str, normal: bool) -> list[str]:
    return [f"{pad}option {name} = {value};" for name, value in _sorted(options, normal)]


def _bracket(options: Options, normal: bool) -> str:
    shown = [f"{name} = {value}" for name, value in _sorted(options, normal) if name != "group"]
    return f" [{', '.join(shown)}]" if shown else ""


def _type_lines(one: Message | Enum, pad: str, normal: bool) -> list[str]:
    inner = pad + "  "
    if isinstance(one, Enum):
        constants = sorted(one.constants, key=lambda c: c.tag) if normal else one.constants
        return [
            f"{pad}enum {one.name} {{",
            *_option_lines(one.options, inner, normal),
            *(f"{inner}reserved {each};" for each in one.reserved),
            *(f"{inner}{c.name} = {c.tag}{_bracket(c.options, normal)};" for c in constants),
            f"{pad}}}",
        ]
    return [f"{pad}message {one.name} {{", *_body(one, inner, normal), f"{pad}}}"]


def _body(one: Message, inner: str, normal: bool) -> list[str]:
    lines = _option_lines(one.options, inner, normal)
    lines += [f"{inner}reserved {each};" for each in one.reserved]
    lines += [f"{inner}extensions {each};" for each in one.extensions]
    fields = sorted(one.fields, key=lambda f: f.tag) if normal else one.fields
    groups = {each.type for each in one.every_field() if ("group", "true") in each.options}
    bodies = {each.name: each for each in one.types if isinstance(each, Message)}
    for each in fields:
        lines += _field_lines(each, inner, normal, bodies.get(each.type))
    for oneof in one.oneofs:
        lines.append(f"{inner}oneof {oneof.name} {{")
        lines += _option_lines(oneof.options, inner + "  ", normal)
        for each in sorted(oneof.fields, key=lambda f: f.tag) if normal else oneof.fields:
            lines += _field_lines(each, inner + "  ", normal, bodies.get(each.type))
        lines.append(f"{inner}}}")
    for nested in one.types:
        if nested.name not in groups:
            lines += ["", *_type_lines(nested, inner, normal)]
    for extend in one.extends:
        lines += _extend_lines(extend, inner, normal)
    return lines


def _field_lines(one: Field, pad: str, normal: bool, body: Message | None) -> list[str]:
    label = f"{one.label} " if one.label else ""
    if ("group", "true") in one.options and body is not None:
        head = f"{pad}{label}group {one.type} = {one.tag}{_bracket(one.options, normal)} {{"
        return [head, *_body(body, pad + "  ", normal), f"{pad}}}"]
    kind = f"map<{one.key}, {one.type}>" if one.key else one.type
    return [f"{pad}{label}{kind} {one.name} = {one.tag}{_bracket(one.options, normal)};"]


def _extend_lines(one: Extend, pad: str, normal: bool) -> list[str]:
    inner = [line for each in one.fields for line in _field_lines(each, pad + "  ", normal, None)]
    return [f"{pad}extend {one.name} {{", *inner, f"{pad}}}"]


def _service_lines(one: Service, normal: bool) -> list[str]:
    lines = [f"service {one.name} {{", *_option_lines(one.options, "  ", normal)]
    for call in one.calls:
        asks = f"{'stream ' if call.asks_stream else ''}{call.asks}"
        answers = f"{'stream ' if call.answers_stream else ''}{call.answers}"
        head = f"  rpc {call.name} ({asks}) returns ({answers})"
        if call.options:
            lines += [f"{head} {{", *_option_lines(call.options, "    ", normal), "  }"]
        else:
            lines.append(f"{head};")
    return [*lines, "}"]
