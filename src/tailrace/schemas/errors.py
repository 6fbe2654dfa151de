"""What can be wrong with a schema."""

from __future__ import annotations

from tailrace.errors import TailraceError


class SchemaError(TailraceError):
    """Something about a schema or a subject failed."""

    code = "schema"


class InvalidSchemaError(SchemaError):
    """The text is no schema of its language: Avro, JSON Schema (draft 4 to 2020-12) or Protobuf
    (2 and 3). The detail names the place. A schema nested more than 300 levels deep, or one whose
    comparison would take too long, is refused in the same way."""

    code = "schema-invalid"


class IncompatibleSchemaError(SchemaError):
    """A new version does not fit the versions before it under the subject's compatibility level.
    Each line of the detail names the path and the rule, the hint what would be allowed. A level can
    be changed: `PUT /config/SUBJECT {"compatibility": "NONE"}`."""

    code = "schema-incompatible"
