"""Functions of Spark that a view does not compute, with the reason for each.

The reference lists them under "What is refused".
"""

from __future__ import annotations

_DRAWN = "another answer each time"
_GROUPS = {
    _DRAWN: """
        rand randn random randstr uniform uuid shuffle monotonically_increasing_id
        spark_partition_id input_file_name input_file_block_length input_file_block_start
    """,
    "of a session, not of the tables": """
        current_user user session_user current_catalog current_database current_schema
        current_path current_timezone version python_worker_logs
    """,
    "tables about Spark itself": "sql_keywords collations",
    "of metric views alone, which are Spark's": "measure",
    "call whatever Java there is": "java_method reflect try_reflect",
    "off in Spark unless spark.sql.timestampNanosTypes.enabled; timestamps have microseconds": """
        timestamp_nanos unix_nanos
    """,
    "need a package that Spark comes without, spark-avro or spark-protobuf: decode in a stream before the view": """
        from_avro to_avro schema_of_avro from_protobuf to_protobuf
    """,
}  # fmt: skip
REFUSED: dict[str, str] = {
    name: reason for reason, names in _GROUPS.items() for name in names.split()
}
VOLATILE = frozenset(_GROUPS[_DRAWN].split())
