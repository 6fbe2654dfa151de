"""A capture in a process of its own, to be killed: BOOTSTRAP DIRECTORY DSN TABLE…"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def main() -> None:
    from tailrace.sources import MySQL, Postgres, SQLite, run
    from tailrace.sources.postgres.settings import CaptureSettings
    from tailrace.telemetry.part import Part

    kind, bootstrap, directory, address, *tables = sys.argv[1:]
    if kind == "postgres":
        # Small sizes make large transactions and many chunks out of few rows, read in parallel.
        from tailrace.sources.postgres import capture

        capture.DEFAULTS = CaptureSettings(
            spill_rows=500,
            part_rows=2000,
            split_rows=2000,
            touched_keys=50,
            chunk_rows=int(os.environ.get("CHUNK_ROWS", "500")),
            chunks_ahead=1,
        )
    if kind == "mysql":
        from tailrace.sources.mysql import capture as mysql_capture
        from tailrace.sources.mysql.settings import MySQLSettings

        mysql_capture.DEFAULTS = MySQLSettings(
            spill_rows=200, spill_bytes=20_000, part_rows=1000, chunk_rows=500, touched_keys=50
        )
    make = {"postgres": Postgres, "sqlite": SQLite, "mysql": MySQL}[kind]
    source = make("shop", address, tables=tables)
    part = Part("shop", "source", "test", bootstrap, Path(directory))
    signal.signal(signal.SIGTERM, lambda *_: part.stopping.set())
    run(source, part)


if __name__ == "__main__":
    main()
