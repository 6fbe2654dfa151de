"""Consumer groups: who reads what, and how far they have come.

A pure state machine: requests and clock ticks go in; answers (now or later) and
appends to `__consumer_offsets` come out. No socket, no thread.

    deadlines.py    what is due when
    group.py        one group and its members, as plain state
    membership.py   join, sync, heartbeat, leave (the classic protocol)
    offsets.py      commit, fetch, delete, expire
    records.py      the bytes of `__consumer_offsets`, Kafka's own schemas
    coordinator.py  the whole: finds and loads groups, admin, ticks
"""
