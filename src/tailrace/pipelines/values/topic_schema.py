"""The columns of a topic, from its declared schema in Spark's words.

    "user STRING, at TIMESTAMP NOT NULL, tags ARRAY<STRING> COMMENT 'as typed'"

Names may be quoted by back-ticks; `NOT NULL` and comments are allowed and say nothing, since
any record may lack a column.
"""

from __future__ import annotations

import difflib
import re

import pyarrow as pa

from tailrace.pipelines.values.types import parse_type

_COLUMN = re.compile(r"(?:`((?:[^`]|``)+)`|([^\s:`]+))\s*(?::\s*|\s)\s*(.+)", re.DOTALL)
_SAYS_NOTHING = re.compile(r"\s+(?:NOT\s+NULL|COMMENT\s+(?:'[^']*'|\"[^\"]*\"))\s*$", re.IGNORECASE)
_WORDS = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "STRING",
    "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIME", "ARRAY<…>", "MAP<…>", "STRUCT<…>",
)  # fmt: skip
KNOWN_TYPES = ", ".join(_WORDS)


def parse_schema(text: str) -> pa.Schema:
    """Columns and their types; ValueError, in one line, for what cannot be understood."""
    fields: dict[str, pa.DataType] = {}
    for part in split_columns(text):
        found = _COLUMN.fullmatch(part.strip())
        if found is None:
            raise ValueError(
                f"{part.strip()!r} is no column with its type"
                if part.strip()
                else "it names no column"
            )
        name = (found[1] or found[2]).replace("``", "`")
        if name.lower() in {known.lower() for known in fields}:
            raise ValueError(f"column {name!r} is there twice")
        fields[name] = _type(name, found[3].strip())
    return pa.schema(list(fields.items()))


def _type(name: str, words: str) -> pa.DataType:
    while (shorter := _SAYS_NOTHING.sub("", words)) != words:
        words = shorter
    try:
        return parse_type(words)
    except ValueError as reason:
        near = difflib.get_close_matches(words.upper(), ["STRING", "VARCHAR(10)", *_WORDS], n=1)
        guess = f"; did you mean {near[0].split('(')[0]}?" if near else ""
        raise ValueError(f"column {name!r}: {reason}{guess}") from reason


def split_columns(text: str) -> list[str]:
    """The columns of a schema, split at commas outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "`'\"":
            quote = letter
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
