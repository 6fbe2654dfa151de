"""Plain PySpark streams: a declared function as Structured Streaming queries, exactly once.

inputs        what a stream reads, as options of the data source
beginnings    where it begins, written down before Spark is started
source        `spark.read.format("tailrace")`; `connector` Spark's own where its jar is present
queries       the function, as queries
writer        its rows, into its topic, once
checkpoint    the files of a stream
left_out      poison found before, and keys that wait behind it; `isolate` finds it
dead_letters  what was left out, listed and tried again
failures      why a stream failed, and where in the user's files
"""
