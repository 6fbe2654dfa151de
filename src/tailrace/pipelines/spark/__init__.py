"""Spark itself: found, started, watched, and asked.

java, session    which Java; a session with the settings that pipelines need
jvm              watching over its JVM
workers          the process that its Python workers are forked from
importable, shipping: a project's own files in its processes, here and on a cluster
executor         the process of an executor in a pod
catalyst/        Spark's analyser and generated code for expressions, without a session
"""
