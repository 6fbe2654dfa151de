"""Apache Kafka's message definitions, read from the jars in Maven's local repository.

A definition is JSON with `//` comments. Only what a codec needs is kept: for every
field its type, the versions that carry it, where it may be null, its tag and its
default. The definitions themselves are never committed; fetch them with

    mvn dependency:get -Dartifact=org.apache.kafka:kafka-clients:4.3.1 -Dtransitive=false
"""

from __future__ import annotations

import json
import keyword
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KAFKA_VERSION = "4.3.1"
LAST = 32767

FIXED = {
    "bool": ("?", 1, "bool"),
    "int8": ("b", 1, "int"),
    "int16": ("h", 2, "int"),
    "uint16": ("H", 2, "int"),
    "int32": ("i", 4, "int"),
    "uint32": ("I", 4, "int"),
    "int64": ("q", 8, "int"),
    "float64": ("d", 8, "float"),
    "uuid": ("16s", 16, "bytes"),
}


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; empty when `first > last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        if text is None or text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), LAST)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    kind: str  # a fixed type, "string", "bytes", "records", or the name of a struct
    array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: object
    about: str


@dataclass(frozen=True, slots=True)
class Struct:
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One definition file: the top struct and the structs inside it, inner first."""

    name: str
    kind: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    top: Struct
    structs: dict[str, Struct]


def snake(name: str) -> str:
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", text).lower()
    return text + "_" if keyword.iskeyword(text) else text


def jar(artifact: str, repository: Path) -> Path:
    folder = repository / "org/apache/kafka" / artifact / KAFKA_VERSION
    path = folder / f"{artifact}-{KAFKA_VERSION}.jar"
    if not path.exists():
        raise SystemExit(
            f"{path} is missing; fetch it with\n  mvn dependency:get "
            f"-Dartifact=org.apache.kafka:{artifact}:{KAFKA_VERSION} -Dtransitive=false"
        )
    return path


def read_definitions(path: Path) -> dict[str, dict[str, Any]]:
    """Definition by message name, as plain JSON."""
    found: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                text = archive.read(name).decode()
                text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
                definition = json.loads(text)
                found[definition["name"]] = definition
    return found


def parse(definition: dict[str, Any], rename: dict[str, str] | None = None) -> Message:
    """A definition in the form the generator works on."""
    renamed = rename or {}
    structs: dict[str, Struct] = {}

    def struct(name: str, fields: list[dict[str, Any]]) -> Struct:
        made = Struct(renamed.get(name, name), tuple(field(each) for each in fields))
        if name not in structs:
            structs[made.name] = made
        return made

    def field(raw: dict[str, Any]) -> Field:
        kind = raw["type"]
        array = kind.startswith("[]")
        kind = kind.removeprefix("[]")
        if "fields" in raw:
            struct(kind, raw["fields"])
        default = raw.get("default")
        if isinstance(default, str) and kind in ("string",) and default != "null":
            value: object = default
        elif default in (None, ""):
            value = {"string": "", "bytes": b"", "bool": False, "float64": 0.0,
                     "uuid": bytes(16), "records": None}.get(kind, 0)  # fmt: skip
            value = [] if array else value
        elif default == "null":
            value = None
        elif kind == "bool":
            value = default in (True, "true")
        elif kind == "float64":
            value = float(default)
        elif kind == "uuid":
            value = bytes(16)
        else:
            value = int(default, 0) if isinstance(default, str) else int(default)
        return Field(
            name=snake(raw["name"]),
            kind=renamed.get(kind, kind),
            array=array,
            # A field that is only ever tagged need not say its versions.
            versions=Versions.parse(raw.get("versions", raw.get("taggedVersions"))),
            nullable=Versions.parse(raw.get("nullableVersions")),
            tagged=Versions.parse(raw.get("taggedVersions")),
            tag=raw.get("tag"),
            default=value,
            about=raw.get("about", ""),
        )

    for common in definition.get("commonStructs", ()):
        struct(common["name"], common["fields"])
    top = struct(definition["name"], definition["fields"])
    return Message(
        name=definition["name"],
        kind=definition["type"],
        api_key=definition.get("apiKey"),
        versions=Versions.parse(definition["validVersions"]),
        flexible=Versions.parse(definition.get("flexibleVersions")),
        top=top,
        structs=structs,
    )
