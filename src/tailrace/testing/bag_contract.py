"""What every source promises of tables without a key.

Whoever reads the table's topic alone gets the rows of the table, each as often as it is
there: a plain consumer, a view and a sink. See `tailrace.testing.bags`.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import orjson

from tailrace.sources.base import COPIES_TOPIC
from tailrace.testing.bags import BagViews, bag_of, rebuild_bag
from tailrace.testing.source_contract import Capture, SourceCase
from tailrace.testing.source_log import SharedLog


class BagCase(SourceCase, Protocol):
    """A source whose table `lines` has no key."""

    shared: SharedLog
    directory: Path
    address: str

    def capture(self, *, fail_after: int | None = None) -> Capture: ...

    def keyless(self, table: str) -> None:
        """Whatever lets updates and deletes of a table without a key be captured."""

    def empty(self, table: str) -> None:
        """Remove all rows as fast as the database can."""

    def snapshot(self, table: str) -> None:
        """Have a table copied again."""

    def beside(self) -> AbstractContextManager[BagCase]:
        """The same database over a connection of its own."""

    def drop_key(self, table: str) -> None: ...

    def add_key(self, table: str, column: str) -> None: ...


LINES = "CREATE TABLE lines (number INTEGER, word VARCHAR(50))"


class BagContract:
    """The suite; subclass it and give a fixture `case`."""

    def _begin(self, case: BagCase, rows: int = 130) -> None:
        case.execute(LINES, "CREATE TABLE items (id INTEGER PRIMARY KEY, amount INTEGER)")
        case.keyless("lines")
        if rows:
            given = ", ".join(f"({i % 7}, 'old')" for i in range(rows))
            case.execute(f"INSERT INTO lines VALUES {given}")
            many = ", ".join(f"({i}, {i})" for i in range(260))
            case.execute(f"INSERT INTO items VALUES {many}")

    def _churn(self, case: BagCase, number: int) -> None:
        """Equal rows that come, change and go."""
        case.execute(
            f"INSERT INTO lines VALUES ({number}, 'new'), ({number}, 'new'), ({number % 7}, 'old')",
            f"UPDATE lines SET word = 'changed' WHERE number = {number % 5}",
            f"BEGIN; DELETE FROM lines WHERE number = {(number + 3) % 7}; "
            f"INSERT INTO lines VALUES ({number % 7}, 'old'); COMMIT",
        )

    def _settle(self, case: BagCase, running: Capture) -> None:
        """Wait until everything is captured and every copy is done."""
        running.until(lambda: states(case.shared) == {"done"})
        running.reach(case.position())
        running.until(lambda: states(case.shared) == {"done"})

    def _same(self, case: BagCase, table: str = "lines", *, steadily: bool = True) -> None:
        """The three readers have the rows of the table. `steadily`: a plain consumer had them
        after every log transaction, too."""
        cursor = case.rows(f"SELECT * FROM {table}")
        names = case.columns(table)
        expected = bag_of(dict(zip(names, row, strict=True)) for row in cursor)
        topic = f"shop.{case.schema}.{table}"
        with case.shared.guard:
            first, *others = [list(p) for p in case.shared.topics[topic]]
        assert rebuild_bag(r for r in first if steadily or r is not None) == expected
        assert not any(r is not None and r.key is None for p in others for r in p)
        views = BagViews(case.shared, topic, Path(tempfile.mkdtemp(dir=case.directory)))
        views.read()
        assert views.rows() == expected
        assert views.total() == expected.total()
        assert views.dead == []

    def test_rows_that_come_while_the_copy_waits_count_once(self, case: BagCase) -> None:
        self._begin(case)
        for attempt in range(5):
            self._churn(case, attempt)
            try:
                with case.capture(fail_after=attempt) as running:
                    for number in range(3):
                        self._churn(case, 10 * attempt + number)
                    self._settle(case, running)
            except ConnectionError:
                continue
        with case.capture() as running:
            self._churn(case, 77)
            self._settle(case, running)
        self._same(case)
        running.written.check()

    def test_the_first_copy_is_told_once(self, case: BagCase) -> None:
        """A stream of inserts that begins with the copy has every row once."""
        self._begin(case)
        for attempt in range(3):
            try:
                with case.capture(fail_after=attempt) as running:
                    case.execute(f"INSERT INTO lines VALUES ({100 + attempt}, 'once')")
                    self._settle(case, running)
            except ConnectionError:
                continue
        with case.capture() as running:
            case.execute("INSERT INTO lines VALUES (200, 'once')")
            self._settle(case, running)
            case.snapshot("lines")
            again = self._copies(case, 2)
            running.until(again)
            case.execute("INSERT INTO lines VALUES (201, 'once')")
            self._settle(case, running)
        self._same(case)
        rows = case.rows("SELECT number, word FROM lines")
        told = [
            (event["after"]["number"], event["after"]["word"])
            for event in running.written.events(f"{case.schema}.lines")
            if event["op"] == "c"
            or (event["op"] == "r" and event["source"]["snapshot"] != "incremental")
        ]
        assert sorted(told) == sorted(rows)

    def test_the_first_copy_tells_no_row_that_was_told_as_inserted(self, case: BagCase) -> None:
        """Of a table with a key, too: a stream of inserts cannot take back what it told."""
        case.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, amount INTEGER)")
        case.execute(LINES)
        many = ", ".join(f"({2 * i}, {i})" for i in range(600))
        case.execute(f"INSERT INTO items VALUES {many}")
        for attempt in range(1, 6):
            try:
                with case.capture(fail_after=attempt) as running:
                    for number in range(20):
                        identifier = 1 + 2 * ((attempt * 20 + number) * 7 % 599)
                        case.execute(f"INSERT INTO items VALUES ({identifier}, -1)")
                        case.execute(f"UPDATE items SET amount = -2 WHERE id = {14 * number}")
                    self._settle(case, running)
            except ConnectionError:
                continue
        with case.capture() as running:
            self._settle(case, running)
            case.snapshot("items")
            case.execute("INSERT INTO items VALUES (5001, 1)")
            self._settle(case, running)
        told = [
            event["after"]["id"]
            for event in running.written.events(f"{case.schema}.items")
            if event["op"] == "c"
            or (event["op"] == "r" and event["source"]["snapshot"] != "incremental")
        ]
        assert sorted(told) == [i for (i,) in case.rows("SELECT id FROM items ORDER BY id")]

    def _copies(self, case: BagCase, number: int) -> Callable[[], bool]:
        """Whether the copy of `lines` has ended so many times."""
        key = orjson.dumps({"source": "shop", "table": f"{case.schema}.lines"})

        def ended() -> bool:
            found = [
                str(orjson.loads(record.value or b"{}").get("state"))
                for record in case.shared.records(COPIES_TOPIC)
                if record.key == key
            ]
            pairs = zip(["", *found], found, strict=False)
            return sum(one == "done" and before != "done" for before, one in pairs) >= number

        return ended

    def test_a_copy_asked_for_takes_the_place_of_the_rows_before(self, case: BagCase) -> None:
        self._begin(case)
        with case.capture() as running:
            self._settle(case, running)
            self._churn(case, 1)
            case.snapshot("lines")
            self._churn(case, 2)
            running.until(self._copies(case, 2))
            self._churn(case, 3)
            self._settle(case, running)
        self._same(case)
        events = running.written.events(f"{case.schema}.lines")
        assert [event["op"] for event in events].count("t") == 1
        running.written.check()

    def test_an_emptied_table_is_empty(self, case: BagCase) -> None:
        self._begin(case)
        with case.capture() as running:
            self._settle(case, running)
            case.empty("lines")
            case.execute("INSERT INTO lines VALUES (1, 'first'), (1, 'first')")
            running.reach(case.position())
        self._same(case)
        with case.capture() as running:
            case.empty("lines")
            running.reach(case.position())
        self._same(case)
        running.written.check()

    def test_a_table_emptied_before_its_copy(self, case: BagCase) -> None:
        self._begin(case)
        try:
            with case.capture(fail_after=1) as running:
                case.empty("lines")
                case.execute("INSERT INTO lines VALUES (1, 'first'), (1, 'first')")
                self._settle(case, running)
        except ConnectionError:
            pass
        with case.capture() as running:
            self._settle(case, running)
        self._same(case)

    def test_another_shape_is_that_of_all_rows(self, case: BagCase) -> None:
        self._begin(case)
        with case.capture() as running:
            self._settle(case, running)
            case.alter("ALTER TABLE lines ADD COLUMN kind INTEGER DEFAULT 5")
            case.execute(
                "UPDATE lines SET kind = 6 WHERE number = 1", "DELETE FROM lines WHERE number = 2"
            )
            running.until(self._copies(case, 2))
            self._settle(case, running)
            self._same(case, steadily=False)
            case.alter("ALTER TABLE lines RENAME COLUMN word TO name")
            case.execute("DELETE FROM lines WHERE number = 3")
            running.until(self._copies(case, 3))
            self._settle(case, running)
            self._same(case, steadily=False)
            case.alter("ALTER TABLE lines DROP COLUMN kind")
            case.execute("DELETE FROM lines WHERE number = 4")
            running.until(self._copies(case, 4))
            self._settle(case, running)
        self._same(case, steadily=False)

    def test_a_key_that_is_dropped_and_one_that_is_added(self, case: BagCase) -> None:
        self._begin(case)
        with case.capture() as running:
            self._settle(case, running)
            case.drop_key("items")
            case.execute("INSERT INTO items VALUES (1, 1), (1, 1), (900, 2)")
            running.until(lambda: self._is_bag(case, "items"))
            self._settle(case, running)
            self._same(case, "items", steadily=False)
            case.execute("DELETE FROM items WHERE id = 1 OR id > 100")
            self._settle(case, running)
        self._same(case, "items", steadily=False)
        with case.capture() as running:
            case.add_key("items", "id")
            case.execute(
                "INSERT INTO items VALUES (1, 7)", "UPDATE items SET amount = 0 WHERE id < 5"
            )
            running.until(lambda: not self._is_bag(case, "items"))
            self._settle(case, running)
        expected = bag_of(
            {"id": i, "amount": a} for i, a in case.rows("SELECT id, amount FROM items")
        )
        topic = f"shop.{case.schema}.items"
        assert rebuild_bag(case.shared.records(topic)) == {}
        keyed: dict[bytes, Any] = {}
        for record in case.shared.records(topic):
            if record.key is not None:
                after = orjson.loads(record.value or b'{"after":null}')["after"]
                keyed.pop(record.key, None)
                keyed |= {} if after is None else {record.key: after}
        assert bag_of(keyed.values()) == expected
        views = BagViews(case.shared, topic, case.directory / "keyed")
        views.read()
        assert views.rows() == expected
        assert views.dead == []

    def _is_bag(self, case: BagCase, table: str) -> bool:
        return bool(copies(case.shared).get(f"{case.schema}.{table}", {}).get("bag"))

    def test_a_log_from_before_is_put_right(self, case: BagCase) -> None:
        """Older versions wrote rows twice: such a table is copied once more."""
        self._begin(case)
        with case.capture() as running:
            self._settle(case, running)
        topic = f"shop.{case.schema}.lines"
        key = orjson.dumps({"source": "shop", "table": f"{case.schema}.lines"})
        state = {w: v for w, v in copies(case.shared)[f"{case.schema}.lines"].items() if w != "bag"}
        case.shared.write(COPIES_TOPIC, [(key, orjson.dumps(state))])
        twice = [(None, record.value) for record in case.shared.records(topic)[:40]]
        case.shared.write(topic, twice)
        with case.capture() as running:
            self._churn(case, 1)
            running.until(lambda: self._is_bag(case, "lines"))
            self._settle(case, running)
        self._same(case)

    def test_writers_beside_a_capture_that_is_stopped_again_and_again(self, case: BagCase) -> None:
        self._begin(case)
        stop = threading.Event()
        failed: list[BaseException] = []

        def write() -> None:
            number = 0
            try:
                with case.beside() as other:
                    while not stop.wait(0.02):
                        number += 1
                        self._churn(other, number % 40)
            except BaseException as error:
                failed.append(error)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        try:
            for attempt in range(4):
                try:
                    with case.capture(fail_after=1 + 2 * attempt) as running:
                        running.until(lambda: False)
                except ConnectionError:
                    continue
        finally:
            stop.set()
            writer.join(30)
        assert not failed
        with case.capture() as running:
            self._settle(case, running)
        self._same(case)


def copies(shared: SharedLog) -> dict[str, dict[str, Any]]:
    """What the log says of every copy of the source `shop`."""
    found: dict[str, dict[str, Any]] = {}
    for record in shared.records(COPIES_TOPIC):
        name = orjson.loads(record.key or b"{}")
        if name.keys() == {"source", "table"}:  # others say what the source owns, or holds back
            found[name["table"]] = orjson.loads(record.value or b"{}")
    return found


def states(shared: SharedLog) -> set[str]:
    return {str(state.get("state")) for state in copies(shared).values()}
