"""What a value is, in rows, as keys, as bytes, as text.

types       Spark's types as Arrow types, and how they combine
columns     the columns that changes carry beside their own
rows        tables as Python rows and as bytes, and back
keys        keys as bytes whose order is the order of the values
casts       from one type to another, with Spark's meaning
shards      the shard of a row
variant/    documents in the open binary encoding
avro, json_text, topic_schema: formats; sketches: summaries of many values
"""
