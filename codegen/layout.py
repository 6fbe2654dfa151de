"""Source text of the codecs of one struct in one version.

A codec is one flat function: structs inside arrays become nested loops, runs of
fixed-width fields one `unpack_from`, so that a message costs as few Python calls as
its shape allows. Versions of equal layout come out as equal text and share a function.

Names in the generated text: `b` buffer, `p` position, `end` its length, `out` the
bytearray written to, `n`, `q`, `s` scratch, `left` the elements that all arrays together may
still have: what strangers send is bounded by that, not only by its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from definitions import FIXED, Field, Message, Struct


def literal(field: Field, message: Message) -> str:
    """The default value of a field, as an expression."""
    if field.default is None:
        return "None"
    if field.array:
        return "[]"
    if field.kind in message.structs:
        return f"{field.kind}()"
    return repr(field.default)


def symbol(code: str) -> str:
    """A struct format as part of a name."""
    return code.replace("?", "t")


def shape(fields: list[Field]) -> tuple[str, int]:
    """The struct format and the width of a run of fixed fields."""
    parts = [FIXED[field.kind] for field in fields]
    return "".join(part[0] for part in parts), sum(part[1] for part in parts)


class Source:
    """Lines of one function, for one message in one version."""

    def __init__(self, message: Message, version: int, formats: set[str]) -> None:
        self.message = message
        self.version = version
        self.flexible = version in message.flexible
        self.formats = formats
        self.lines: list[str] = []
        self.depth = 1
        self.serial = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self.depth += 1
        yield
        self.depth -= 1

    def number(self) -> int:
        self.serial += 1
        return self.serial

    def carried(self, struct: Struct) -> tuple[list[Field], list[Field]]:
        """Fields of the struct in this version: in order, and tagged."""
        plain, tagged = [], []
        for field in struct.fields:
            if self.version in field.versions:
                if self.flexible and self.version in field.tagged:
                    tagged.append(field)
                else:
                    plain.append(field)
        return plain, sorted(tagged, key=lambda field: field.tag or 0)

    def struct_of(self, field: Field) -> Struct | None:
        return self.message.structs.get(field.kind)

    def nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def smallest(self, field: Field, *, element: bool = False) -> int:
        """The fewest bytes a field, or one element of its array, can take."""
        if field.array and not element:
            return 1 if self.flexible else 4
        if field.kind in FIXED:
            return FIXED[field.kind][1]
        struct = self.struct_of(field)
        if struct is not None:
            if self.nullable(field) and not element:
                return 1
            plain, _ = self.carried(struct)
            return sum(self.smallest(each) for each in plain) + (1 if self.flexible else 0)
        if self.flexible:
            return 1
        return 2 if field.kind == "string" else 4


class DecodeSource(Source):
    """`_decode_x(b, p)`: reads the message that starts at `p`."""

    def struct(self, struct: Struct) -> str:
        """Emit the reading of a struct; the expression that then builds it."""
        serial = self.number()
        names: dict[str, str] = {}
        plain, tagged = self.carried(struct)
        run: list[Field] = []

        def flush() -> None:
            if not run:
                return
            code, width = shape(run)
            self.formats.add(code)
            targets = ", ".join(names[field.name] for field in run)
            if len(run) == 1:
                targets += ","
                self.line(f"({targets}) = _read_{symbol(code)}(b, p)")
            else:
                self.line(f"{targets} = _read_{symbol(code)}(b, p)")
            self.line(f"p += {width}")
            run.clear()

        for field in (*plain, *tagged):
            names[field.name] = f"{field.name}_{serial}"
        for field in plain:
            if field.kind in FIXED and not field.array:
                run.append(field)
            else:
                flush()
                self.value(field, names[field.name])
        flush()
        if self.flexible:
            self.tags(tagged, names)
        arguments = ", ".join(
            names.get(field.name, literal(field, self.message)) for field in struct.fields
        )
        return f"{struct.name}({arguments})"

    def tags(self, tagged: list[Field], names: dict[str, str]) -> None:
        if not tagged:
            with self.block("if b[p]:"):
                self.line("p = skip_tags(b, p)")
            with self.block("else:"):
                self.line("p += 1")
            return
        for field in tagged:
            self.line(f"{names[field.name]} = {literal(field, self.message)}")
        stop = f"stop_{self.number()}"
        self.line("n, p = read_varint(b, p)")
        with self.block("if n > TAGS_LIMIT:"):
            self.line('raise fail("too many tagged fields")')
        with self.block("for _ in range(n):"):
            self.line("tag, p = read_varint(b, p)")
            self.line("n, p = read_varint(b, p)")
            self.line(f"{stop} = p + n")
            with self.block(f"if {stop} > end:"):
                self.line('raise fail("tagged field past the end")')
            word = "if"
            for field in tagged:
                with self.block(f"{word} tag == {field.tag}:"):
                    self.value(field, names[field.name])
                    with self.block(f"if p != {stop}:"):
                        self.line(f'raise fail("{field.name} is not as long as it says")')
                word = "elif"
            with self.block("else:"):
                self.line(f"p = {stop}")

    def value(self, field: Field, name: str) -> None:
        struct = self.struct_of(field)
        if field.array:
            self.array(field, name)
        elif field.kind in FIXED:
            code, width = shape([field])
            self.formats.add(code)
            self.line(f"({name},) = _read_{symbol(code)}(b, p)")
            self.line(f"p += {width}")
        elif struct is not None:
            if self.nullable(field):
                with self.block("if b[p] > 127:"):
                    self.line(f"{name} = None")
                    self.line("p += 1")
                with self.block("else:"):
                    self.line("p += 1")
                    self.line(f"{name} = {self.struct(struct)}")
            else:
                self.line(f"{name} = {self.struct(struct)}")
        else:
            self.sized(field, name, nullable=self.nullable(field))

    @property
    def bounded(self) -> bool:
        """Whether the message comes from strangers: requests, and what clients put into them."""
        name = self.message.name
        return name.endswith("Request") or name.startswith("ConsumerProtocol")

    def length(self, code: str) -> None:
        """Emit `n`: a length or count; −1 means null."""
        if self.flexible:
            self.line("n = b[p] - 1")
            self.line("p += 1")
            with self.block("if n > 126:"):
                self.line("n, p = read_long_varint(b, p - 1)")
                self.line("n -= 1")
        else:
            self.formats.add(code)
            self.line(f"(n,) = _read_{symbol(code)}(b, p)")
            self.line(f"p += {2 if code == 'h' else 4}")

    def sized(self, field: Field, name: str, *, nullable: bool) -> None:
        """A string, bytes or records."""
        self.length("h" if field.kind == "string" else "i")
        made = {
            "string": 'str(b[p:q], "utf-8")',
            "bytes": "bytes(b[p:q])",
            "records": "b[p:q]",
        }[field.kind]
        with self.block("if n < 0:"):
            self.line(f"{name} = None" if nullable else f'raise fail("{field.name} is null")')
        if nullable:
            self.line("else:")
            self.depth += 1
        self.line("q = p + n")
        with self.block("if q > end:"):
            self.line(f'raise fail("{field.name} past the end")')
        self.line(f"{name} = {made}")
        self.line("p = q")
        if nullable:
            self.depth -= 1

    def array(self, field: Field, name: str) -> None:
        nullable = self.nullable(field)
        self.length("i")
        with self.block("if n < 0:"):
            self.line(f"{name} = None" if nullable else f'raise fail("{field.name} is null")')
        if nullable:
            self.line("else:")
            self.depth += 1
        smallest = self.smallest(field, element=True)
        times = "" if smallest == 1 else f" * {smallest}"
        with self.block(f"if n{times} > end - p:"):
            self.line(f'raise fail("{field.name} has more elements than bytes")')
        if self.bounded:
            self.line("left -= n")
            with self.block("if left < 0:"):
                self.line("raise fail(TOO_MANY_ELEMENTS)")
        if field.kind == "uuid":
            self.line("q = p + 16 * n")
            self.line(f"{name} = [bytes(b[s : s + 16]) for s in range(p, q, 16)]")
            self.line("p = q")
        elif field.kind in FIXED:
            code, width = shape([field])
            self.line(f'{name} = list(unpack_from(f">{{n}}{code}", b, p))')
            self.line(f"p += {width} * n" if width > 1 else "p += n")
        else:
            self.line(f"{name} = []")
            with self.block("for _ in range(n):"):
                struct = self.struct_of(field)
                if struct is None:
                    self.sized(field, f"{name}_each", nullable=False)
                    self.line(f"{name}.append({name}_each)")
                else:
                    self.line(f"{name}.append({self.struct(struct)})")
        if nullable:
            self.depth -= 1


class EncodeSource(Source):
    """`_encode_x(m, out)`: appends the message. Fields the version lacks are left out."""

    def struct(self, struct: Struct, owner: str) -> None:
        plain, tagged = self.carried(struct)
        run: list[Field] = []

        def flush() -> None:
            if not run:
                return
            code, _ = shape(run)
            self.formats.add(code)
            self.line(
                f"out += _write_{symbol(code)}({', '.join(f'{owner}.{field.name}' for field in run)})"
            )
            run.clear()

        for field in plain:
            if field.kind in FIXED and not field.array:
                run.append(field)
            else:
                flush()
                self.value(field, f"{owner}.{field.name}")
        flush()
        if self.flexible:
            self.tags(tagged, owner)

    def tags(self, tagged: list[Field], owner: str) -> None:
        if not tagged:
            self.line("out.append(0)")
            return
        given = {}
        for field in tagged:
            given[field.name] = f"given_{self.number()}"
            default = literal(field, self.message)
            test = f"{owner}.{field.name} is not None" if default == "None" else (
                f"{owner}.{field.name} != {default}"
            )  # fmt: skip
            self.line(f"{given[field.name]} = {test}")
        self.line(f"out.append({' + '.join(given.values())})")
        for field in tagged:
            with self.block(f"if {given[field.name]}:"):
                kept = f"kept_{self.number()}"
                self.line(f"{kept} = out")
                self.line("out = bytearray()")
                self.value(field, f"{owner}.{field.name}")
                self.line(f"write_varint({kept}, {field.tag})")
                self.line(f"write_varint({kept}, len(out))")
                self.line(f"{kept} += out")
                self.line(f"out = {kept}")

    def value(self, field: Field, expression: str) -> None:
        struct = self.struct_of(field)
        if field.array:
            self.array(field, expression)
        elif field.kind in FIXED:
            code, _ = shape([field])
            self.formats.add(code)
            self.line(f"out += _write_{symbol(code)}({expression})")
        elif struct is not None:
            name = f"each_{self.number()}"
            self.line(f"{name} = {expression}")
            if self.nullable(field):
                with self.block(f"if {name} is None:"):
                    self.line("out.append(255)")
                with self.block("else:"):
                    self.line("out.append(1)")
                    self.struct(struct, name)
            else:
                self.struct(struct, name)
        else:
            self.sized(field, expression, nullable=self.nullable(field))

    def sized(self, field: Field, expression: str, *, nullable: bool) -> None:
        compact = "compact_" if self.flexible else ""
        if field.kind == "string":
            self.line(f"write_{compact}{'nullable_' if nullable else ''}string(out, {expression})")
        else:
            self.line(f"write_{compact}bytes(out, {expression})")

    def array(self, field: Field, expression: str) -> None:
        name = f"each_{self.number()}"
        nullable = self.nullable(field)
        self.line(f"{name} = {expression}")
        if nullable:
            with self.block(f"if {name} is None:"):
                self.line("out.append(0)" if self.flexible else 'out += b"\\xff\\xff\\xff\\xff"')
            self.line("else:")
            self.depth += 1
        if self.flexible:
            self.line(f"write_varint(out, len({name}) + 1)")
        else:
            self.formats.add("i")
            self.line(f"out += _write_i(len({name}))")
        struct = self.struct_of(field)
        if field.kind == "uuid":
            self.line(f'out += b"".join({name})')
        elif field.kind in FIXED:
            self.line(f'out += pack(f">{{len({name})}}{FIXED[field.kind][0]}", *{name})')
        else:
            element = f"{name}_m"
            with self.block(f"for {element} in {name}:"):
                if struct is None:
                    self.sized(field, element, nullable=False)
                else:
                    self.struct(struct, element)
        if nullable:
            self.depth -= 1
