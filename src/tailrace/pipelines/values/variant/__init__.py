"""VARIANT: documents in the open binary encoding of Parquet and Spark."""
