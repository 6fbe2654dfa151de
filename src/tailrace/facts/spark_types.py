"""The fields of events and states in Spark's words: how SQL sees them.

What JSON holds in more than one form (a union, anything) is its JSON as text.
"""

from __future__ import annotations

from msgspec import inspect as shapes

from tailrace.facts.event_types import msgspec_fields

_PLAIN: dict[type, str] = {
    shapes.BoolType: "BOOLEAN",
    shapes.IntType: "BIGINT",
    shapes.FloatType: "DOUBLE",
    shapes.StrType: "STRING",
    shapes.BytesType: "BINARY",
    shapes.ByteArrayType: "BINARY",
    shapes.MemoryViewType: "BINARY",
    shapes.DateTimeType: "TIMESTAMP",
    shapes.DateType: "DATE",
    shapes.TimeType: "STRING",
    shapes.TimeDeltaType: "STRING",
    shapes.UUIDType: "STRING",
    shapes.DecimalType: "DECIMAL(38,18)",
}


def columns_of(cls: type) -> list[tuple[str, str]]:
    """The fields of an event or state as (name, Spark type), in their order."""
    return [(field.encode_name, spark_type(field.type)) for field in msgspec_fields(cls)]


def spark_type(kind: object, above: tuple[type, ...] = ()) -> str:
    """A field's type; STRING for JSON that Spark has no type for."""
    match kind:
        case shapes.UnionType():
            real = [each for each in kind.types if not isinstance(each, shapes.NoneType)]
            return spark_type(real[0], above) if len(real) == 1 else "STRING"
        case shapes.EnumType():
            values = {type(each.value) for each in kind.cls}
            return "BIGINT" if values == {int} else "STRING"
        case shapes.LiteralType():
            return "BIGINT" if all(type(each) is int for each in kind.values) else "STRING"
        case shapes.CollectionType():
            return f"ARRAY<{spark_type(kind.item_type, above)}>"
        case shapes.TupleType():
            inner = {spark_type(each, above) for each in kind.item_types}
            return f"ARRAY<{inner.pop()}>" if len(inner) == 1 else "STRING"
        case shapes.DictType():
            if spark_type(kind.key_type) != "STRING":
                return "STRING"
            return f"MAP<STRING, {spark_type(kind.value_type, above)}>"
        case shapes.DataclassType() | shapes.StructType() | shapes.TypedDictType():
            cls = kind.cls
            if cls in above or not kind.fields:
                return "STRING"
            inside = (*above, cls)
            parts = (
                f"`{each.encode_name}`: {spark_type(each.type, inside)}" for each in kind.fields
            )
            return f"STRUCT<{', '.join(parts)}>"
    return _PLAIN.get(type(kind), "STRING")
