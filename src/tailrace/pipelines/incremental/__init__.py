"""Views kept incrementally: SQL compiled into operators that follow the change.

    parse → bind → decorrelate → prune → lower → graph → execute

`compile_views` turns the SQL of a project's views into one `Graph`; `run_tick` applies one
tick's changes to it. Nothing here imports pyspark: the graph is plain data, and Spark only
carries it.
"""
