"""What is said of a stream that failed."""

from __future__ import annotations

from tailrace.pipelines.streams.failures import last_words


def test_a_java_trace_is_told_by_its_cause() -> None:
    trace = """An error occurred while calling o92.load.
: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] no such source: tailrace
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.dataSourceNotFoundError(QueryExecutionErrors.scala:770)
\tat py4j.Gateway.invoke(Gateway.java:282)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.lang.ClassNotFoundException: tailrace.DefaultSource
\tat java.base/java.net.URLClassLoader.findClass(URLClassLoader.java:445)
\t... 22 more
"""
    assert (
        last_words(Exception(trace)) == "java.lang.ClassNotFoundException: tailrace.DefaultSource"
    )
    first = trace.partition("Caused by")[0]
    assert "no such source: tailrace" in last_words(Exception(first))
