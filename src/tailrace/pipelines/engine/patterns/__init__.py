"""Row patterns (`MATCH_RECOGNIZE`), in the order of the passes.

grammar    the text of a PATTERN → a tree
program    the tree → instructions, in order of preference
slots      what conditions and measures look at: rows by navigation, aggregates, classifiers
conditions expressions over slots → Python closures
matcher    one attempt from one row: the preferred match, and how far it looked
partition  the rows of a partition in blocks, with the attempts that began at them

Plain data and plain Python: no pyspark, no parser of SQL.
"""
