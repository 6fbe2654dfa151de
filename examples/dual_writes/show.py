"""Let the two accidents happen to both applications and compare what is left."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import application
import captured
from stores import Database, SearchIndex

from tailrace.broker.embedded import BrokerThread
from tailrace.clock import SYSTEM


class ProcessDied(Exception):
    """Stands for `kill -9` between two lines of code."""


def lost_update(save_a: Callable[[], None], save_b: Callable[[], None], gate: Gate) -> None:
    """Request A is stopped behind its first write; request B runs as a whole; A goes on."""
    first = threading.Thread(target=save_a)
    gate.closed = True
    first.start()
    gate.reached.wait(10)
    gate.closed = False
    save_b()
    gate.opened.set()
    first.join()


class Gate:
    """Stops the first request that comes, once, when it is closed."""

    def __init__(self) -> None:
        self.closed = False
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        if self.closed:
            self.reached.set()
            self.opened.wait(10)


def die() -> None:
    raise ProcessDied


def compare(what: str, database: dict[int, str], index: dict[int, str]) -> bool:
    same = database == index
    print(f"  {what}: {'the same' if same else 'NOT the same'}")
    for identifier in sorted(set(database) | set(index)):
        print(
            f"    product {identifier}: database {database.get(identifier)!r:<18} "
            f"index {index.get(identifier)!r}"
        )
    return same


def without_capture(directory: Path) -> tuple[bool, bool]:
    print("The application writes to the database and to the index:")
    gate = Gate()

    def save(title: str) -> None:
        # A request has its own connections, as in any server.
        database, index = Database(directory / "dual.db"), SearchIndex(directory / "dual.idx")
        application.Application(database, index, gate).save(1, title, 10.0)
        database.close()
        index.close()

    lost_update(lambda: save("red bicycle"), lambda: save("blue bicycle"), gate)
    database, index = Database(directory / "dual.db"), SearchIndex(directory / "dual.idx")
    race = compare("after two requests at once", database.titles(), index.titles())
    try:
        application.Application(database, index, die).save(2, "helmet", 30.0)
    except ProcessDied:
        pass
    crash = compare("after a crash between the writes", database.titles(), index.titles())
    database.close()
    index.close()
    return race, crash


def with_capture(directory: Path) -> tuple[bool, bool]:
    print("The application writes to the database; the index follows its changes:")
    with BrokerThread(directory / "log") as broker:
        database, index = Database(directory / "one.db"), SearchIndex(directory / "one.idx")
        copy = captured.Copy(
            directory / "one.db", directory / "one.idx", broker.address, directory / "state"
        )
        copy.start()
        gate = Gate()

        def save(title: str) -> None:
            own = Database(directory / "one.db")
            captured.Application(own, gate).save(1, title, 10.0)
            own.close()

        lost_update(lambda: save("red bicycle"), lambda: save("blue bicycle"), gate)
        wait(database, index)
        race = compare("after two requests at once", database.titles(), index.titles())
        try:
            captured.Application(database, die).save(2, "helmet", 30.0)
        except ProcessDied:
            pass
        wait(database, index)
        crash = compare("after a crash behind the write", database.titles(), index.titles())
        copy.stop()
        database.close()
        index.close()
    return race, crash


def wait(database: Database, index: SearchIndex) -> None:
    """The index comes a moment later; give it ten seconds and then say what is there."""
    deadline = SYSTEM.monotonic() + 10
    while database.titles() != index.titles() and SYSTEM.monotonic() < deadline:
        SYSTEM.sleep(0.02)


def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        dual = without_capture(Path(name))
        print()
        single = with_capture(Path(name))
    print()
    print(f"dual writes agreed {sum(dual)} of 2 times, capture {sum(single)} of 2 times")
    return 0 if single == (True, True) else 1


if __name__ == "__main__":
    raise SystemExit(main())
