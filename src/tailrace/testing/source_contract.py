"""What every source must keep, as functions over the records it wrote.

`rebuild` is the naive reader: it applies a change topic from its beginning. The checks
raise AssertionError with what they found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from tailrace.sources.base import LogRecord

Row = dict[str, Any]


def rebuild(records: Iterable[LogRecord]) -> dict[bytes, Row]:
    """The table a change topic describes, by record key."""
    rows: dict[bytes, Row] = {}
    for record in records:
        assert record.key is not None, "a record without key in the topic of a keyed table"
        if record.value is None:
            rows.pop(record.key, None)
            continue
        event = orjson.loads(record.value)
        if event["op"] == "d":
            rows.pop(record.key, None)
        else:
            rows[record.key] = event["after"]
    return rows


def check_events(records: Iterable[LogRecord]) -> None:
    """Idempotency keys are unique, commits never go back, orders grow in a transaction."""
    seen: set[str] = set()
    last: tuple[int, int, int] = (0, 0, 0)
    for record in records:
        if record.value is None:
            continue
        event = orjson.loads(record.value)
        identity = event["idempotency_key"]
        assert identity not in seen, f"event {identity} was written twice"
        seen.add(identity)
        epoch, commit, ordinal = (int(x) for x in identity.split("-"))
        assert commit == event["source"]["commit_lsn"]
        assert ordinal == event["transaction"]["total_order"]
        assert (epoch, commit, ordinal) > last, f"{identity} came after {last}"
        last = (epoch, commit, ordinal)


def check_tombstones(records: Iterable[LogRecord]) -> None:
    """Every delete of a keyed table is followed at once by its tombstone, and only a delete."""
    waiting: bytes | None = None
    for record in records:
        if record.value is None:
            assert record.key == waiting, f"tombstone of {record.key!r} without its delete"
            waiting = None
            continue
        assert waiting is None, f"no tombstone after the delete of {waiting!r}"
        if orjson.loads(record.value)["op"] == "d":
            waiting = record.key
    assert waiting is None


def check_cuts(transactions: Iterable[LogRecord], ends: Mapping[str, Mapping[int, int]]) -> None:
    """Positions of cuts never go back, their offsets grow, and none passes the end."""
    position = ""
    reached: dict[tuple[str, str], int] = {}
    opened: str | None = None
    for record in transactions:
        assert record.value is not None
        document = orjson.loads(record.value)
        match document["status"]:
            case "BEGIN":
                assert opened is None, f"{opened} has no END"
                opened = document["id"]
            case "END":
                assert opened == document["id"], f"END of {document['id']} without BEGIN"
                opened = None
            case "CUT":
                assert opened is None, f"a cut inside {opened}"
                text = f"{document['epoch']:08}:{document['position']}"
                assert text >= position, f"cut {text} after {position}"
                position = text
                for topic, partitions in document["offsets"].items():
                    for partition, offset in partitions.items():
                        before = reached.get((topic, partition), 0)
                        assert offset >= before, f"{topic}/{partition} went back to {offset}"
                        assert offset <= ends[topic][int(partition)]
                        reached[topic, partition] = offset


def check_transactions_are_whole(
    transactions: Iterable[LogRecord], topics: Mapping[str, Iterable[LogRecord]]
) -> None:
    """Every END's count equals the events of that transaction in the change topics."""
    found: dict[str, int] = {}
    for records in topics.values():
        for record in records:
            if record.value is not None:
                event = orjson.loads(record.value)
                name = event["transaction"]["id"]
                if not name.startswith("copy:"):
                    found[name] = found.get(name, 0) + 1
    for record in transactions:
        document = orjson.loads(record.value or b"{}")
        if document.get("status") == "MESSAGE" and document.get("id"):
            found[document["id"]] = found.get(document["id"], 0) + 1
        elif document.get("status") == "END":
            counted = found.pop(document["id"], 0)
            assert counted == document["event_count"], (document, counted)
    assert not found, f"events of transactions without END: {found}"
