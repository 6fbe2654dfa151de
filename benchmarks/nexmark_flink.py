"""Nexmark's queries with Flink SQL, in a process and an environment of its own.

    python -m benchmarks.nexmark_flink BOOTSTRAP BROKER_PID DIRECTORY QUERY …
                                                  (with the Python of Flink's environment)

Runs each query in streaming mode over topics of JSON up to their ends, and prints a line of
JSON for each: query, sink, seconds, CPU seconds of the Java process and of the broker. The
queries and the settings are Nexmark's own for Flink (RocksDB, incremental checkpoints, mini
batches, split distinct aggregates) but for the interval of checkpoints, 10 s for 3 min. The
sink is a topic written in transactions, by key where rows change; or `QUERY/blackhole` nothing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

BETWEEN = "b.date_time BETWEEN a.date_time AND a.expires"
RANKS = """count(*) FILTER (WHERE price < 10000) AS rank1_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (WHERE price >= 1000000) AS rank3_bids"""
DISTINCT = """count(DISTINCT {c}) AS total_{c}s,
    count(DISTINCT {c}) FILTER (WHERE price < 10000) AS rank1_{c}s,
    count(DISTINCT {c}) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_{c}s,
    count(DISTINCT {c}) FILTER (WHERE price >= 1000000) AS rank3_{c}s"""
STATISTICS = f"{RANKS}, {DISTINCT.format(c='bidder')}, {DISTINCT.format(c='auction')}"
DAY = "DATE_FORMAT(date_time, 'yyyy-MM-dd')"
QUERIES = {
    "q00": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q01": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q02": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q03": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q04": f"""SELECT category, avg(final) AS average FROM (SELECT max(b.price) AS final, a.category
        FROM auction a, bid b WHERE a.id = b.auction AND {BETWEEN} GROUP BY a.id, a.category) q
        GROUP BY category""",
    "q05": """SELECT c.auction, c.num FROM (
        SELECT auction, count(*) AS num, window_start, window_end
        FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
        GROUP BY auction, window_start, window_end) c
        JOIN (SELECT max(num) AS most, window_start, window_end FROM (
          SELECT count(*) AS num, window_start, window_end
          FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
          GROUP BY auction, window_start, window_end) GROUP BY window_start, window_end) m
        ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.most""",
    "q07": """SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN (
        SELECT max(price) AS most, window_end
        FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY window_start, window_end) m
        ON b.price = m.most AND b.date_time BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end""",
    "q08": """SELECT p.id, p.name, p.window_start FROM (
        SELECT id, name, window_start, window_end
        FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY id, name, window_start, window_end) p
        JOIN (SELECT seller, window_start, window_end
        FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY seller, window_start, window_end) a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end""",
    "q09": f"""SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller,
        category, auction, bidder, price, bid_time FROM (SELECT a.*, b.auction, b.bidder, b.price,
        b.date_time AS bid_time,
        ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC) AS place
        FROM auction a, bid b WHERE a.id = b.auction AND {BETWEEN}) WHERE place <= 1""",
    "q11": """SELECT bidder, count(*) AS bids, window_start, window_end
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price, CASE
        WHEN HOUR(date_time) >= 8 AND HOUR(date_time) <= 18 THEN 'dayTime'
        WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time_type,
        date_time, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"SELECT {DAY} AS `day`, count(*) AS total_bids, {STATISTICS} FROM bid GROUP BY {DAY}",
    "q16": f"""SELECT channel, {DAY} AS `day`, max(DATE_FORMAT(date_time, 'HH:mm')) AS `minute`,
        count(*) AS total_bids, {STATISTICS}
        FROM bid GROUP BY channel, {DAY}""",
    "q17": f"""SELECT auction, {DAY} AS `day`, count(*) AS total_bids, {RANKS}, min(price) AS min_price,
        max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price FROM bid GROUP BY auction, {DAY}""",
    "q18": """SELECT auction, bidder, price, channel, url, date_time, extra FROM (SELECT *,
        ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid)
        WHERE place <= 1""",
    "q19": """SELECT * FROM (SELECT *,
        ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS place FROM bid)
        WHERE place <= 10""",
    "q20": """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
        a.item_name, a.description, a.initial_bid, a.reserve, a.expires, a.seller, a.category
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """SELECT auction, bidder, price, channel, CASE WHEN LOWER(channel) = 'apple' THEN '0'
        WHEN LOWER(channel) = 'google' THEN '1' WHEN LOWER(channel) = 'facebook' THEN '2'
        WHEN LOWER(channel) = 'baidu' THEN '3'
        ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
        OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1,
        SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3 FROM bid""",
}
COLUMNS = {
    "person": "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING,"
    " state STRING, extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT,"
    " reserve BIGINT, expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, extra STRING",
}


# The keys of results whose rows change; the others only grow.
KEYS = {
    "q04": ("category",), "q09": ("id",), "q15": ("day",), "q16": ("channel", "day"),
    "q17": ("auction", "day"), "q18": ("bidder", "auction"), "q19": ("auction", "place"),
}  # fmt: skip
SETTINGS = {
    "state.backend.type": "rocksdb",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.interval": "10 s",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "taskmanager.memory.managed.size": "1 gb",
}


def process_cpu(pid: int) -> float:
    """CPU seconds of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sink(tables: Any, bootstrap: str, name: str, number: int) -> str:
    """The statement that makes the table a query's rows go into."""
    query, _, kind = name.partition("/")
    key = KEYS.get(query, ())
    columns = []
    for column in tables.sql_query(QUERIES[query])._j_table.getResolvedSchema().getColumns():
        type_ = column.getDataType().getLogicalType().copy(column.getName() not in key)
        columns.append(f"`{column.getName()}` {type_.asSerializableString()}")
    if key:
        columns.append(f"PRIMARY KEY ({', '.join(f'`{part}`' for part in key)}) NOT ENFORCED")
    options = {
        "topic": f"flink_{query}_{number}",
        "properties.bootstrap.servers": bootstrap,
        "properties.transaction.timeout.ms": "600000",
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": f"flink_{query}_{number}",
    }
    if kind == "blackhole":
        options = {"connector": "blackhole"}
    elif key:
        options |= {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    else:
        options |= {"connector": "kafka", "format": "json"}
    listed = ", ".join(f"'{option}' = '{value}'" for option, value in options.items())
    return f"CREATE TABLE out_{number} ({', '.join(columns)}) WITH ({listed})"


def main(bootstrap: str, broker: int, directory: str, wanted: list[str]) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    from pipelines_flink import cpu  # type: ignore[import-not-found]

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        **SETTINGS,
        "parallelism.default": str(os.cpu_count() or 2),
        "execution.checkpointing.dir": f"file://{directory}/checkpoints",
        "pipeline.jars": ";".join(
            f"file://{path}" for path in sorted(Path(directory).glob("*.jar"))
        ),
    }
    for setting, value in settings.items():
        tables.get_config().set(setting, value)
    for name, columns in COLUMNS.items():
        tables.execute_sql(
            f"""CREATE TABLE {name} ({columns}, date_time TIMESTAMP(3),
                WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND)
                WITH ('connector' = 'kafka', 'topic' = '{name}',
                      'properties.bootstrap.servers' = '{bootstrap}',
                      'properties.isolation.level' = 'read_committed',
                      'scan.startup.mode' = 'earliest-offset',
                      'scan.bounded.mode' = 'latest-offset', 'format' = 'json',
                      'json.timestamp-format.standard' = 'ISO-8601')"""
        )
    for number, name in enumerate(wanted):
        before, served, began = cpu(), process_cpu(broker), time.perf_counter()
        query = QUERIES[name.partition("/")[0]]
        told: dict[str, object] = {"query": name, "topic": f"flink_{name}_{number}"}
        try:
            tables.execute_sql(sink(tables, bootstrap, name, number))
            tables.execute_sql(f"INSERT INTO out_{number} {query}").wait()
        except Exception as error:
            print(json.dumps({**told, "error": str(error)[:1500]}), flush=True)
            continue
        told |= {"seconds": time.perf_counter() - began, "cpu": cpu() - before}
        told["broker"] = process_cpu(broker) - served
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
