"""The pipelines of a small project as a process of their own.

python running_pipelines.py BOOTSTRAP SOURCE DIRECTORY [MASTER [hangs]]

With `hangs` the stream's function does not return: the driver is deaf to everything.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

import tailrace as tr
from tailrace import config
from tailrace.pipelines.declare import Stream, View
from tailrace.pipelines.process.runner import Declared, run
from tailrace.sources.declare import TableRef
from tailrace.telemetry.part import Part


def declared(source: str, *, hangs: bool = False) -> tuple[list[View], list[Stream]]:
    view = tr.view(
        f"{source}_open_orders",
        f"""SELECT c.country, count(*) AS orders, sum(o.amount) AS value
            FROM {source}.orders o JOIN {source}.customers c ON c.id = o.customer_id
            WHERE o.status = 'open' GROUP BY c.country""",
        key="country",
    )
    orders = TableRef(source, "public", "orders", "forever")

    @tr.stream(orders.inserts(snapshot=True), name=f"{source}_placed", trigger="200 milliseconds")
    def placed(frame: DataFrame) -> DataFrame:
        if hangs:
            print("hangs", flush=True)
            time.sleep(1_000)
        return frame.select("id", "amount")

    return [view], [placed]


def main(
    bootstrap: str, source: str, directory: str, master: str = "local[2]", hangs: str = ""
) -> None:
    conf = {"spark.executor.memory": "600m", **json.loads(os.environ.get("PIPELINES_CONF", "{}"))}
    Path(directory, "tailrace.toml").write_text(
        f"""[project]
name = "p"
[spark]
master = "{master}"
cache = "{directory}/caches"
conf."spark.driver.host" = "127.0.0.1"
conf."spark.driver.bindAddress" = "127.0.0.1"
"""
        + "".join(f'conf."{key}" = "{value}"\n' for key, value in conf.items())
    )
    views, streams = declared(source, hangs=bool(hangs))
    part = Part("p", "pipelines", source, bootstrap, Path(directory) / ".tailrace")
    signal.signal(signal.SIGTERM, lambda *_: part.stopping.set())
    run(Declared(views, streams, [], config.load(directory)), part)


if __name__ == "__main__":
    main(*sys.argv[1:])
