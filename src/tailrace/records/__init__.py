"""What flows: record batches, the same bytes on disk and on the wire."""
