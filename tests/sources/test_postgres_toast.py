"""Values stored out of line that did not change are never lost and never guessed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

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


def test_a_value_never_seen_is_named_missing(database: Any, capture: Any) -> None:
    database.run(*DOCUMENTS, f"INSERT INTO documents VALUES (1, 'one', {BIG}, 'a')")
    with capture(tables=["documents"], snapshot=False) as running:
        running.until(lambda: bool(running.written.notes("CUT")))
        database.run("UPDATE documents SET title = 'two'")
        running.reach(database.position())
    (event,) = running.written.events("public.documents")
    assert event["source"]["missing"] == ["body"]
    assert event["after"] == {"id": 1, "title": "two", "tags": "a"}


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
