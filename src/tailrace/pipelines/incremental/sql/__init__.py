"""From SQL to the operator graph, one pass per file.

parse        text → sqlglot's tree, errors that point into the text
bind         names and types → relational plan (`plan`), subqueries taken apart
arrange      filters towards the tables, joins in an order that has conditions
infer        the key of a result
lower        plan → graph of operators
"""
