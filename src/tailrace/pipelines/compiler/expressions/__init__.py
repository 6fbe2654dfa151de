"""Scalar expressions and calls of a query → typed expressions, by Spark's rules."""
