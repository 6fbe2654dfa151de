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
    "views have no type TIME and no nanoseconds": """
        localtime current_time make_time time to_time try_to_time time_diff time_trunc
        time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis
        time_to_seconds timestamp_nanos unix_nanos
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
        theta_difference theta_intersection theta_intersection_agg theta_sketch_agg
        theta_sketch_estimate theta_union theta_union_agg tuple_difference_double
        tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
        tuple_intersection_agg_double tuple_intersection_agg_integer tuple_intersection_double
        tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer
        tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
        tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
        tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
        tuple_union_theta_double tuple_union_theta_integer kll_merge_agg_bigint
        kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_float kll_sketch_get_n_bigint
        kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_float
        kll_sketch_get_rank_bigint kll_sketch_get_rank_float kll_sketch_merge_bigint
        kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float approx_top_k_accumulate approx_top_k_combine
        approx_top_k_estimate count_min_sketch
    """,
    "Spark rounds them after every row, in any order": "vector_sum vector_avg histogram_numeric",
}  # fmt: skip
REFUSED: dict[str, str] = {
    name: reason for reason, names in _GROUPS.items() for name in names.split()
}
