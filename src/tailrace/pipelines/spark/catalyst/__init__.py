"""Spark's own analyser and generated code for expressions of views, by text.

`Catalyst.java` is the other end: a JVM with Spark's jars and no session, one for each user of a
host, started when a view first needs it and gone when nobody has been connected for a while.
`door` finds or starts it, `client` asks it, `schema` reads the types it answers with.
"""
