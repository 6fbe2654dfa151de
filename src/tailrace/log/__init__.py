"""Where it rests: partitions as append-only files of record batches."""
