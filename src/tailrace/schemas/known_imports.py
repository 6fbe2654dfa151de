"""Protobuf files that every schema may import without a reference, and the types in them."""

from __future__ import annotations


def _types(text: str) -> dict[str, bool]:
    """Names of types; those with a # are enums."""
    return {one.strip("#"): one.startswith("#") for one in text.split()}


_GOOGLE = {
    "any": "Any",
    "api": "Api Method Mixin",
    "descriptor": "FileDescriptorSet FileDescriptorProto DescriptorProto ExtensionRangeOptions "
    "FieldDescriptorProto #FieldDescriptorProto.Type #FieldDescriptorProto.Label "
    "OneofDescriptorProto EnumDescriptorProto EnumValueDescriptorProto ServiceDescriptorProto "
    "MethodDescriptorProto FileOptions #FileOptions.OptimizeMode MessageOptions FieldOptions "
    "#FieldOptions.CType #FieldOptions.JSType OneofOptions EnumOptions EnumValueOptions "
    "ServiceOptions MethodOptions UninterpretedOption SourceCodeInfo GeneratedCodeInfo",
    "duration": "Duration",
    "empty": "Empty",
    "field_mask": "FieldMask",
    "source_context": "SourceContext",
    "struct": "Struct Value ListValue #NullValue",
    "timestamp": "Timestamp",
    "type": "Type Field #Field.Kind #Field.Cardinality Enum EnumValue Option #Syntax",
    "wrappers": "DoubleValue FloatValue Int64Value UInt64Value Int32Value UInt32Value BoolValue "
    "StringValue BytesValue",
}
_GOOGLE_TYPE = {
    "calendar_period": "#CalendarPeriod",
    "color": "Color",
    "date": "Date",
    "datetime": "DateTime TimeZone",
    "dayofweek": "#DayOfWeek",
    "decimal": "Decimal",
    "expr": "Expr",
    "fraction": "Fraction",
    "interval": "Interval",
    "latlng": "LatLng",
    "localized_text": "LocalizedText",
    "money": "Money",
    "month": "#Month",
    "phone_number": "PhoneNumber PhoneNumber.ShortCode",
    "postal_address": "PostalAddress",
    "quaternion": "Quaternion",
    "timeofday": "TimeOfDay",
}
KNOWN: dict[str, tuple[str, dict[str, bool]]] = {
    **{f"google/protobuf/{file}.proto": ("google.protobuf", _types(names)) for file, names in _GOOGLE.items()},
    **{f"google/type/{file}.proto": ("google.type", _types(names)) for file, names in _GOOGLE_TYPE.items()},
    "confluent/meta.proto": ("confluent", _types("Meta")),
    "confluent/type/decimal.proto": ("confluent.type", _types("Decimal")),
}  # fmt: skip
