"""A backup is the project's directory: restored, it goes on and ends in the same rows."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

from servers.archives import unpack
from tailrace.client.ranges import KafkaRanges, Range
from tailrace.node.plan import plan
from tailrace.node.supervisor import Supervisor

FILES = {
    "tailrace.toml": '[project]\nname = "p"\n[log]\nlisten = "127.0.0.1:0"\n[console]\nlisten = "127.0.0.1:0"\n',
    "pipelines/main.py": 'from tailrace import sources\nshop = sources.SQLite("shop", "../shop.db", tables=["items"])\n',
}


def insert(home: Path, *rows: tuple[int, str]) -> None:
    with closing(sqlite3.connect(home.parent / "shop.db", timeout=60)) as database:
        database.executemany("INSERT OR REPLACE INTO items VALUES (?, ?)", rows)
        database.commit()


def run_until(home: Path, rows: dict[int, str]) -> None:
    """Run the project until its log holds these rows, then stop it."""
    with Supervisor(plan(home), echo=lambda line: None) as supervisor:
        supervisor.start()
        found: dict[int, str] = {}
        for _ in range(3000):
            supervisor.run_once(0.05)
            if (found := rows_in_log(supervisor.address)) == rows:
                return
        raise AssertionError(f"the log holds {found}")


def rows_in_log(address: str) -> dict[int, str]:
    topic, found = "shop.main.items", dict[int, str]()
    with closing(KafkaRanges(address)) as reader:
        ranges = [Range(topic, p, first, end) for p, (first, end) in reader.bounds(topic).items()]
        for chunk in reader.read(ranges):
            for key, value in zip(chunk.keys, chunk.values, strict=True):
                row = json.loads(value)["after"] if value is not None else None
                if row is None:
                    found.pop(json.loads(key or b"{}")["id"], None)
                else:
                    found[row["id"]] = row["name"]
    return found


def test_a_restored_backup_goes_on_and_has_every_row(tmp_path: Path) -> None:
    home = tmp_path / "shop"
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)")
    insert(home, (1, "a"), (2, "b"))
    run_until(home, {1: "a", 2: "b"})
    with tarfile.open(tmp_path / "shop.tar", "w") as backup:
        backup.add(home, "shop")
    insert(home, (2, "changed"), (3, "c"))
    run_until(home, {1: "a", 2: "changed", 3: "c"})
    shutil.rmtree(home)
    with tarfile.open(tmp_path / "shop.tar") as backup:
        unpack(backup, tmp_path)
    insert(home, (4, "d"))
    run_until(home, {1: "a", 2: "changed", 3: "c", 4: "d"})
