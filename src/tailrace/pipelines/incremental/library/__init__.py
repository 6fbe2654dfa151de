"""Spark's scalar functions beyond the few of `functions`, one subject per file.

Each file registers what computes a function and, where argument and result types are fixed,
its signature; the binder reads both. Importing this package registers all of them.
"""

from __future__ import annotations

from tailrace.pipelines.incremental.library import (
    bitmaps,
    clock_times,
    collated,
    csv,
    encodings,
    frequent,
    guarded,
    hashes,
    json,
    kll,
    lists,
    moments,
    numbers,
    patterns_of_numbers,
    shapes,
    text,
    theta,
    tuples,
    variants,
    vectors,
)

__all__ = [
    "bitmaps",
    "clock_times",
    "collated",
    "csv",
    "encodings",
    "frequent",
    "guarded",
    "hashes",
    "json",
    "kll",
    "lists",
    "moments",
    "numbers",
    "patterns_of_numbers",
    "shapes",
    "text",
    "theta",
    "tuples",
    "variants",
    "vectors",
]
