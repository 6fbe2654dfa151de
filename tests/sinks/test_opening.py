"""Sinks that open sealed columns: plain at the edge, NULL there once the subject was erased."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from servers.postgres import PostgresServer
from tailrace.broker.embedded import BrokerThread
from tailrace.client.log import Log, connect
from tailrace.facts.erasing import erase_subject
from tailrace.facts.sealing import Keys
from tailrace.project.opening import KeyOpener
from tailrace.sinks import Parquet, Postgres, SQLite, Topic
from tailrace.sinks.base import view_shape
from tailrace.sinks.dead_letters import ListedDeadLetters
from tailrace.sinks.delivery import Delivery
from tailrace.sinks.errors import ShapeError, SinkDeclarationError, SinkError
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.sinks.verify import Verifier
from tailrace.testing.changelogs import MemoryLog, TickWriter

SECRET = "a secret of the tests, long enough to be one"
PLACES = (("customers", "nickname"), ("customers", "name"))
COLUMNS = [("id", "BIGINT"), ("who", "STRING"), ("city", "STRING")]


@dataclass
class Shop:
    """A log with keys, and a view of sealed names under another name."""

    log: Log
    keys: Keys
    address: str
    directory: Path
    writer: TickWriter
    letters: ListedDeadLetters

    def seal(self, customer: int, name: str) -> str:
        return self.keys.seal("customers", "name", f"customer:{customer}", name)

    def write(self, *rows: tuple[int, str | None, str | None]) -> None:
        changes = [({"id": i}, {"id": i, "who": who, "city": city}) for i, who, city in rows]
        self.writer.tick({"people": changes})

    def erase(self, customer: int) -> None:
        erase_subject(self.log, self.keys, f"customer:{customer}", "4711", patience=0.0)

    def opener(self) -> KeyOpener:
        return KeyOpener(PLACES, SECRET, self.address)

    def deliver(self, copy: Copy, *, again: bool = True) -> int:
        """As after a restart: how many rows were written again."""
        opener = self.opener()
        delivery = Delivery(
            copy,
            make_sink(copy, Surroundings(self.directory)),
            self.writer.log,
            "shop",
            self.letters,
            memory=self.directory / "sinks" / f"{copy.name}.columns",
            opener=opener,
        )
        try:
            delivery.step(0)
            return delivery.forget_erased() if again else 0
        finally:
            delivery.close()
            opener.close()

    def sqlite(self, **options: Any) -> Copy:
        declaration = SQLite(self.directory / "edge.db", table="people", open=("who",), **options)
        return Copy("people.sqlite", "people", "people", "view", ("id",), declaration)

    def held(self) -> dict[int, str | None]:
        with closing(sqlite3.connect(self.directory / "edge.db")) as connection:
            return dict(connection.execute("SELECT id, who FROM people").fetchall())


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    settings = {"log.cleaner.backoff.ms": "50"}
    with (
        BrokerThread(tmp_path / "log", durable=False, settings=settings) as broker,
        connect(broker.address) as log,
        closing(Keys(log, SECRET)) as keys,
    ):
        writer = TickWriter(MemoryLog())
        writer.declare("people", ["id"], COLUMNS)
        yield Shop(log, keys, broker.address, tmp_path, writer, ListedDeadLetters())


def test_an_edge_has_plain_values_and_null_once_they_are_erased(shop: Shop) -> None:
    copy = shop.sqlite()
    shop.write((1, shop.seal(17, "Ann"), None), (2, shop.seal(18, "Bob"), None), (3, "none", None))
    assert shop.deliver(copy) == 0
    assert shop.held() == {1: "Ann", 2: "Bob", 3: "none"}
    shop.write((4, shop.seal(17, "Ann again"), None))
    shop.erase(17)
    assert shop.deliver(copy) == 2  # the row of before, and the one that came as NULL
    assert shop.held() == {1: None, 2: "Bob", 3: "none", 4: None}
    assert shop.deliver(copy) == 0  # it is written down that this was done
    shop.erase(18)
    assert shop.deliver(copy) == 1
    assert shop.held() == {1: None, 2: None, 3: "none", 4: None}
    shop.write((2, "somebody", None))
    shop.deliver(copy)
    (shop.directory / "sinks" / "people.sqlite.erased").unlink()  # without the file: once more
    assert shop.deliver(copy) == 3
    assert shop.held() == {1: None, 2: "somebody", 3: "none", 4: None}


def test_a_postgres_table_is_opened_and_erased(shop: Shop, postgres_server: PostgresServer) -> None:
    import psycopg

    dsn = postgres_server.create_database("opening")
    declaration = Postgres(dsn, table="public.people", open=["who"])
    copy = Copy("people.postgres", "people", "people", "view", ("id",), declaration)

    def held() -> dict[int, str | None]:
        with psycopg.connect(dsn) as connection:
            return dict(connection.execute("SELECT id, who FROM public.people").fetchall())

    shop.write((1, shop.seal(17, "Ann"), None), (2, shop.seal(18, "Bob"), None))
    shop.deliver(copy)
    assert held() == {1: "Ann", 2: "Bob"}
    shop.erase(17)
    assert shop.deliver(copy) == 1
    assert held() == {1: None, 2: "Bob"}


CHILD = """
import os, pickle, signal, sys
from pathlib import Path
from tailrace.project.opening import KeyOpener
from tailrace.sinks import SQLite
from tailrace.sinks.dead_letters import ListedDeadLetters
from tailrace.sinks.delivery import Delivery
from tailrace.sinks.opening import WrittenAgain
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.sinks.sqlite import SQLiteSink

directory, address, secret, moment = Path(sys.argv[1]), *sys.argv[2:]
log = pickle.loads((directory / "memory.log").read_bytes())
apply = SQLiteSink.apply

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def dying(self, batch):
    if batch.forced:
        die()
    apply(self, batch)

if moment == "before":
    SQLiteSink.apply = dying
else:
    WrittenAgain.note = die
declaration = SQLite(directory / "edge.db", table="people", open=("who",))
copy = Copy("people.sqlite", "people", "people", "view", ("id",), declaration)
delivery = Delivery(
    copy, make_sink(copy, Surroundings(directory)), log, "shop", ListedDeadLetters(),
    memory=directory / "sinks" / "people.sqlite.columns",
    opener=KeyOpener([("customers", "name")], secret, address),
)
delivery.step(0)
delivery.forget_erased()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_kill_left_is_erased_at_the_next_start(shop: Shop, moment: str) -> None:
    copy = shop.sqlite()
    shop.write((1, shop.seal(17, "Ann"), None), (2, shop.seal(18, "Bob"), None))
    shop.deliver(copy)
    shop.erase(17)
    (shop.directory / "memory.log").write_bytes(pickle.dumps(shop.writer.log))
    died = subprocess.run(
        [sys.executable, "-c", CHILD, str(shop.directory), shop.address, SECRET, moment],
        timeout=120,
        check=False,
        env=os.environ,
    )
    assert died.returncode == -signal.SIGKILL
    assert shop.held()[1] == ("Ann" if moment == "before" else None)
    assert shop.deliver(copy) == 1
    assert shop.held() == {1: None, 2: "Bob"}


def test_a_copy_that_was_put_back_is_erased_again(shop: Shop) -> None:
    copy = shop.sqlite()
    shop.write((1, shop.seal(17, "Ann"), None))
    shop.deliver(copy)
    backup = (shop.directory / "edge.db").read_bytes()
    shop.write((2, shop.seal(18, "Bob"), None))
    shop.erase(17)
    assert shop.deliver(copy) == 1
    for left in shop.directory.glob("edge.db-*"):
        left.unlink()
    (shop.directory / "edge.db").write_bytes(backup)
    assert shop.held() == {1: "Ann"}
    shop.deliver(copy)
    assert shop.held() == {1: None, 2: "Bob"}


def test_a_copy_from_now_on_gets_no_older_rows_by_an_erasure(shop: Shop) -> None:
    copy = shop.sqlite(start="now")
    shop.write((1, shop.seal(17, "Ann"), None))
    shop.deliver(copy)
    shop.write((2, shop.seal(17, "Anna"), None))
    shop.deliver(copy)
    assert shop.held() == {2: "Anna"}
    shop.erase(17)
    assert shop.deliver(copy) == 1
    assert shop.held() == {2: None}


def test_the_one_row_of_a_view_without_a_key_is_written_again(shop: Shop) -> None:
    shop.writer.declare("newest", [], [("who", "STRING")])
    declaration = SQLite(shop.directory / "edge.db", table="newest", open=("who",))
    copy = Copy("newest.sqlite", "newest", "newest", "view", (), declaration)

    def held() -> list[Any]:
        with closing(sqlite3.connect(shop.directory / "edge.db")) as connection:
            return connection.execute("SELECT who FROM newest").fetchall()

    shop.writer.tick({"newest": [({}, {"who": shop.seal(17, "Ann")})]})
    shop.deliver(copy)
    assert held() == [("Ann",)]
    shop.erase(17)
    assert shop.deliver(copy) == 1
    assert held() == [(None,)]


def test_what_cannot_be_opened_is_a_dead_letter_and_stays_sealed(shop: Shop) -> None:
    copy = shop.sqlite()
    sealed = shop.keys.seal("elsewhere", "name", "customer:17", "Ann")
    shop.write((1, sealed, None), (2, shop.seal(18, "Bob"), None))
    shop.deliver(copy)
    assert shop.held() == {2: "Bob"}
    (letter,) = shop.letters.letters.values()
    assert (letter.row["who"], letter.error["code"]) == (sealed, "sealed-value")


def test_a_row_that_the_target_refuses_is_a_sealed_dead_letter(shop: Shop) -> None:
    copy = shop.sqlite()
    with closing(sqlite3.connect(shop.directory / "edge.db")) as connection:
        connection.execute(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, who TEXT NOT NULL CHECK (who <> 'Ann'), city TEXT)"
        )
    sealed = shop.seal(17, "Ann")
    shop.write((1, sealed, None), (2, shop.seal(18, "Bob"), None))
    shop.deliver(copy)
    (letter,) = shop.letters.letters.values()
    assert letter.row["who"] == sealed
    assert b"Ann" not in letter.encode()
    shop.erase(18)
    with pytest.raises(SinkError, match="without what was erased"):
        shop.deliver(copy)  # NOT NULL: never called done
    assert shop.held() == {2: "Bob"}
    with pytest.raises(SinkError, match="without what was erased"):
        shop.deliver(copy)


def test_a_comparison_opens_what_it_expects(shop: Shop) -> None:
    copy = shop.sqlite()
    shop.write((1, shop.seal(17, "Ann"), None), (2, shop.seal(18, "Bob"), None))
    shop.deliver(copy)
    with (
        closing(shop.opener()) as opener,
        closing(make_sink(copy, Surroundings(shop.directory))) as sink,
        Verifier(
            copy.name,
            sink,
            shop.writer.log,
            view_shape(shop.writer.views["people"]),
            columns=("who",),
            opener=opener,
        ) as verifier,
    ):
        assert verifier.compare().in_step
        with closing(sqlite3.connect(shop.directory / "edge.db")) as connection, connection:
            connection.execute("UPDATE people SET who = 'Eve' WHERE id = 1")
        found = verifier.compare()
        assert [one.expected and one.expected["who"] for one in found.differences] == ["Ann"]
        verifier.repair(found.keys)
        assert verifier.compare().in_step
    assert shop.held() == {1: "Ann", 2: "Bob"}


def test_open_is_refused_where_it_cannot_be(shop: Shop) -> None:
    with pytest.raises(SinkDeclarationError, match="no edge"):
        Topic("elsewhere", open=("who",))
    with pytest.raises(SinkDeclarationError):
        SQLite("edge.db", table="people", open="who")  # type: ignore[arg-type]
    for table, columns, word in (("a", ("id",), "key column"), ("b", ("age",), "is no text")):
        shop.writer.declare("aged", ["id"], [("id", "BIGINT"), ("age", "INT")])
        shop.writer.tick({"aged": [({"id": 1}, {"id": 1, "age": 7})]})
        declaration = SQLite(shop.directory / "edge.db", table=table, open=columns)
        copy = Copy("aged.sqlite", "aged", "aged", "view", ("id",), declaration)
        with pytest.raises(ShapeError, match=word):
            shop.deliver(copy)


def test_appended_rows_are_opened_and_stay(shop: Shop) -> None:
    import pyarrow.dataset as dataset

    declaration = Parquet(shop.directory / "history", open=("who",))
    copy = Copy("people.parquet", "people", "people", "view", ("id",), declaration)
    sealed = shop.seal(17, "Ann")
    shop.write((1, sealed, None))
    shop.deliver(copy)
    shop.erase(17)
    assert shop.deliver(copy) == 0
    shop.write((2, sealed, None))
    shop.deliver(copy)
    files = [str(each) for each in (shop.directory / "history").rglob("*.parquet")]
    rows = dataset.dataset(files).to_table().to_pylist()
    assert sorted((row["id"], row["who"] or "") for row in rows) == [(1, "Ann"), (2, "")]
