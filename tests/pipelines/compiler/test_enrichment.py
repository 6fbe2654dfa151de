"""A stream enriched from a table that changes: the table as it is, and the table as it was."""

from __future__ import annotations

import datetime
import random

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.testing.recompute import Recompute, as_bag
from tailrace.testing.ticks import MemoryTables, table

EVENTS = table("events", "id BIGINT, person BIGINT, at TIMESTAMP", [], "stream")
PEOPLE = table("app.public.people", "id BIGINT, name STRING", ["id"], "history")
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
NOW = "SELECT e.id, p.name FROM events e {} JOIN app.people p ON p.id = e.person"
THEN = "SELECT e.id, p.name FROM events e LEFT JOIN app.people FOR SYSTEM_TIME AS OF e.at p ON p.id = e.person"  # fmt: skip
BY_NAME = "SELECT p.name, count(*) AS n FROM events e JOIN app.people p ON p.id = e.person GROUP BY p.name"  # fmt: skip


def test_a_stream_shows_the_table_as_it_is_or_as_it_was() -> None:
    chance = random.Random(11)
    current = [NOW.format("INNER"), NOW.format("LEFT"), BY_NAME]
    views = [ViewDefinition(f"v{i}", sql) for i, sql in enumerate([*current, THEN])]
    memory = MemoryTables(compile_views(views, [EVENTS, PEOPLE]), shards=3)
    events: list[dict[str, object]] = []
    people: dict[int, dict[str, object]] = {}
    versions: dict[int, list[tuple[datetime.datetime, str | None]]] = {}
    with Recompute([EVENTS, PEOPLE]) as judge:
        for hour in range(25):
            now = START + datetime.timedelta(hours=hour)
            for _ in range(chance.randint(0, 3)):
                person = chance.randint(1, 4)
                if person in people and chance.random() < 0.3:
                    # Gone; or under another key from now on, in the same moment.
                    row = people.pop(person)
                    memory.delete(PEOPLE.topic, {**row, "__versioned_at": now})
                    versions.setdefault(person, []).append((now, None))
                    if chance.random() < 0.5:
                        continue
                    person += 4
                name = chance.choice(["Ann", "Bob", "Cy"])
                people[person] = {"id": person, "name": name}
                memory.upsert(PEOPLE.topic, {**people[person], "__versioned_at": now})
                versions.setdefault(person, []).append((now, name))
            for _ in range(chance.randint(0, 4)):
                at = now + datetime.timedelta(hours=chance.randint(-3, 1), minutes=30)
                event = {"id": len(events), "person": chance.randint(1, 8), "at": at}
                events.append(event)
                memory.upsert("events", event)
            memory.tick()
            judge.load({"events": events, PEOPLE.topic: people.values()})
            for number, sql in enumerate(current):
                shown = [tuple(row.values()) for row in memory.rows(f"v{number}")]
                assert as_bag(shown) == as_bag(judge.ask(sql)), sql
            then = []
            for event in events:
                known = [(n, name) for n, (since, name) in enumerate(versions.get(event["person"], [])) if since <= event["at"]]  # type: ignore[call-overload, operator]  # fmt: skip
                then.append((event["id"], known[-1][1] if known else None))
            assert as_bag(tuple(row.values()) for row in memory.rows("v3")) == as_bag(then)
