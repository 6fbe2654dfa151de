"""Functions of Spark that a view does not compute, with the reason for each.

The reference lists them under "What is refused".
"""

from __future__ import annotations

_GROUPS = {
    "another answer each time": """
        rand randn random randstr uniform uuid shuffle monotonically_increasing_id
        spark_partition_id input_file_name input_file_block_length input_file_block_start
    """,
    "of a session, not of the tables": """
        current_user user session_user current_catalog current_database current_schema
        current_path current_timezone version python_worker_logs sql_keywords collations measure
    """,
    "call whatever Java there is": "java_method reflect try_reflect",
    "off in Spark unless spark.sql.timestampNanosTypes.enabled; timestamps have microseconds": """
        timestamp_nanos unix_nanos
    """,
    "parsers of Spark's own: decode in a stream before the view": """
        from_avro to_avro schema_of_avro from_protobuf to_protobuf from_xml to_xml schema_of_xml
        sentences
    """,
}  # fmt: skip
REFUSED: dict[str, str] = {
    name: reason for reason, names in _GROUPS.items() for name in names.split()
}
