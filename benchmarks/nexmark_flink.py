"""Nexmark's queries with Flink SQL, in a process and an environment of its own.

    python -m benchmarks.nexmark_flink DIRECTORY QUERY …     (with the Python of Flink's environment)

Reads JSON lines (one directory a stream), runs each query in streaming mode into a black hole
and prints a line of JSON for each: query, seconds, CPU seconds of the Java process. The
queries are Nexmark's own for Flink.
"""

from __future__ import annotations

import json
import os
import sys
import time

from pipelines_flink import cpu  # type: ignore[import-not-found]

BETWEEN = "b.date_time BETWEEN a.date_time AND a.expires"
RANKS = """count(*) FILTER (WHERE price < 10000), count(*) FILTER (WHERE price >= 10000 AND price < 1000000),
    count(*) FILTER (WHERE price >= 1000000)"""
DISTINCT = """count(DISTINCT {c}), count(DISTINCT {c}) FILTER (WHERE price < 10000),
    count(DISTINCT {c}) FILTER (WHERE price >= 10000 AND price < 1000000),
    count(DISTINCT {c}) FILTER (WHERE price >= 1000000)"""
STATISTICS = f"{RANKS}, {DISTINCT.format(c='bidder')}, {DISTINCT.format(c='auction')}"
DAY = "DATE_FORMAT(date_time, 'yyyy-MM-dd')"
QUERIES = {
    "q00": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q01": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q02": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q03": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q04": f"""SELECT category, avg(final) FROM (SELECT max(b.price) AS final, a.category
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
    "q11": """SELECT bidder, count(*), window_start, window_end
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price, CASE
        WHEN HOUR(date_time) >= 8 AND HOUR(date_time) <= 18 THEN 'dayTime'
        WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END,
        date_time, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"SELECT {DAY}, count(*), {STATISTICS} FROM bid GROUP BY {DAY}",
    "q16": f"""SELECT channel, {DAY}, max(DATE_FORMAT(date_time, 'HH:mm')), count(*), {STATISTICS}
        FROM bid GROUP BY channel, {DAY}""",
    "q17": f"""SELECT auction, {DAY}, count(*), {RANKS}, min(price), max(price), avg(price),
        sum(price) FROM bid GROUP BY auction, {DAY}""",
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
        ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END
        FROM bid WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
        OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3),
        SPLIT_INDEX(url, '/', 4), SPLIT_INDEX(url, '/', 5) FROM bid""",
}
COLUMNS = {
    "person": "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING,"
    " state STRING, extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT,"
    " reserve BIGINT, expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, extra STRING",
}


def main(directory: str, wanted: list[str]) -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", str(os.cpu_count() or 2))
    for name, columns in COLUMNS.items():
        tables.execute_sql(
            f"""CREATE TABLE {name} ({columns}, date_time TIMESTAMP(3),
                WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND)
                WITH ('connector' = 'filesystem', 'path' = '{directory}/{name}', 'format' = 'json',
                      'json.timestamp-format.standard' = 'ISO-8601')"""
        )
    for number, name in enumerate(wanted):
        before, began = cpu(), time.perf_counter()
        try:
            made = f"CREATE TABLE out_{number} WITH ('connector' = 'blackhole') AS {QUERIES[name]}"
            tables.execute_sql(made).wait()
        except Exception as error:
            print(json.dumps({"query": name, "error": str(error)[:300]}), flush=True)
            continue
        spent = {"query": name, "seconds": time.perf_counter() - began, "cpu": cpu() - before}
        print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
