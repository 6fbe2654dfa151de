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
    "views have no VARIANT, GEOMETRY or collations; use from_json, get_json_object, lower": """
        parse_json try_parse_json to_variant_object is_valid_variant is_variant_null
        schema_of_variant schema_of_variant_agg variant_get try_variant_get variant_explode
        variant_explode_outer variant_array_append try_variant_array_append variant_delete
        variant_insert try_variant_insert variant_set try_variant_set variant_strip_nulls
        st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid collate collation
    """,
    "parsers of Spark's own: decode in a stream before the view": """
        from_avro to_avro schema_of_avro from_protobuf to_protobuf from_xml to_xml schema_of_xml
        xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
        xpath_short xpath_string sentences
    """,
    "sketches of other kinds: use approx_count_distinct, kll_sketch_agg_double, approx_top_k, or the exact aggregates": """
        approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate count_min_sketch
    """,
    "Spark rounds them after every row, in any order": "vector_sum vector_avg histogram_numeric",
}  # fmt: skip
REFUSED: dict[str, str] = {
    name: reason for reason, names in _GROUPS.items() for name in names.split()
}
