"""Tailrace's own sources and sinks as connectors: made over HTTP, exactly once under kill -9."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from connectors.conftest import Asking, task_processes, until
from tailrace.client.log import Log
from tailrace.connectors.asked import answer
from tailrace.connectors.independent import directory_of
from tailrace.project.own_connectors import MySQLSource, PostgresSink, PostgresSource, SQLiteSink


def kill_tasks() -> None:
    until(lambda: bool(task_processes()))
    for one in task_processes():
        os.kill(one.pid, signal.SIGKILL)


def rows(log: Log, topic: str) -> list[Any]:
    if log.topic(topic) is None:
        return []
    return [orjson.loads(one.value)["after"]["id"] for one in log.read(topic) if one.value]


def test_a_database_is_captured_once_through_kills_and_pauses(ask: Asking, log: Log, tmp_path: Path) -> None:  # fmt: skip
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)")
        shop.execute("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
        ask.make("captured", "SQLiteSource", topic__prefix="shop", path=str(path), poll="5 ms")
        until(lambda: rows(log, "shop.main.orders") == [1, 2])
        kill_tasks()
        shop.execute("INSERT INTO orders VALUES (3, 'c')")
        until(lambda: rows(log, "shop.main.orders") == [1, 2, 3])
        assert ask("PUT", "/connectors/captured/pause")[0] == 202
        ask.wait("captured", "PAUSED", "PAUSED")
        shop.execute("INSERT INTO orders VALUES (4, 'd')")
        assert ask("PUT", "/connectors/captured/resume")[0] == 202
        until(lambda: rows(log, "shop.main.orders") == [1, 2, 3, 4])
        offsets = lambda: ask("GET", "/connectors/captured/offsets")[1]["offsets"]  # noqa: E731
        until(lambda: offsets() != [])
        assert offsets()[0]["offset"]["position"].startswith("sqlite:shop:")
        ask("PUT", "/connectors/captured/stop")
        until(lambda: not task_processes())
        status, told = ask("DELETE", "/connectors/captured/offsets")
        assert (status, "transactions in the log" in told["message"]) == (500, True)
        ask("DELETE", "/connectors/captured")


@pytest.mark.crash
def test_a_topic_is_copied_once_through_a_kill(ask: Asking, log: Log, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    with log.producer() as producer:
        for number in range(200):
            producer.send("people", orjson.dumps({"id": number, "name": "x"}), key=str(number))
    ask.make("copies", "SQLiteSink", topics="people", path=str(path), table="${topic}", key="id", batch__rows="20")  # fmt: skip

    def count() -> int:
        with closing(sqlite3.connect(path)) as copy:
            try:
                return int(copy.execute("SELECT count(*) FROM people").fetchone()[0])
            except sqlite3.OperationalError:
                return -1

    until(lambda: count() > 0)
    kill_tasks()
    until(lambda: count() == 200)
    group = lambda: ask("GET", "/connectors/copies/offsets")[1]["offsets"]  # noqa: E731
    until(lambda: [one["offset"]["kafka_offset"] for one in group()] == [200], group)
    ask("PUT", "/connectors/copies/stop")
    until(lambda: not task_processes())
    place = {
        "partition": {"kafka_topic": "people", "kafka_partition": 0},
        "offset": {"kafka_offset": 0},
    }
    assert ask("PATCH", "/connectors/copies/offsets", {"offsets": [place]})[0] == 500
    assert ask("DELETE", "/connectors/copies/offsets")[0] == 500
    ask("DELETE", "/connectors/copies")


def look(connector: str, settings: dict[str, str]) -> dict[str, Any]:
    """What a worker is told of settings."""
    where = f"tailrace.project.own_connectors:{connector}"
    given = {"name": "looked-at", **settings}
    found: dict[str, Any] = answer({"ask": "look", "plugins": [], "where": where, "settings": given})["values"]  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("connector", "settings", "told"),
    [
        ("PostgresSource", {"dsn": "mysql://x/y"}, "no Postgres address"),
        ("PostgresSource", {"dsn": "postgres://x/y", "mask": '{"orders": {"name": "blur"}}'}, "unknown mask"),
        ("PostgresSource", {"dsn": "postgres://x/y", "mask": "orders"}, "no JSON object"),
        ("PostgresSource", {}, "dsn"),
        ("SQLiteSink", {"topics": "a,b", "tasks.max": "2", "path": "x.db", "table": "t"}, "${topic}"),
        ("SQLiteSink", {"topics": "a,b", "path": "x.db", "table": "${topic}"}, "each topic is a task"),
        ("SQLiteSink", {"name": "../x", "topics": "a", "path": "x.db", "table": "t"}, "dead letters"),
        ("SQLiteSource", {"name": "../x", "path": "x.db"}, "name of a source"),
        ("SQLiteSink", {"topics.regex": "a.*", "path": "x.db", "table": "t"}, "by name"),
        ("RedisSink", {"topics": "a", "url": "redis://h", "prefix": "p", "expire": "soon"}, "soon"),
    ],
)  # fmt: skip
def test_settings_that_a_declaration_refuses(connector: str, settings: dict[str, str], told: str) -> None:  # fmt: skip
    errors = [text for one in look(connector, settings).values() for text in one["errors"]]
    assert any(told in text for text in errors), errors


@pytest.mark.parametrize("name", ["shop", "a/b", "..", "../../x", ".", "/etc"])
def test_the_state_of_a_task_stays_in_its_directory(name: str, tmp_path: Path) -> None:
    assert directory_of(str(tmp_path), name, 0).resolve().parent == tmp_path.resolve()


def test_secrets_are_shown_nowhere() -> None:
    given = {"listen": "127.0.0.1:0", "secret": "whsec_aaaa,whsec_bbbb"}
    assert "whsec_" not in str(look("WebhookSource", given))
    assert not any(
        one["errors"] for one in look("PostgresSource", {"dsn": "${env:SHOP_DSN}"}).values()
    )


def test_settings_mean_what_the_declaration_means() -> None:
    text = {
        "name": "shop", "dsn": "mysql://h/shop", "tables": "orders, people", "copy.connections": "2",
        "mask": '{"people": {"name": "redact"}}', "outbox": '{"table": "outbox"}', "snapshot": "false",
    }  # fmt: skip
    made = MySQLSource.declaration(MySQLSource.config.typed(text))
    assert (made.name, made.tables, made.copy_connections) == ("shop", ["orders", "people"], 2)
    assert (made.mask, made.outbox.table, made.snapshot) == ({"people": {"name": "redact"}}, "outbox", False)  # fmt: skip
    plain = PostgresSource.declaration(
        PostgresSource.config.typed({"name": "a", "dsn": "postgres://h/d"})
    )
    from tailrace import sinks, sources

    assert plain == sources.Postgres(
        "a", dsn="postgres://h/d", tables=plain.tables, exclude=plain.exclude
    )
    target = PostgresSink.declaration(
        {
            "topics": "people",
            **PostgresSink.config.typed({"dsn": "postgres://h/d", "table": "x.${topic}"}),
        }
    )
    assert target == sinks.Postgres("postgres://h/d", table="x.people")
    assert SQLiteSink.config.typed({"path": "p", "table": "t"})["batch.rows"] == 20_000
