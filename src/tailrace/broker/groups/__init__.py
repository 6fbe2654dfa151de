"""Consumer groups: who reads what, and how far they have come.

A pure state machine: requests and clock ticks go in; answers (now or later) and
appends to `__consumer_offsets` come out. No socket, no thread.

    coordinator.py          the whole: finds and loads groups, admin, ticks
    group.py                one group and its members, as plain state
    membership.py           join, sync, heartbeat, leave (the classic protocol)
    consumer_group.py       the state of a group of the server-side protocol (KIP-848)
    consumer_membership.py  its heartbeats
    assignors.py            who gets which partitions there
    patterns.py             subscriptions by pattern, matched in linear time
    offsets.py              commit, fetch, delete, expire
    deadlines.py            what is due when
    records.py, consumer_records.py   the bytes of `__consumer_offsets`, Kafka's own schemas
"""
