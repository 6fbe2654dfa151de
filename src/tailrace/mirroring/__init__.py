"""Keeping the topics of one log in another, exactly once, without opening batches.

plan       what a mirror is to do
rows       what the target keeps of a mirror: positions, runs, state, owners
fetch      one fetch for all partitions of a leader
topics     topics, partitions and settings follow
origins    which site wrote a record, so that none goes round for ever
conflicts  which record of a key wins, so that all sites end equal
whole      cuts that no transaction of the source crosses
relay      one cycle: fetch, write, rows, commit; and what stops a partition
groups     offsets of groups, stored at the target
translate  offsets from one log to the other and back, by runs
compare    both sides, record by record
fail_over  leaving the source, and coming back
status     how a mirror is
process    a mirror as a part of a project
"""
