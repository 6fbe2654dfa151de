"""From topics to topics, through Spark: the only room that imports pyspark.

Importing this package, or `pipelines.declare`, does not import pyspark.
"""
