"""Keyed state of operators: truth in delta files, speed from a cache on each host.

A *shard* is a numbered part of all operators' state; one task at a time works on it.
The truth of a shard is a chain of files (`delta`), of which those count that a
committed tick row names; the cache (`cache`) is an LMDB environment that holds
committed ticks only and can be thrown away at any time. An attempt (`shard`) reads the
cache and keeps its own changes in memory, so an attempt that is thrown away leaves
nothing behind but a file nobody names.
"""
