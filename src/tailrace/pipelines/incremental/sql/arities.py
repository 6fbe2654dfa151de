"""How many arguments Spark's functions take, as Spark 4.3 says when it is given another number.

A rule that reads its first argument would take no notice of a second one. Those that take a unit in
front, such as `datediff(DAY, a, b)`, count their arguments themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_MOST = 8  # from here on: as many as one likes
_GROUPS = {
    "0": """
        e pi
    """,
    "0 1 2": """
        make_ym_interval unix_timestamp variant_strip_nulls
    """,
    "0 1 2 3 4": """
        make_dt_interval try_variant_set tuple_union_double tuple_union_integer
        tuple_union_theta_double tuple_union_theta_integer variant_set
    """,
    "0 1 2 3 4 5": """
        mask
    """,
    "0 1 2 3 4 5 6 7": """
        make_interval
    """,
    "0 1 2 3 4 5 6 7 8 +": """
        array arrays_zip concat map_concat
    """,
    "0 2 4 6 8 +": """
        map named_struct
    """,
    "1": """
        abs acos acosh array_compact array_distinct array_max array_min array_size ascii
        asin asinh atan atanh base64 bigint bin binary bit_count bit_length
        bitmap_bit_position bitmap_bucket_number bitmap_count boolean cardinality cbrt char
        char_length character_length chr collation cos cosh cot crc32 csc date
        date_from_unix_date day dayname dayofmonth dayofweek dayofyear decimal degrees
        double exp expm1 factorial flatten float from_base32 hex hll_sketch_estimate initcap
        int is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull
        json_array_length json_object_keys kll_sketch_get_n_bigint kll_sketch_get_n_double
        kll_sketch_get_n_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float last_day lcase len length ln log10 log1p log2 lower
        luhn_check make_valid_utf8 map_entries map_from_entries map_keys map_values md5
        month monthname negative nullifzero octet_length parse_json positive quarter quote
        radians raise_error reverse rint schema_of_variant sec sha sha1 sign signum sin sinh
        size smallint soundex space sqrt st_geogfromwkb st_srid string tan tanh
        theta_sketch_estimate time time_from_micros time_from_millis time_from_seconds
        time_to_micros time_to_millis time_to_seconds timestamp timestamp_micros
        timestamp_millis timestamp_seconds tinyint to_base32 to_variant_object
        try_parse_json try_url_decode try_validate_utf8 tuple_sketch_estimate_double
        tuple_sketch_estimate_integer tuple_sketch_theta_double tuple_sketch_theta_integer
        typeof ucase unbase64 unhex unix_date unix_micros unix_millis unix_seconds upper
        url_decode url_encode validate_utf8 weekday weekofyear window_time year zeroifnull
    """,
    "1 2": """
        approx_top_k_estimate array_sort assert_true bround btrim ceil ceiling floor
        from_unixtime log ltrim round rtrim schema_of_csv schema_of_json schema_of_xml
        sort_array st_asbinary st_geomfromwkb to_binary to_csv to_date to_json to_time
        to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_xml trim
        try_to_binary try_to_date try_to_time try_to_timestamp tuple_sketch_summary_double
        tuple_sketch_summary_integer vector_norm vector_normalize
    """,
    "1 2 3": """
        str_to_map
    """,
    "1 2 3 4 5 6 7": """
        try_make_interval
    """,
    "1 2 3 4 5 6 7 8 +": """
        coalesce concat_ws format_string hash hour minute printf second xxhash64
    """,
    "1 2 3 6 7": """
        make_timestamp try_make_timestamp
    """,
    "2": """
        add_months array_append array_contains array_except array_intersect array_position
        array_prepend array_remove array_repeat array_union arrays_overlap atan2 bit_get
        collate contains date_format date_part date_sub date_trunc
        datepart element_at encode endswith equal_null exists extract
        filter find_in_set forall format_number from_utc_timestamp get get_json_object
        getbit hypot ifnull jaro_winkler_similarity kll_sketch_get_quantile_bigint
        kll_sketch_get_quantile_double kll_sketch_get_quantile_float
        kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float left
        map_contains_key map_filter map_from_arrays mod nanvl next_day nullif nvl pmod pow
        power regexp regexp_count regexp_like regexp_substr repeat right rlike sha2
        shiftleft shiftright shiftrightunsigned st_setsrid startswith theta_difference
        theta_intersection time_trunc to_char to_number to_utc_timestamp to_varchar
        transform transform_keys transform_values trunc try_add try_divide try_element_at
        try_mod try_multiply try_subtract try_to_number tuple_difference_double
        tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer vector_cosine_similarity vector_inner_product
        vector_l2_distance xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
        xpath_number xpath_short xpath_string
    """,
    "2 3": """
        array_join convert_timezone from_csv from_json from_xml hll_union hmac ilike
        levenshtein like locate lpad months_between parse_url position regexp_extract
        regexp_extract_all regexp_instr replace rpad sequence split substr substring
        theta_union time_bucket try_parse_url try_variant_get tuple_intersection_double
        tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer variant_get
    """,
    "2 3 4": """
        instr window
    """,
    "2 3 4 5": """
        aes_decrypt try_aes_decrypt
    """,
    "2 3 4 5 6": """
        aes_encrypt
    """,
    "2 3 4 5 6 7 8 +": """
        decode elt greatest least variant_delete
    """,
    "2 3 6 7": """
        make_timestamp_ltz try_make_timestamp_ltz
    """,
    "2 6": """
        make_timestamp_ntz try_make_timestamp_ntz
    """,
    "3": """
        array_insert conv make_date make_time map_zip_with nvl2 slice split_part
        substring_index time_diff translate try_variant_array_append try_variant_insert
        variant_array_append variant_insert zip_with
    """,
    "3 4": """
        aggregate overlay reduce regexp_replace
    """,
    "4": """
        width_bucket
    """,
}

ARITIES: dict[str, frozenset[int]] = {
    name: frozenset(int(count) for count in counts.split() if count != "+")
    for counts, names in _GROUPS.items()
    for name in names.split()
}


# What the parser makes of calls of aggregates tells no longer what stood in them: it drops
# arguments, or takes them for clauses.
_AGGREGATES: dict[type[exp.Expr], tuple[int, int]] = {
    exp.ArrayAgg: (1, 1), exp.ArrayUniqueAgg: (1, 1), exp.ApproxDistinct: (1, 2), exp.Mode: (0, 2),
    **dict.fromkeys((exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue), (1, 2)),
}  # fmt: skip
_WITH_A_WORD = (
    exp.AnyValue, exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.Mode
)  # fmt: skip
_WORST_ERROR = 0.391  # of approx_count_distinct


def wrong_arguments(made: exp.Expr, arguments: Sequence[exp.Expr]) -> str | None:
    """What is wrong with the arguments of an aggregate's call, as they stand in the query."""
    if isinstance(made, exp.IgnoreNulls | exp.RespectNulls):
        made = made.this
    known = _AGGREGATES.get(type(made))
    if known is None:
        return None
    assert isinstance(made, exp.Func)
    name = str(made.sql_name()).lower()
    least, most = known
    if not least <= len(arguments) <= most:
        return f"wrong number of arguments for {name}"
    if len(arguments) == 2:
        given = arguments[1]
        if isinstance(made, _WITH_A_WORD) and not isinstance(given, exp.Boolean):
            return f"the second argument of {name} is true or false"
        if isinstance(made, exp.ApproxDistinct) and not _is_error(given):
            return f"the error that {name} allows is a constant such as 0.05, below {_WORST_ERROR}"
    return None


def _is_error(given: exp.Expr) -> bool:
    if isinstance(given, exp.Null):
        return True  # its type is judged with those of other arguments
    if isinstance(given, exp.Cast) and given.to.this == exp.DType.DOUBLE:
        given = given.this  # 0.05D
    if not isinstance(given, exp.Literal) or str(given.this).isdigit():
        return False
    try:
        return 0 < float(given.this) <= _WORST_ERROR
    except ValueError:
        return False


def takes(name: str, count: int) -> bool:
    """Whether a function takes that many arguments; True of one that is not known here."""
    known = ARITIES.get(name)
    if known is None:
        return True
    return count in known or (_MOST in known and count > _MOST)
