"""Names of change topics: Kafka's alphabet is smaller than a database's.

A topic may hold letters, digits, `.`, `_` and `-`, 249 of them. Any other character of a
schema or table, and a dot inside one, is written as `_x` + its number in hexadecimal + `_`
(`Größe` → `Gr_xf6__xdf_e`), so that two tables never share a topic. What is longer than a
third of a topic's name ends in a digest.
"""

from __future__ import annotations

import re
from hashlib import sha256

LONGEST_PART = 96
# An underscore that would begin such a code itself is written as one, too.
_OTHER = re.compile(r"[^A-Za-z0-9_-]|_(?=x[0-9a-f]+_)")


def topic_name(source: str, schema: str, table: str) -> str:
    """The change topic of a table, `<source>.<schema>.<table>`."""
    return f"{source}.{_part(schema)}.{_part(table)}"


def topics_of(source: str, name: str) -> frozenset[str]:
    """The change topic of a table given as `schema.table`; with more dots in it, those of
    every table that has this name."""
    dots = (place for place, letter in enumerate(name) if letter == ".")
    return frozenset(topic_name(source, name[:dot], name[dot + 1 :]) for dot in dots)


def _part(name: str) -> str:
    coded = _OTHER.sub(lambda found: f"_x{ord(found[0]):x}_", name)
    if len(coded) <= LONGEST_PART:
        return coded
    digest = sha256(name.encode()).hexdigest()[:16]
    return f"{coded[: LONGEST_PART - 17]}-{digest}"
