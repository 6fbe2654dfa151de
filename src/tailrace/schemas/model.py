"""A schema as it is registered, and what a comparison of two of them finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
TYPES = (JSON, PROTOBUF, AVRO)  # in the order in which Confluent's registry lists them


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that this one uses under `name`: a type of Avro, a URI, an imported file."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """What is registered. `metadata` and `rules` are JSON objects as text, kept as they came."""

    text: str
    kind: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rules: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """One change between two schemas that breaks a reader.

    `text` has the words {reader} and {writer} where "new" and "old" belong.
    """

    rule: str
    path: str
    text: str
    hint: str = ""
    about: str | None = None

    def tell(self, reader: str, writer: str) -> str:
        """The line that a refusal shows, in the form of Confluent's registry."""
        words = self.text.replace("{reader}", reader).replace("{writer}", writer)
        line = f"{{errorType:'{self.rule}', description:'{words}'"
        if self.about is not None:
            line += f", additionalInfo:'{self.about}'"
        return line + (f", hint:'{self.hint}'}}" if self.hint else "}")


Texts = Mapping[str, str]
"""The text of each schema that is referred to, directly or not, by the name it is used under."""

Find = Callable[[str, str], bool]
"""Whether a regular expression (first) is found in a text. Raises ValueError if it cannot be used."""
