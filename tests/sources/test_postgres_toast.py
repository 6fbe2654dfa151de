"""Values stored out of line that did not change are never lost and never guessed."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from servers.capture import SMALL, Running
from tailrace.sources import Postgres
from tailrace.sources.base import LogRecord
from tailrace.sources.postgres.refill import Refill

DOCUMENTS = (
    "CREATE TABLE documents (id int PRIMARY KEY, title text, body text, tags text)",
    "ALTER TABLE documents ALTER body SET STORAGE EXTERNAL",
    "ALTER TABLE documents ALTER tags SET STORAGE EXTERNAL",
)
BIG = "repeat('body ', 2000)"


def contents(database: Any) -> dict[int, tuple[str, str, str]]:
    return {i: (t, b, g) for i, t, b, g in database.rows("SELECT * FROM documents")}


def captured(running: Any) -> dict[int, tuple[str, str, str]]:
    rows = running.written.table("public.documents")
    return {r["id"]: (r["title"], r["body"], r["tags"]) for r in rows}


def test_an_unchanged_value_is_completed_from_the_last_row(database: Any, capture: Any) -> None:
    database.run(*DOCUMENTS, f"INSERT INTO documents VALUES (1, 'copied', {BIG}, 'a')")
    with capture(tables=["documents"]) as running:
        running.copied()
        database.run(
            f"INSERT INTO documents VALUES (2, 'streamed', {BIG}, {BIG} || 'x')",
            "UPDATE documents SET title = title || '!'",
            "UPDATE documents SET title = title || '!', tags = 'b' WHERE id = 2",
            "UPDATE documents SET id = 3 WHERE id = 2",
            "UPDATE documents SET title = title || '!'",
        )
        running.reach(database.position())
    assert captured(running) == contents(database)
    assert not any("missing" in e["source"] for e in running.written.events("public.documents"))
    running.written.check()


def test_it_is_completed_after_a_restart_too(database: Any, capture: Any, tmp_path: Path) -> None:
    database.run(*DOCUMENTS)
    with capture(tables=["documents"]) as running:
        running.copied()
        database.run(f"INSERT INTO documents VALUES (1, 'one', {BIG}, 'a')")
        running.reach(database.position())
    database.run("UPDATE documents SET title = 'two'")
    with capture(tables=["documents"]) as running:
        running.reach(database.position())
    assert captured(running) == contents(database)
    # The store is a cache: without it the topics are read again.
    shutil.rmtree(tmp_path / "sources")
    database.run("UPDATE documents SET title = 'three'")
    with capture(tables=["documents"]) as running:
        running.reach(database.position())
    assert captured(running) == contents(database)
    running.written.check()


def test_under_full_identity_the_old_row_completes_it(database: Any, capture: Any) -> None:
    database.run(*DOCUMENTS, "ALTER TABLE documents REPLICA IDENTITY FULL",
                 f"INSERT INTO documents VALUES (1, 'one', {BIG}, 'a')")  # fmt: skip
    with capture(tables=["documents"], snapshot=False) as running:
        running.until(lambda: bool(running.written.notes("CUT")))
        database.run("UPDATE documents SET title = 'two'", "UPDATE documents SET id = 9",
                     "DELETE FROM documents")  # fmt: skip
        running.reach(database.position())
    update, gone, new, deleted = running.written.events("public.documents")
    assert (update["op"], gone["op"], new["op"], deleted["op"]) == ("u", "d", "c", "d")
    assert update["after"]["body"] == "body " * 2000
    assert update["before"]["title"] == "one"
    assert new["after"]["body"] == "body " * 2000
    assert deleted["before"]["body"] == "body " * 2000
    running.written.check()


def test_a_value_never_seen_is_read_before_the_row_is_written(database: Any, capture: Any) -> None:
    database.run(*DOCUMENTS, f"INSERT INTO documents VALUES (1, 'one', {BIG}, 'a')")
    with capture(tables=["documents"], snapshot=False) as running:
        running.until(lambda: bool(running.written.notes("CUT")))
        database.run("UPDATE documents SET title = 'two'")
        running.reach(database.position())
        running.copied()
    (event,) = running.written.events("public.documents")
    assert event["op"] == "u"
    assert event["after"] == {"id": 1, "title": "two", "body": "body " * 2000, "tags": "a"}
    running.written.check()


def test_rows_that_wait_for_a_value_are_reported(
    database: Any, capture: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    begin = Refill.begin
    monkeypatch.setattr(Refill, "begin", lambda *given: begin(*given) if go.is_set() else None)
    database.run(*DOCUMENTS, f"INSERT INTO documents VALUES (1, 'one', {BIG}, 'a')")
    # A log transaction that waits for others must not be reported before it is written.
    paced = replace(SMALL, pace_seconds=0.5)
    with capture(paced, tables=["documents"], snapshot=False) as running:
        running.until(lambda: bool(running.written.notes("CUT")))
        database.run("UPDATE documents SET title = 'two'")
        running.until(lambda: bool(report(tmp_path).get("incomplete")))
        found = report(tmp_path)["incomplete"]
        assert (found["rows"], found["tables"]) == (1, {"public.documents": 1})
        assert running.written.notes("CUT")[-1]["copying"] == ["public.documents"]
        assert running.written.events("public.documents") == []
        go.set()
        running.copied()
        running.until(lambda: not report(tmp_path).get("incomplete"))
    assert captured(running) == contents(database)


def report(directory: Path) -> dict[str, Any]:
    from tailrace.telemetry.part import read_reports

    return next(iter(read_reports(directory)), {})


def test_a_row_without_a_value_from_an_earlier_version_is_completed(
    database: Any, capture: Any, shared: Any, tmp_path: Path
) -> None:
    database.run(*DOCUMENTS, f"INSERT INTO documents VALUES (1, 'one', {BIG}, 'a')")
    with capture(tables=["documents"]) as running:
        running.copied()
    (topic,) = shared.topics["shop.public.documents"]
    written = topic[0]
    event = orjson.loads(written.value)
    del event["after"]["body"]
    event["source"]["missing"] = ["body"]
    topic[0] = LogRecord(written.offset, written.key, orjson.dumps(event))
    shutil.rmtree(tmp_path / "sources")
    with capture(tables=["documents"]) as running:
        running.until(lambda: len(running.written.events("public.documents")) == 2)
        running.copied()
    assert captured(running) == contents(database)
    running.written.check()


def test_a_masked_value_stored_out_of_line_is_kept(database: Any, capture: Any) -> None:
    """Its digest is short however large the value is."""
    database.run(*DOCUMENTS, f"INSERT INTO documents VALUES (1, 'one', {BIG}, 'a')")
    with capture(tables=["documents"], mask={"documents": {"body": "sha256"}}) as running:
        running.copied()
        database.run("UPDATE documents SET title = 'two'")
        running.reach(database.position())
    copied, updated = running.written.events("public.documents")
    assert updated["op"] == "u"
    assert updated["after"]["body"] == copied["after"]["body"]
    assert len(updated["after"]["body"]) == 64


def test_a_masked_key_is_never_written_down(database: Any, capture: Any, shared: Any) -> None:
    database.run(
        "CREATE TABLE documents (id text PRIMARY KEY, title text, body text)",
        DOCUMENTS[1],
        f"INSERT INTO documents VALUES ('very-secret', 'one', {BIG})",
    )
    with capture(
        tables=["documents"], snapshot=False, mask={"documents": {"id": "sha256"}}
    ) as running:
        running.until(lambda: bool(running.written.notes("CUT")))
        database.run("UPDATE documents SET title = 'two'")
        running.until(lambda: len(running.written.events("public.documents")) == 1)
        running.copied()
    (event,) = running.written.events("public.documents")
    assert (event["after"]["title"], event["after"]["body"]) == ("two", "body " * 2000)
    for topic in shared.topics:
        for record in shared.records(topic):
            assert b"very-secret" not in (record.key or b"") + (record.value or b"")


def test_a_copied_row_fills_what_was_missing(database: Any, capture: Any) -> None:
    """Rows change while they wait to be copied: whichever comes last is complete."""
    database.run(
        *DOCUMENTS,
        f"INSERT INTO documents SELECT i, 't', {BIG} || i, 'a' FROM generate_series(1, 300) i",
    )
    with capture(tables=["documents"]) as running:
        for i in range(60):
            database.run(f"UPDATE documents SET title = 't{i}' WHERE id % 50 = {i % 50}")
        running.copied()
        running.reach(database.position())
    assert captured(running) == contents(database)
    running.written.check()


def test_numbers_in_an_unchanged_document_keep_their_digits(database: Any, capture: Any) -> None:
    database.run(
        "CREATE TABLE documents (id int PRIMARY KEY, title text, meta jsonb)",
        "ALTER TABLE documents ALTER meta SET STORAGE EXTERNAL",
        "INSERT INTO documents VALUES (1, 'one', jsonb_build_object("
        "'n', 12345678901234567890.10, 'x', repeat('m', 4000)))",
    )
    with capture(tables=["documents"]) as running:
        running.copied()
        database.run("UPDATE documents SET title = 'two'")
        running.reach(database.position())
    value = running.written.shared.values("shop.public.documents")[-1]
    assert b'"n": 12345678901234567890.10' in value
    assert running.written.events("public.documents")[-1]["op"] == "u"


def test_values_survive_restarts_inside_large_transactions(
    database: Any, shared: Any, tmp_path: Path
) -> None:
    """The log goes away at a commit, often in the middle of a transaction that changes keys."""
    settings = replace(SMALL, spill_rows=3, part_rows=7, chunk_rows=4, chunks_ahead=1)
    database.run(
        *DOCUMENTS,
        f"INSERT INTO documents SELECT i, 't', {BIG} || i, 'a' FROM generate_series(1, 40) i",
    )
    source = Postgres("shop", database.dsn, tables=["documents"])
    for attempt in range(10):
        database.wait_for_slot()
        running = Running(source, shared, tmp_path, settings, fail_after=2 + attempt % 7)
        sign = "+" if attempt % 2 == 0 else "-"
        database.run(
            f"BEGIN; UPDATE documents SET id = id {sign} 1000, title = 'm{attempt}' "
            f"WHERE id % 3 = {attempt % 3}; UPDATE documents SET title = title || '.'; "
            f"DELETE FROM documents WHERE id = {attempt}; COMMIT",
            f"UPDATE documents SET body = {BIG} || 'n{attempt}' WHERE id % 7 = {attempt % 7}",
        )
        try:
            with running:
                running.reach(database.position())
                running.copied()
        except ConnectionError:
            continue
    database.wait_for_slot()
    with Running(source, shared, tmp_path, settings) as running:
        running.reach(database.position())
        running.copied()
    assert captured(running) == contents(database)
    events = running.written.events("public.documents")
    assert all(len(e["after"]) == 4 for e in events if e["after"])
    running.written.check()
