"""Views kept incrementally: the graph of operators, and one tick of it in one task.

    graph         operators and the edges between them: plain, picklable data
    expression    typed expressions on the edges; `evaluate` computes them, with Arrow or by Spark
    functions/    what Arrow computes, by Spark's names
    operators/    the stateful steps of a view, each with the layout of its state on top
    patterns/     row patterns, for `operators.match_recognize` and `operators.event_patterns`
    percolate/    stored queries, for `operators.percolate`
    execute       the changes of one tick through a graph
    changelog     what a view puts out, as records
    identity      the name of an operator: as long as that is the same, its state lives

Nothing here imports pyspark or the compiler: Spark's workers load this room and no more.
"""
