"""Decisions become facts: event topics with one writer per partition.

declare      what a user writes: types, `evolve`, commands, upcasters; nothing runs
mistakes     what can be known to be wrong without running
event_types  event classes to bytes and back, over versions
records      an event as a record of the log
topic        the event topic itself: made, checked, never compacted
writing      the fenced idempotent batches of one partition
index        a cache on this host of what a partition holds: LMDB
reading      events out of the log
partition    one partition as its owner knows it: states, ids, tags
owner        the thread that decides for one partition
membership   which process owns which partition
forwarding   commands and questions between processes
opened       `accounts.open(log)`: what a program calls
personal     fields that hold what is known of a person
sealing      such fields sealed in the log, and the keys of their subjects
erasing      a subject's keys destroyed, with a proof
due          streams that something is due for, at its time
reservations names, seats, places in line: a topic of their own
reactions    what a user writes to let commands follow from facts
processes    the journal of a reaction: steps, outcomes, timers
reacting     a reaction at work: facts read, commands carried out
"""
