"""The schema registry: Confluent's REST interface over the topic `_schemas`.

`schemas/` knows what a schema is and what a record means; here are the topic (`topic`), what may be
done (`service`), how it is said over HTTP (`rest`, `bodies`) and the process (`serve`).
"""
