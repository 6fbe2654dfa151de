"""Whether a reader with one Avro schema can read what was written with another.

Avro's own rules of resolution: fields by name or the reader's alias, defaults for those the writer
lacks, promotion of numbers, bytes for text and text for bytes, enums with a default. Names of types
are compared without their namespaces.
"""

from __future__ import annotations

from tailrace.schemas.avro import MISSING, Field, Type
from tailrace.schemas.model import Difference
from tailrace.schemas.reading import Steps, too_deep

_PROMOTED = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


def differences(reader: Type, writer: Type) -> list[Difference]:
    """What stops the reader, none twice; empty if it can read everything."""
    try:
        return _Comparison().compare(reader, writer, "")
    except RecursionError:
        raise too_deep("Avro") from None


class _Comparison:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Difference]] = {}
        self._steps = Steps()

    def compare(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        self._steps.take()
        pair = (id(reader), id(writer))
        known = self._known.get(pair)
        if known is None:
            self._known[pair] = []  # a ring of types is as good as the rest of it
            # Each difference once: types that use each other twice would double them every time.
            known = list(dict.fromkeys(self._compare(reader, writer, path)))
            self._steps.take(len(known))
            self._known[pair] = known
        return known

    def _compare(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if reader.kind == writer.kind:
            match reader.kind:
                case "array" | "map":
                    step = "items" if reader.kind == "array" else "values"
                    return self.compare(reader.inner[0], writer.inner[0], f"{path}/{step}")
                case "fixed":
                    return [*self._names(reader, writer, path), *self._sizes(reader, writer, path)]
                case "enum":
                    return [
                        *self._names(reader, writer, path),
                        *self._symbols(reader, writer, path),
                    ]
                case "record":
                    return [*self._names(reader, writer, path), *self._fields(reader, writer, path)]
                case "union":
                    return [
                        self._branch(branch, f"{path}/{number}")
                        for number, branch in enumerate(writer.inner)
                        if self.compare(reader, branch, f"{path}/{number}")
                    ]
                case _:
                    return []
        if writer.kind == "union":
            return [one for branch in writer.inner for one in self.compare(reader, branch, path)]
        if reader.kind == "union":
            likely = sorted(reader.inner, key=lambda one: one.name != writer.name)
            if any(not self.compare(branch, writer, path) for branch in likely):
                return []
            return [self._branch(writer, path)]
        if writer.kind in _PROMOTED.get(reader.kind, ()):
            return []
        return [
            Difference(
                "TYPE_MISMATCH",
                path or "/",
                f"The type at path '{path or '/'}' in the {{reader}} schema cannot read that of "
                "the {writer} schema",
                f'keep {writer.kind}, or make it the union ["{writer.kind}", …]',
                f"reader type: {reader.kind.upper()} not compatible with writer type: "
                f"{writer.kind.upper()}",
            )
        ]

    def _branch(self, writer: Type, path: str) -> Difference:
        name = writer.full_name or writer.kind
        return Difference(
            "MISSING_UNION_BRANCH",
            path or "/",
            f"The union at path '{path or '/'}' in the {{reader}} schema has no branch for a type "
            "of the {writer} schema",
            f'add "{name}" to the union',
            f"reader union lacking writer type: {writer.kind.upper()}",
        )

    def _names(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if reader.name == writer.name:
            return []
        return [
            Difference(
                "NAME_MISMATCH",
                f"{path}/name",
                f"The name of the type at path '{path}/name' has changed",
                f'call it "{writer.name}"',
                f"expected: {writer.full_name}",
            )
        ]

    def _sizes(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if reader.size == writer.size:
            return []
        return [
            Difference(
                "FIXED_SIZE_MISMATCH",
                f"{path}/size",
                f"The size of the fixed at path '{path}/size' in the {{reader}} schema is not that "
                "of the {writer} schema",
                f"keep {writer.size}, or add a field of another type",
                f"expected: {writer.size}, found: {reader.size}",
            )
        ]

    def _symbols(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        lacking = sorted(set(writer.symbols) - set(reader.symbols))
        if not lacking or reader.default is not MISSING:
            return []
        shown = "[" + ", ".join(lacking) + "]"
        return [
            Difference(
                "MISSING_ENUM_SYMBOLS",
                f"{path}/symbols",
                f"The enum at path '{path}/symbols' in the {{reader}} schema lacks symbols of the "
                "{writer} schema",
                "keep the symbols, or give the enum a default",
                shown,
            )
        ]

    def _fields(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        by_name = {one.name: one for one in writer.fields}
        found: list[Difference] = []
        for number, one in enumerate(reader.fields):
            self._steps.take()
            here = f"{path}/fields/{number}"
            written = _written(one, by_name)
            if written is not None:
                found += self.compare(one.type, written.type, f"{here}/type")
            elif one.default is MISSING:
                found.append(
                    Difference(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        here,
                        f"The field '{one.name}' at path '{here}' in the {{reader}} schema has no "
                        "default value and is missing in the {writer} schema",
                        f'give "{one.name}" a default',
                        one.name,
                    )
                )
        return found


def _written(one: Field, by_name: dict[str, Field]) -> Field | None:
    for name in (one.name, *one.aliases):
        if name in by_name:
            return by_name[name]
    return None
