"""Rows with values stored out of line change their keys while the table is first copied and
capture is killed: at the end the topic has every value, and never a made-up one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from tailrace.sources.base import LogRecord
from tailrace.testing.source_contract import check_events, check_tombstones, rebuild

ROWS = 1500
DOCUMENTS = (
    "CREATE TABLE documents (id int PRIMARY KEY, title text, body text, meta jsonb)",
    "ALTER TABLE documents ALTER body SET STORAGE EXTERNAL",
    "ALTER TABLE documents ALTER meta SET STORAGE EXTERNAL",
    "INSERT INTO documents SELECT i, 't', repeat('body ' || i || ' ', 600), "
    "jsonb_build_object('n', 12345678901234567890.10 + i, 'x', repeat('m' || i, 900)) "
    f"FROM generate_series(1, {ROWS}) i",
    "ANALYZE documents",
)
BODY = "repeat('new {0} ', 700)"


def churn(dsn: str, seed: int, stop: threading.Event) -> None:
    """Key changes and chains of them, keys used again, updates of other columns."""
    choose = random.Random(seed)
    with psycopg.connect(dsn) as connection:
        while not stop.is_set():
            try:
                for _ in range(choose.choice([1, 1, 2, 6])):
                    a, b, c = (choose.randrange(1, 2 * ROWS) for _ in range(3))
                    move = "UPDATE documents SET id = {1} WHERE id = {0}"
                    for statement in choose.choice(
                        [
                            [move.format(a, b)],
                            [move.format(a, b), move.format(b, c)],
                            [f"DELETE FROM documents WHERE id = {b}", move.format(a, b)],
                            [
                                f"DELETE FROM documents WHERE id = {a}",
                                f"INSERT INTO documents VALUES ({a}, 'again', "
                                f"{BODY.format(a)}, NULL)",
                            ],
                            [f"UPDATE documents SET title = title || '{a % 7}' WHERE id = {a}"],
                            [f"UPDATE documents SET title = 'm', meta = '{{\"n\": 1.50}}' "
                             f"WHERE id = {a}"],
                            [f"UPDATE documents SET body = {BODY.format(b)} WHERE id = {a}"],
                        ]
                    ):  # fmt: skip
                        connection.execute(statement.encode())
                connection.commit()
            except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                connection.rollback()
            time.sleep(0.002)


def records(address: str, topic: str) -> list[LogRecord]:
    from tailrace.client.fetcher import Fetcher

    with Fetcher(address) as fetcher:
        return [LogRecord(r.offset, r.key, r.value) for r in fetcher.read_all(topic)]


def last_cut(address: str) -> dict[str, Any]:
    from tailrace.client.errors import UnknownTopicError
    from tailrace.client.fetcher import Fetcher

    with Fetcher(address) as fetcher:
        try:
            last = fetcher.read_last("shop.transactions")
        except UnknownTopicError:
            last = None
    found: dict[str, Any] = orjson.loads((last and last.value) or b"{}")
    return found


class Process:
    def __init__(self, address: str, directory: Path, dsn: str) -> None:
        script = Path(__file__).parent / "capture_process.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script), "postgres", address, str(directory), dsn, "documents"],
            stderr=subprocess.PIPE, env={**os.environ, "CHUNK_ROWS": "5"},
        )  # fmt: skip

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def began(self, address: str) -> None:
        """Wait for a cut of this process."""
        deadline, before = time.monotonic() + 60, last_cut(address)
        while last_cut(address) == before:
            assert self.process.poll() is None, self.process.communicate()[1].decode()
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def finish(self, address: str, position: str) -> None:
        deadline = time.monotonic() + 120
        while True:
            cut = last_cut(address)
            if cut.get("status") == "CUT" and cut["position"] >= position and not cut["copying"]:
                return
            assert self.process.poll() is None, self.process.communicate()[1].decode()
            assert time.monotonic() < deadline, cut
            time.sleep(0.05)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(int(os.environ.get("TAILRACE_SEEDS", "3"))))
def test_a_key_that_changes_during_the_first_copy_keeps_its_values(
    database: Any, tailrace_broker: str, tmp_path: Path, seed: int
) -> None:
    choose = random.Random(seed)
    database.run(*DOCUMENTS)
    stop = threading.Event()
    writers = [
        threading.Thread(target=churn, args=(database.dsn, 100 * seed + n, stop), daemon=True)
        for n in range(3)
    ]
    for writer in writers:
        writer.start()
    try:
        for _ in range(choose.randrange(3, 7)):
            process = Process(tailrace_broker, tmp_path, database.dsn)
            process.began(tailrace_broker)
            time.sleep(choose.random() * 0.4)
            process.kill()
            if choose.random() < 0.3:  # the rows kept beside the source are a cache
                subprocess.run(["rm", "-rf", str(tmp_path / "sources")], check=True)
    finally:
        stop.set()
        for writer in writers:
            writer.join(20)
    process = Process(tailrace_broker, tmp_path, database.dsn)
    try:
        process.finish(tailrace_broker, database.position())
    finally:
        process.kill()
    found = records(tailrace_broker, "shop.public.documents")
    events = [orjson.loads(r.value) for r in found if r.value is not None]
    # Not even for a moment did the topic show a row with a value left out.
    partial = [e for e in events if e["after"] and len(e["after"]) != 4]
    assert partial == []
    check_events(found)
    check_tombstones(found)
    there = dict(
        database.rows(
            "SELECT id, md5(concat_ws('|', title, body, coalesce(meta::text, 'null'))) "
            "FROM documents"
        )
    )
    topic = {int(orjson.loads(key)["id"]): key for key in rebuild(found)}
    assert sorted(topic) == sorted(there)
    # Values as Postgres itself reads them out of the topic's JSON.
    last = {r.key: r.value for r in found}
    database.run("CREATE TEMP TABLE seen (id int, event text)")
    with database.connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO seen VALUES (%s, %s)",
            [(id, (last[key] or b"").decode()) for id, key in topic.items()],
        )
    wrong = database.rows(
        "SELECT d.id FROM documents d JOIN seen s USING (id), "
        "LATERAL (SELECT (s.event::json->'after') AS a) x WHERE d.title IS DISTINCT FROM a->>'title' "
        "OR d.body IS DISTINCT FROM a->>'body' "
        "OR d.meta::text IS DISTINCT FROM (CASE WHEN a->>'meta' IS NULL THEN NULL ELSE (a->'meta')::jsonb::text END)"
    )
    assert wrong == []
