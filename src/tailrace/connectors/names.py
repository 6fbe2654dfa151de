"""Names of converters, of connectors that come along, and of the three topics."""

from __future__ import annotations

_STORAGE = "org.apache.kafka.connect.storage."
_CONVERTERS = "org.apache.kafka.connect.converters."
_LONG = {
    "boolean": f"{_CONVERTERS}BooleanConverter",
    "bytes": f"{_CONVERTERS}ByteArrayConverter",
    "double": f"{_CONVERTERS}DoubleConverter",
    "float": f"{_CONVERTERS}FloatConverter",
    "integer": f"{_CONVERTERS}IntegerConverter",
    "long": f"{_CONVERTERS}LongConverter",
    "short": f"{_CONVERTERS}ShortConverter",
    "json": "org.apache.kafka.connect.json.JsonConverter",
    "string": f"{_STORAGE}StringConverter",
    "simple": f"{_STORAGE}SimpleHeaderConverter",
    "avro": "io.confluent.connect.avro.AvroConverter",
    "json_schema": "io.confluent.connect.json.JsonSchemaConverter",
    "protobuf": "io.confluent.connect.protobuf.ProtobufConverter",
}
HEADER_CONVERTER = _LONG["simple"]
CONVERTERS = tuple(_LONG[name] for name in ("boolean", "bytes", "double", "float", "integer", "long", "short", "json", "string"))  # fmt: skip
_SHORT = {long: short for short, long in _LONG.items()}
_SHORT |= {long.rpartition(".")[2]: short for short, long in _LONG.items()}

CONFIGS = "connect-configs"
OFFSETS = "connect-offsets"
STATUSES = "connect-status"

# What Kafka and Tailrace call the connectors that come along.
BUILT_IN = {
    "org.apache.kafka.connect.file.FileStreamSourceConnector": "tailrace.connectors.file_stream:FileStreamSource",
    "org.apache.kafka.connect.file.FileStreamSinkConnector": "tailrace.connectors.file_stream:FileStreamSink",
    "tailrace.connectors.FileTail": "tailrace.connectors.file_tail:FileTail",
}  # fmt: skip
# By name: they are made of rooms that know nothing of connectors.
_OWN = (
    "PostgresSource", "MySQLSource", "SQLiteSource", "WebhookSource", "HTTPSource", "StatsDSource",
    "MulticastSource", "ZeroMQSource", "PostgresSink", "MySQLSink", "SQLiteSink", "DuckDBSink",
    "RedisSink", "SearchSink", "ElasticsearchSink", "DeltaSink", "ParquetSink", "IcebergSink",
    "WebhookSink", "EmailSink", "TopicSink",
)  # fmt: skip
BUILT_IN |= {f"tailrace.connectors.{one}": f"tailrace.project.own_connectors:{one}" for one in _OWN}
TASK_CLASSES = {
    "org.apache.kafka.connect.file.FileStreamSourceConnector": "org.apache.kafka.connect.file.FileStreamSourceTask",
    "org.apache.kafka.connect.file.FileStreamSinkConnector": "org.apache.kafka.connect.file.FileStreamSinkTask",
}  # fmt: skip


def long_name(converter: str) -> str | None:
    """Kafka's class name of a converter given by any of its names; None if there is none. A
    converter of one's own is `module:Class` and keeps its name."""
    short = short_name(converter)
    if short is not None:
        return _LONG[short]
    return converter if ":" in converter else None


def short_name(converter: str) -> str | None:
    return converter if converter in _LONG else _SHORT.get(converter)


def short_class(name: str) -> set[str]:
    """The short names by which Kafka takes a connector's class: without its package, without the
    ending Connector."""
    last = name.replace(":", ".").rpartition(".")[2]
    return {name, last, last.removesuffix("Connector")}
