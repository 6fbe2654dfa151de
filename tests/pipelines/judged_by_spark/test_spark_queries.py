"""Views run inside Spark's tasks, on state files, and are judged by Spark's own batch SQL.

All queries are views of one graph, so that a tick is one job however many there are.
"""

from __future__ import annotations

import pickle
import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pipelines.harness import TABLES, Shop
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.graph import Graph
from tailrace.pipelines.values.types import ddl
from tailrace.testing.recompute import comparable
from tailrace.testing.scripts import Script, read_script, shown_rows, typed
from tailrace.testing.ticks import MemoryTables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

FILES = sorted((Path(__file__).parents[2] / "views_sql").glob("*.sql"))
QUERIES = [
    "SELECT window(t, '6 hours', '2 hours') w, count(*) c FROM shop.a GROUP BY window(t, '6 hours', '2 hours')",
    "SELECT window.start st, window.end e, k, sum(d) x FROM shop.a GROUP BY window(t, '6 hours', '4 hours', '1 hour'), k",
    "SELECT window(t, '6 hours') w, count(*) c FROM shop.a GROUP BY window(t, '6 hours')",
    "SELECT window(t, '6 hours') w, count(*) c FROM shop.a GROUP BY 1",
    "SELECT w.start, count(*) c FROM (SELECT window(t, '1 day', '12 hours') w, count(*) c FROM shop.a GROUP BY window(t, '1 day', '12 hours')) GROUP BY w.start",
    "SELECT session_window(t, '5 hours') w, count(*) c FROM shop.a GROUP BY session_window(t, '5 hours')",
    "SELECT session_window.start st, session_window.end e, k, count(*) c, sum(d) x FROM shop.a GROUP BY session_window(t, '3 hours'), k",
    "SELECT id, explode(array(k, 5, NULL)) AS x FROM shop.a",
    "SELECT id, posexplode(split(s, 'z')) AS (p, x) FROM shop.a",
    "SELECT a.id, e.x FROM shop.a a LATERAL VIEW explode(split(a.s, '')) e AS x",
    "SELECT a.id, e.x FROM shop.a a LATERAL VIEW OUTER explode(filter(array(a.k), q -> q > 1)) e AS x",
    "SELECT a.id, key, value FROM shop.a a LATERAL VIEW explode(map('p', a.k, 'q', 1)) m AS key, value WHERE value IS NOT NULL",
    "SELECT e.x, count(*) c FROM shop.a a LATERAL VIEW explode(sequence(0, coalesce(a.k, 0))) e AS x GROUP BY e.x",
    "SELECT a.id, x FROM shop.a a, LATERAL explode(array(a.k, a.id)) AS e(x)",
    "SELECT id, sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) x FROM shop.b",
    "SELECT id, count(*) OVER (PARTITION BY k ORDER BY n DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING) x FROM shop.b",
    "SELECT id, sum(d) OVER (ORDER BY d RANGE BETWEEN 1.5 PRECEDING AND CURRENT ROW) x FROM shop.a",
    "SELECT id, count(*) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '6' HOUR PRECEDING AND CURRENT ROW) x FROM shop.a",
    "SELECT id, max(f) OVER (ORDER BY f NULLS LAST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) x FROM shop.a",
    "SELECT a.id, (SELECT count(*) FROM shop.b b WHERE b.k < a.k) c FROM shop.a a",
    "SELECT a.id, (SELECT sum(b.n) FROM shop.b b WHERE b.k < a.k AND b.s = a.s) c FROM shop.a a",
    "SELECT a.id FROM shop.a a WHERE a.d > (SELECT avg(b.d) FROM shop.b b WHERE b.k <> a.k)",
    "SELECT a.id FROM shop.a a WHERE EXISTS (SELECT 1 FROM shop.b b WHERE b.k > a.k) OR a.k = 0",
    "SELECT a.id, b.id bid FROM shop.a a JOIN shop.b b ON a.k = b.k AND a.d > (SELECT avg(d) FROM shop.b)",
    "SELECT a.id, b.id bid FROM shop.a a JOIN shop.b b ON a.k = b.k AND b.n IN (SELECT n FROM shop.c)",
    "SELECT a.id, b.id bid FROM shop.a a JOIN shop.b b ON a.k = b.k AND NOT EXISTS (SELECT 1 FROM shop.c c WHERE c.k = b.k AND c.n > 2)",
    "SELECT a.id, q.c, q.x FROM shop.a a, LATERAL (SELECT count(*) c, sum(b.n) x FROM shop.b b WHERE b.k = a.k) q",
    "SELECT a.id, q.c FROM shop.a a LEFT JOIN LATERAL (SELECT count(*) + 1 c FROM shop.b b WHERE b.k < a.k) q ON true",
    "SELECT k, s, grouping(k) gk, grouping(s) gs, grouping_id(k, s) g, count(*) c FROM shop.a GROUP BY CUBE(k, s)",
    "SELECT k, grouping_id() g, sum(d) c FROM shop.a GROUP BY ROLLUP(k)",
    "SELECT k AS id, d FROM shop.a ORDER BY id, d, shop.a.id LIMIT 4",
    "SELECT k, count(*) c FROM shop.a GROUP BY ROLLUP(k) HAVING grouping(k) = 0",
    "SELECT a.id, e.p, e.q FROM shop.a a LATERAL VIEW inline(array(struct(a.k AS p, a.s AS q), struct(1 AS p, 'x' AS q))) e AS p, q",
]  # fmt: skip


class SparkTables(MemoryTables):
    """A graph whose ticks run in a task of Spark, with its state in files and caches."""

    def __init__(self, graph: Graph, directory: Path, *, shards: int = 2) -> None:
        super().__init__(graph, shards=shards)
        self.directory = str(directory)
        self.versions: dict[int, Any] = {}


def run_in_spark(spark: SparkSession, tables: list[SparkTables]) -> None:
    """One tick of each, all in one job."""
    work = []
    for one in tables:
        one.number += 1
        work.append(
            (
                one.graph,
                one.inputs(),
                one.number,
                one.now_ms,
                one.shards,
                one.directory,
                one.versions,
            )
        )

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pathlib import Path

        from tailrace.pipelines.engine.execute import run_tick
        from tailrace.pipelines.engine.graph import TickContext
        from tailrace.pipelines.state.files import LocalFiles
        from tailrace.pipelines.state.shard import Attempt

        for batch in batches:
            for number in batch.column(0).to_pylist():
                graph, inputs, tick, now_ms, shards, directory, versions = work[number]
                files, cache = LocalFiles(Path(directory) / "state"), Path(directory) / "cache"
                with Attempt.begin(files, cache, versions) as attempt:
                    context = TickContext(tick, now_ms)
                    emitted = run_tick(graph, inputs, attempt, context, shards=shards)
                    done = {**versions, **attempt.finish(tick)}
                rows = {name: changes.to_pylist() for name, changes in emitted.items()}
                yield pa.record_batch(
                    [pa.array([number], pa.int64()), pa.array([pickle.dumps((rows, done))])],
                    names=["number", "answer"],
                )

    frame = spark.range(0, len(work), 1, 2).mapInArrow(task, "number BIGINT, answer BINARY")
    answers = frame.toArrow()
    assert answers.num_rows == len(tables)
    for number, answer in zip(*(column.to_pylist() for column in answers.columns), strict=True):
        emitted, tables[number].versions = pickle.loads(answer)
        tables[number].apply(emitted)


def random_query(chance: random.Random) -> str:
    """A query of the grammar: joins, filters with subqueries, groups, sets, windows."""
    source, number, text = chance.choice(
        [
            ("shop.a a", "k", "s"), ("shop.b b", "n", "s"), ("shop.c c", "n", "s"),
            ("shop.a a JOIN shop.b b ON a.k = b.k", "b.n", "a.s"),
            ("shop.a a LEFT JOIN shop.c c ON a.k = c.k", "c.n", "a.s"),
            ("shop.b b FULL JOIN shop.c c ON b.k = c.k AND b.n > 0", "c.n", "b.s"),
            ("shop.a a JOIN shop.b b ON a.k = b.k JOIN shop.c c ON c.k = b.k", "c.n", "b.s"),
            ("(SELECT k, s, count(*) AS c FROM shop.a GROUP BY k, s)", "c", "s"),
            ("(SELECT DISTINCT k, s FROM shop.c)", "k", "s"),
        ]
    )  # fmt: skip
    where = chance.choice(
        [
            "", f" WHERE {number} > 1", f" WHERE {text} LIKE 'z%' OR {number} < 2",
            f" WHERE {number} IN (SELECT k FROM shop.b)",
            f" WHERE {number} NOT IN (SELECT n FROM shop.c WHERE n IS NOT NULL)",
            f" WHERE EXISTS (SELECT 1 FROM shop.c z WHERE z.k = {number})",
            f" WHERE NOT EXISTS (SELECT 1 FROM shop.b z WHERE z.k = {number} AND z.n > 1)",
            f" WHERE {number} > (SELECT avg(n) FROM shop.c)",
            f" WHERE {number} <= (SELECT count(*) FROM shop.b z WHERE z.s = {text})",
        ]
    )  # fmt: skip
    form = chance.choice(
        [
            "SELECT {n} AS x, {t} AS y FROM {f}", "SELECT DISTINCT {n} AS x, {t} AS y FROM {f}",
            "SELECT {t} AS g, count(*) AS c, sum({n}) AS s, min({n}) AS lo, max({t}) AS hi FROM {f} GROUP BY {t}",
            "SELECT {n} AS g, count(DISTINCT {t}) AS c FROM {f} GROUP BY {n} HAVING count(*) > 1",
            "SELECT {n} AS x, rank() OVER (PARTITION BY {t} ORDER BY {n}) AS r FROM {f}",
            "SELECT {t} AS y, sum({n}) OVER (PARTITION BY {t}) AS s FROM {f}",
            "SELECT {n} AS x, {t} AS y FROM {f} UNION SELECT k, s FROM shop.b",
            "SELECT {n} AS x FROM {f} EXCEPT SELECT k FROM shop.c",
            "SELECT {t} AS g, count(*) FILTER (WHERE {n} > 1) AS c FROM {f} GROUP BY ROLLUP({t})",
        ]
    )  # fmt: skip
    return form.format(n=number, t=text, f=source + where)


def plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return plain(value.asDict())
    if isinstance(value, dict):
        return tuple((name, plain(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(part) for part in value)
    return comparable(value)


def test_random_queries_in_sparks_tasks_equal_sparks_batch_sql(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(20261116)
    judge(spark, tmp_path, [random_query(chance) for _ in range(30)])


@pytest.mark.thorough
def test_queries_in_sparks_tasks_equal_sparks_batch_sql(
    spark: SparkSession, tmp_path: Path
) -> None:
    judge(spark, tmp_path, QUERIES)


def judge(spark: SparkSession, directory: Path, queries: list[str]) -> None:
    """Keep the queries over random changes; in the end each equals Spark's own answer."""
    began = time.perf_counter()
    views = [ViewDefinition(f"v{i}", sql) for i, sql in enumerate(queries)]
    tables = SparkTables(compile_views(views, TABLES), directory)
    shop = Shop("SELECT id FROM shop.a", 7)
    shop.memory = tables
    for _ in range(4):
        for _ in range(3):
            shop.change()
        run_in_spark(spark, [tables])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for known in TABLES:
        schema = ", ".join(f"{f.name} {ddl(f.type)}" for f in known.schema)
        rows = [tuple(row[n] for n in known.schema.names) for row in shop.contents()[known.topic]]
        name = known.topic.replace("shop.public.", "shop_")
        spark.createDataFrame(rows, schema=schema).createOrReplaceTempView(name)
    wrong = []
    for number, sql in enumerate(queries):
        plan = tables.graph.views[f"v{number}"]
        names = [name for name, _ in plan.columns if not (plan.bag and name == "count")]
        ours = Counter(plain([row[n] for n in names]) for row in tables.rows(plan.name))
        theirs = Counter(
            plain(list(row)) for row in spark.sql(sql.replace("shop.", "shop_")).collect()
        )
        if ours != theirs:
            wrong.append(f"{sql}\n  extra {ours - theirs}\n  missing {theirs - ours}")
    print(f"{len(queries)} queries, {time.perf_counter() - began:.1f} s")
    assert not wrong, "\n".join(wrong)


def test_files_of_behaviours_hold_in_sparks_tasks(spark: SparkSession, tmp_path: Path) -> None:
    began = time.perf_counter()
    scripts: list[Script] = [read_script(path) for path in FILES]
    running = [
        SparkTables(compile_views(script.views, script.tables), tmp_path / path.stem)
        for path, script in zip(FILES, scripts, strict=True)
    ]
    for number in range(max(len(script.steps) for script in scripts)):
        busy = [i for i, script in enumerate(scripts) if number < len(script.steps)]
        for i in busy:
            step = scripts[i].steps[number]
            known = {each.topic: each for each in scripts[i].tables}
            for sign, topic, row in step.changes:
                change = running[i].upsert if sign == "+" else running[i].delete
                change(topic, typed(row, known[topic]))
            if step.now_ms is not None:
                running[i].now_ms = step.now_ms
        run_in_spark(spark, [running[i] for i in busy])
        for i in busy:
            for view, expected in scripts[i].steps[number].expected.items():
                shown = Counter(repr(sorted(row.items())) for row in shown_rows(running[i], view))
                wanted = Counter(repr(sorted(row.items())) for row in expected)
                assert shown == wanted, (FILES[i].name, view, number)
    print(f"{len(scripts)} files, {time.perf_counter() - began:.1f} s")
