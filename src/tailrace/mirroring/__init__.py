"""Keeping the topics of one log in another, exactly once, without opening batches.

rows       what the target keeps of a mirror: positions, runs, state
relay      one cycle: fetch, write, rows, commit; and what stops a partition
translate  offsets from one log to the other and back, by runs
compare    both sides, record by record
"""
