from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import orjson
import pytest

from servers.ticks import Driver
from tailrace.cli.main import main
from tailrace.client.admin import Admin
from tailrace.client.ranges import KafkaRanges
from tailrace.client.writer import TransactionalWriter
from tailrace.sinks import SQLite
from tailrace.sinks.base import Shape, SinkPosition
from tailrace.sinks.changes import Collector
from tailrace.sinks.dead_letters import read_letters
from tailrace.sinks.process import run
from tailrace.sinks.registry import Copy
from tailrace.telemetry.part import Part, read_reports

PROJECT = """
import tailrace as tr
from tailrace import sinks
totals = tr.view("totals", "SELECT country, count(*) AS n FROM shop.orders GROUP BY country",
                 to=sinks.SQLite({path!r}, table="totals"))
"""


def held(path):
    if not path.exists():
        return None
    with sqlite3.connect(path) as connection:
        try:
            return dict(connection.execute("SELECT country, n FROM totals").fetchall())
        except sqlite3.OperationalError:
            return None
        finally:
            connection.interrupt()


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "this never became true"
        time.sleep(0.02)


class Running:
    """`run(copy, part)` in a thread."""

    def __init__(self, copy, part):
        self.part = part
        self.errors = []
        self.thread = threading.Thread(target=self._run, args=(copy,))

    def _run(self, copy):
        try:
            run(copy, self.part)
        except Exception as error:
            self.errors.append(error)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.part.stopping.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


def sqlite_copy(path, source="view", key=()):
    return Copy("totals.sqlite", "totals", "totals", source, key, SQLite(path, table="totals"))


def test_a_running_sink_keeps_the_copy_in_step_and_reports(tailrace_broker, tmp_path):
    path = tmp_path / "copy.db"
    driver = Driver(tailrace_broker)
    driver.write({"NL": 1, "DE": 2})
    part = Part("totals.sqlite", "sink", "shop", tailrace_broker, tmp_path)
    with Running(sqlite_copy(path), part) as running:
        for n in range(10):
            driver.write({"NL": n, f"C{n}": n, "DE": None if n % 2 else n})
            driver.write({"NL": 1000}, commit=False)
        wait_until(lambda: held(path) == driver.rows)
        wait_until(lambda: read_reports(tmp_path)[0].get("position"))
    driver.close()
    assert running.errors == []
    report = read_reports(tmp_path)[0]
    assert report["state"] == "stopped"
    assert orjson.loads(report["position"])["tick"] == driver.tick


def test_a_stream_without_a_key_is_appended_once(tailrace_broker, tmp_path):
    path = tmp_path / "copy.db"
    with Admin(tailrace_broker) as admin:
        admin.ensure_topic("totals", 3)
    writer = TransactionalWriter(tailrace_broker, "stream")
    writer.init()
    part = Part("totals.sqlite", "sink", "shop", tailrace_broker, tmp_path)
    for start in (0, 50):
        for n in range(start, start + 50):
            row = {"n": n, "name": f"x{n}"} | ({"late": 1.5} if start else {})
            writer.send("totals", n % 3, None, orjson.dumps(row))
        writer.send("totals", 0, None, b"not json")
        writer.commit()
        with Running(sqlite_copy(path, "stream"), part):

            def count():
                if not path.exists():
                    return 0
                connection = sqlite3.connect(path)
                try:
                    return connection.execute("SELECT count(*) FROM totals").fetchone()[0]
                except sqlite3.OperationalError:
                    return 0
                finally:
                    connection.close()

            wait_until(lambda: count() >= start + 50)  # noqa: B023
        part.stopping.clear()
        assert count() == start + 50
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT n, name, late FROM totals ORDER BY n").fetchall()
    connection.close()
    assert rows == [(n, f"x{n}", 1.5 if n >= 50 else None) for n in range(100)]
    writer.close()
    reader = KafkaRanges(tailrace_broker)
    letters = read_letters(reader, "totals.sqlite")
    reader.close()
    assert [letter.row for letter in letters] == ["not json", "not json"]


@pytest.fixture
def project(tailrace_broker, tmp_path, monkeypatch):
    home = tmp_path / "project"
    (home / "pipelines").mkdir(parents=True)
    (home / "tailrace.toml").write_text(
        f'[project]\nname = "shop"\n[log]\nbootstrap = "{tailrace_broker}"\n'
    )
    (home / "pipelines" / "views.py").write_text(PROJECT.format(path=str(tmp_path / "copy.db")))
    monkeypatch.chdir(home)
    return home


def command(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    return left.value.code, captured.out, captured.err


def test_verify_finds_and_repairs_what_somebody_changed(project, tailrace_broker, tmp_path, capsys):
    path = tmp_path / "copy.db"
    driver = Driver(tailrace_broker)
    driver.write({f"C{n}": n for n in range(30)})
    driver.close()
    assert command(capsys, "sink", "replay", "totals.sqlite")[0] == 0
    assert held(path) == driver.rows
    status, out, _ = command(capsys, "sink", "verify", "totals.sqlite")
    assert status == 0
    assert "30 rows, in step" in out
    connection = sqlite3.connect(path)
    connection.execute("UPDATE totals SET n = 77 WHERE country = 'C7'")
    connection.execute("DELETE FROM totals WHERE country = 'C8'")
    connection.commit()
    connection.close()
    status, out, _ = command(capsys, "sink", "verify", "totals.sqlite", "--json")
    assert status == 1
    told = orjson.loads(out)
    assert [d["key"]["country"] for d in told["differences"]] == ["C7", "C8"]
    assert command(capsys, "sink", "verify", "totals.sqlite", "--repair")[0] == 0
    assert held(path) == driver.rows
    assert command(capsys, "sink", "verify", "totals.sqlite")[0] == 0


def test_dead_letters_can_be_listed_and_retried(project, tailrace_broker, tmp_path, capsys):
    path = tmp_path / "copy.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE totals (country TEXT PRIMARY KEY, n BIGINT CHECK (n < 10))")
    connection.commit()
    driver = Driver(tailrace_broker)
    driver.write({"NL": 1, "DE": 99})
    driver.close()
    part = Part("totals.sqlite", "sink", "shop", tailrace_broker, tmp_path)
    with Running(sqlite_copy(path), part):
        wait_until(lambda: held(path) == {"NL": 1})
        wait_until(lambda: read_reports(tmp_path)[0].get("dead_letters"))
    status, out, _ = command(capsys, "sink", "dead-letters", "totals.sqlite", "--json")
    assert status == 0
    assert orjson.loads(out)[0]["row"] == {"country": "DE", "n": 99}
    assert "CHECK" in orjson.loads(out)[0]["reason"]
    connection.execute("CREATE TABLE wider (country TEXT PRIMARY KEY, n BIGINT)")
    connection.execute("INSERT INTO wider SELECT * FROM totals")
    connection.execute("DROP TABLE totals")
    connection.execute("ALTER TABLE wider RENAME TO totals")
    connection.commit()
    connection.close()
    assert (
        "1 rows written" in command(capsys, "sink", "dead-letters", "totals.sqlite", "--retry")[1]
    )
    assert held(path) == {"NL": 1, "DE": 99}
    status, out, _ = command(capsys, "sink", "dead-letters", "totals.sqlite")
    assert status == 0
    assert "no dead letters" in out  # what has arrived is struck off


def test_list_and_status_tell_what_is_declared(project, capsys):
    _, out, _ = command(capsys, "sink", "list", "--json")
    assert orjson.loads(out)[0] == {
        "name": "totals.sqlite",
        "of": "totals",
        "to": "sqlite table totals",
        "state": "not started",
        "freshness_ms": None,
    }
    status, _, err = command(capsys, "sink", "status", "nothing")
    assert status == 1
    assert "totals.sqlite" in err


def test_a_second_copy_is_built_switched_and_rolled_back_by_commands(
    project, tailrace_broker, tmp_path, capsys
):
    path = tmp_path / "copy.db"
    driver = Driver(tailrace_broker)
    driver.write({f"C{n}": n for n in range(30)})
    status, _, err = command(capsys, "sink", "rebuild", "totals.sqlite")
    assert status == 1
    assert "no copy yet" in err
    assert command(capsys, "sink", "replay", "totals.sqlite")[0] == 0
    assert command(capsys, "sink", "rollback", "totals.sqlite")[0] == 1
    connection = sqlite3.connect(path)
    connection.execute("UPDATE totals SET n = 77 WHERE country = 'C7'")
    connection.commit()
    connection.close()
    spoilt = held(path)
    status, out, _ = command(capsys, "sink", "rebuild", "totals.sqlite")
    assert status == 0
    assert "30 rows, in step" in out
    assert held(path) == spoilt  # what is in use was not touched
    driver.write({"C1": None, "C2": 5})
    assert command(capsys, "sink", "switch", "totals.sqlite")[0] == 0
    assert held(path) == driver.rows
    assert command(capsys, "sink", "rollback", "totals.sqlite")[0] == 0
    assert held(path) == spoilt
    assert command(capsys, "sink", "switch", "totals.sqlite")[0] == 0
    assert held(path) == driver.rows
    status, out, _ = command(capsys, "sink", "rebuild", "totals.sqlite", "--switch", "--json")
    assert status == 0
    assert orjson.loads(out)["in_step"]
    driver.close()


def test_a_sink_that_runs_does_what_it_is_asked(project, tailrace_broker, tmp_path, capsys):
    path = tmp_path / "copy.db"
    driver = Driver(tailrace_broker)
    driver.write({f"C{n}": n for n in range(5)})
    state = project / ".tailrace"
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), tailrace_broker, str(state)]
    )
    try:
        wait_until(lambda: held(path) == driver.rows)
        wait_until(lambda: read_reports(state) and read_reports(state)[0].get("position"))
        assert command(capsys, "sink", "replay", "totals.sqlite")[0] == 0
        driver.write({"C1": 100})
        wait_until(lambda: held(path) == driver.rows)
        assert command(capsys, "sink", "rollback", "totals.sqlite")[0] == 0
        wait_until(lambda: held(path) == driver.rows)  # of the same generation: it catches up
        status, _, err = command(capsys, "sink", "rollback", "totals.sqlite")
        assert status == 1
        assert "no copy to go back to" in err
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE totals SET n = 77 WHERE country = 'C2'")
        connection.close()
        status, out, _ = command(capsys, "sink", "verify", "totals.sqlite", "--repair")
        assert status == 0
        assert "repaired 1 rows" in out
        assert held(path) == driver.rows
        status, _, err = command(capsys, "sink", "dead-letters", "totals.sqlite", "--retry")
        assert status == 0
        driver.write({"C1": 101})
        wait_until(lambda: held(path) == driver.rows)
        assert process.poll() is None  # nobody has taken the copy over
        status, out, _ = command(capsys, "sink", "status", "totals.sqlite", "--json")
        assert orjson.loads(out)["state"] == "running"
        assert orjson.loads(out)["behind_ms"] == 0
    finally:
        process.terminate()
        process.wait()
    driver.close()


def test_one_key_written_in_several_ways_is_one_key():
    shape = Shape((("id", "BIGINT"), ("n", "INT")), ("id",))
    collector = Collector(shape, wrapped=False, latest=True)
    keys = [b'{"id":1}', b'{"id": 1}', b'{ "id":2 }', None, None, b"no json"]
    for offset, key in enumerate(keys):
        collector.partitions.append(0)
        collector.offsets.append(offset)
        collector.keys.append(key)
        collector.values.append(b'{"id":%d,"n":%d}' % (offset if offset > 2 else 1, offset))
    batch, bad = collector.make(SinkPosition("t", 1, 0, {0: len(keys)}))
    assert not bad
    assert batch.changes["n"].to_pylist() == [1, 2, 3, 4, 5]


def test_a_watch_compares_again_and_again_and_reads_only_what_is_new(
    project, tailrace_broker, tmp_path, capsys
):
    driver = Driver(tailrace_broker)
    driver.write({f"C{n}": n for n in range(30)})
    assert command(capsys, "sink", "replay", "totals.sqlite")[0] == 0
    connection = sqlite3.connect(tmp_path / "copy.db")
    connection.execute("DELETE FROM totals WHERE country = 'C8'")
    connection.commit()
    connection.close()
    watch = ("sink", "verify", "totals.sqlite", "--watch", "--rounds", "2", "--share", "1")
    status, out, _ = command(capsys, *watch, "--repair")
    assert status == 0
    assert "1 of 30 rows differ" in out
    assert "repaired 1 rows" in out
    assert out.rstrip().splitlines()[-1].startswith("totals.sqlite: 30 rows, in step")
    assert held(tmp_path / "copy.db") == driver.rows
    assert not list((project / ".tailrace" / "sinks").glob("verify-*"))
    driver.close()


CHILD = """
import sys, pathlib
from tailrace.sinks import SQLite
from tailrace.sinks.base import Shape, SinkPosition
from tailrace.sinks.changes import Collector
from tailrace.sinks.process import run
from tailrace.sinks.registry import Copy
from tailrace.telemetry.part import Part
path, address = pathlib.Path(sys.argv[1]), sys.argv[2]
home = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else path.parent
copy = Copy("totals.sqlite", "totals", "totals", "view", (),
            SQLite(path, table="totals", batch_rows=3))
run(copy, Part("totals.sqlite", "sink", "shop", address, home))
"""


@pytest.mark.crash
def test_a_sink_process_killed_at_random_loses_nothing(tailrace_broker, tmp_path):
    path = tmp_path / "copy.db"
    chance = random.Random()
    driver = Driver(tailrace_broker)
    driver.write({"NL": 0})
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", CHILD, str(path), tailrace_broker])
        until = time.monotonic() + chance.uniform(0.3, 2)
        while time.monotonic() < until:
            driver.write(
                {f"C{chance.randrange(20)}": chance.choice([None, 1, 2, 3]) for _ in range(9)}
            )
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(path), tailrace_broker])
    wait_until(lambda: held(path) == driver.rows)
    process.terminate()
    process.wait()
    driver.close()
