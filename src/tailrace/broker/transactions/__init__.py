"""Transactions: several partitions and offsets change together or not at all.

A pure state machine like the groups: requests and ticks in, answers and appends out.

    state.py        what is known about one transactional id
    records.py      the bytes of `__transaction_state`, Kafka's own schema
    coordinator.py  init, add partitions, end, time out
    recovery.py     what a start does with transactions found half done

The life of a commit, in the order of its writes; a crash between any two of them
leaves either an open transaction, which times out and is aborted, or a prepared one,
which the next start completes:

    1  the transaction's partitions are synced       else a commit could lose records
    2  PrepareCommit is appended and synced          from here on it is committed
    3  a marker is appended to every partition       readers see the records
    4  the client is answered
    5  the markers are synced, Complete is appended  then the next one may begin

`transaction.flush=false` leaves the syncs out: a crash of the process still loses
nothing, a power cut may.
"""
