"""What Tailrace shows does not depend on the zone of the host.

One program shows the same moments through a view, SQL over it and the copies that sinks keep; it
runs in processes of three zones, one of them with summer time and one off by a quarter of an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = r"""
import sqlite3, sys
from pathlib import Path

import duckdb

from tailrace import sinks
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.sinks.dead_letters import ListedDeadLetters
from tailrace.sinks.delivery import Delivery, DeliverySettings
from tailrace.sinks.registry import Copy, Surroundings, make_sink
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.testing.scripts import shown_rows, typed
from tailrace.testing.ticks import MemoryTables, table
from tailrace.serving import query
from tailrace.serving.follower import Follower
from tailrace.serving.reader import Views

place = Path(sys.argv[1])
moments = ["2026-03-29T01:30:00.000001Z", "2026-07-01T23:59:59.999999Z", "1969-12-31T23:59:59Z"]

known = table("t", "id BIGINT, seen TIMESTAMP, wall TIMESTAMP_NTZ, day DATE", ["id"])
sql = '''SELECT id, seen, wall, day, CAST(seen AS STRING) AS text, CAST(wall AS TIMESTAMP) AS again,
  date_trunc('DAY', seen) AS midnight, hour(seen) AS hour, unix_timestamp(wall) AS seconds,
  to_timestamp('2026-03-29 02:30:00') AS said, date_format(seen, 'yyyy-MM-dd HH:mm:ss') AS formatted,
  from_unixtime(0) AS epoch, CAST(day AS TIMESTAMP) AS morning, make_timestamp(2026, 3, 29, 2, 30, 0) AS made
  FROM t'''
memory = MemoryTables(compile_views([ViewDefinition("v", sql)], [known]))
for number, moment in enumerate(moments):
    row = {"id": number, "seen": moment, "wall": moment.rstrip("Z"), "day": moment[:10]}
    memory.upsert("t", typed(row, known))
memory.tick()
for row in shown_rows(memory, "v"):
    print("view", row)

writer = TickWriter(MemoryLog(), now_ms=0)
columns = (("id", "BIGINT"), ("seen", "TIMESTAMP"), ("wall", "TIMESTAMP_NTZ"), ("day", "DATE"))
writer.declare("v", ["id"], columns)
writer.tick({"v": [
    ({"id": number}, {"id": number, "seen": moment, "wall": moment.rstrip("Z"), "day": moment[:10]})
    for number, moment in enumerate(moments)
]})
with Follower(place / "views", writer.log, "shop") as follower:
    follower.step(0)
    with Views(place / "views") as views:
        asked = "SELECT id, seen, wall, day, CAST(seen AS VARCHAR) AS text, hour(seen) AS hour FROM v ORDER BY id"
        for row in views.sql(asked).rows:
            print("sql", row)

for name, declared in {
    "sqlite": sinks.SQLite(place / "copy.db", table="v"),
    "duckdb": sinks.DuckDB(place / "copy.duckdb", table="v"),
}.items():
    copy = Copy(name, "v", "v", "view", (), declared)
    sink = make_sink(copy, Surroundings(place))
    delivery = Delivery(
        copy, sink, writer.log, "shop", ListedDeadLetters(), settings=DeliverySettings()
    )
    delivery.step(0)
    delivery.close()
print("sqlite", sqlite3.connect(place / "copy.db").execute("SELECT * FROM v ORDER BY id").fetchall())
with duckdb.connect(str(place / "copy.duckdb")) as connection:
    connection.execute("SET TimeZone = 'UTC'")
    asked = "SELECT id, CAST(seen AS VARCHAR), CAST(wall AS VARCHAR), day FROM v ORDER BY id"
    print("duckdb", connection.execute(asked).fetchall())
"""


def shown_in(zone: str, place: Path) -> str:
    place.mkdir()
    environment = {**os.environ, "TZ": zone, "LC_ALL": "C"}
    command = [sys.executable, "-c", PROGRAM, str(place)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_views_sql_and_copies_show_the_same_in_every_zone(tmp_path: Path) -> None:
    shown = shown_in("UTC", tmp_path / "utc")
    assert "2026-03-29" in shown
    assert shown_in("Asia/Kathmandu", tmp_path / "east") == shown
    assert shown_in("America/St_Johns", tmp_path / "west") == shown
