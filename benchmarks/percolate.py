"""Stored queries beside Lucene's Monitor: documents a second of CPU, one table, one run.

    python -m benchmarks.percolate            (make bench-patterns)
    python -m benchmarks.percolate 1000000    also: the memory of a million queries

20,000 documents of 30 words against 10,000 queries, and against ten times as many that do not
match. Ours is the operator as ticks run it: words, matching, the pairs with the JSON of their
events. The Monitor is Lucene's own (9.11.1, from Maven, Java 17), in batches of 1,000; the same
queries, the same documents, the same number of pairs. Without Maven its rows are left out.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import tailrace as tr
from tailrace.pipelines.compiler.declared_patterns import compile_patterns
from tailrace.pipelines.engine.execute import input_schema, run_tick
from tailrace.pipelines.engine.graph import TickContext
from tailrace.pipelines.values.columns import DELETED, KEY, OFFSET, PARTITION
from tailrace.testing.state import MemoryStates

DOCUMENTS, WORDS, QUERIES = 20_000, 30, 10_000
TICK = 4_000
LUCENE = "9.11.1"
VOCABULARY = [f"w{number}" for number in range(20_000)]
JAVA = """
import java.nio.file.*;
import java.util.*;
import org.apache.lucene.analysis.core.*;
import org.apache.lucene.document.*;
import org.apache.lucene.monitor.*;
import org.apache.lucene.queryparser.classic.QueryParser;

public class Percolate {
  public static void main(String[] given) throws Exception {
    var analyzer = new WhitespaceAnalyzer();
    var parser = new QueryParser("body", analyzer);
    var documents = Files.readAllLines(Path.of(given[0]));
    try (var monitor = new Monitor(analyzer)) {
      var batch = new ArrayList<MonitorQuery>();
      int number = 0;
      for (String line : Files.readAllLines(Path.of(given[1]))) {
        batch.add(new MonitorQuery(Integer.toString(number++), parser.parse(line)));
        if (batch.size() == 10000) { monitor.register(batch); batch.clear(); }
      }
      monitor.register(batch);
      for (int run = 0; run < 2; run++) {
        long began = cpu(), pairs = 0;
        for (int first = 0; first < documents.size(); first += 1000) {
          var made = new ArrayList<Document>();
          for (String text : documents.subList(first, Math.min(first + 1000, documents.size()))) {
            var document = new Document();
            document.add(new TextField("body", text, Field.Store.NO));
            made.add(document);
          }
          var found = monitor.match(made.toArray(new Document[0]), QueryMatch.SIMPLE_MATCHER);
          for (int at = 0; at < made.size(); at++) pairs += found.getMatchCount(at);
        }
        if (run == 1) System.out.println(pairs + " " + (cpu() - began) / 1e9);
      }
    }
  }
  static long cpu() {
    var system = java.lang.management.ManagementFactory.getOperatingSystemMXBean();
    return ((com.sun.management.OperatingSystemMXBean) system).getProcessCpuTime();
  }
}
"""
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.lucene</groupId><artifactId>lucene-monitor</artifactId>
<version>{LUCENE}</version></dependency>
<dependency><groupId>org.apache.lucene</groupId><artifactId>lucene-queryparser</artifactId>
<version>{LUCENE}</version></dependency></dependencies></project>"""


def common(rng: random.Random) -> str:
    """A word as often as its place in the vocabulary says (Zipf)."""
    return VOCABULARY[min(int(20_000 ** rng.random()) - 1, 19_999)]


def query(rng: random.Random) -> str:
    """One that some documents match; in words that Lucene's classic parser reads alike."""
    rare, other, kind = rng.choice(VOCABULARY), rng.choice(VOCABULARY), rng.random()
    if kind < 0.5:
        return f"{rare} AND {common(rng)}"
    if kind < 0.7:
        return f"{rare} OR {other}"
    if kind < 0.8:
        return f"+{rare} -{other}"
    if kind < 0.9:
        return f"({rare} OR {other}) AND {common(rng)}"
    return f'"{common(rng)} {common(rng)}"'


def main(millions: int = 0) -> None:
    rng = random.Random(1)
    documents = [" ".join(common(rng) for _ in range(WORDS)) for _ in range(DOCUMENTS)]
    few = [query(rng) for _ in range(QUERIES)]
    absent = [f"{common(rng)} AND absent{number}" for number in range(9 * QUERIES)]
    print(f"{'stored queries':>16} {'by':<18} {'pairs':>10} {'documents/CPU s':>16}")
    rates: dict[str, float] = {}
    for queries in (few, few + absent):
        pairs, seconds = ours(documents, queries)
        rates[f"ours {len(queries)}"] = DOCUMENTS / seconds
        _row(len(queries), "tailrace", pairs, seconds)
        theirs = lucene(documents, queries)
        if isinstance(theirs, str):
            print(f"{len(queries):>16,} Lucene {LUCENE:<11} skipped: {theirs}")
            continue
        _row(len(queries), f"Lucene {LUCENE}", *theirs)
        assert theirs[0] == pairs, "the pairs differ"
        print(f"{'':>16} {'':<18} {'':>10} {theirs[1] / seconds:>15.1f}×")
    ratio = rates[f"ours {10 * QUERIES}"] / rates[f"ours {QUERIES}"]
    print(f"ten times as many queries that do not match: {ratio:.2f}× the documents")
    if millions:
        print(f"{millions:,} queries: {memory(millions)} MB of memory")


def _row(count: int, by: str, pairs: int, seconds: float) -> None:
    print(f"{count:>16,} {by:<18} {pairs:>10,} {DOCUMENTS / seconds:>16,.0f}")


def ours(documents: list[str], queries: list[str]) -> tuple[int, float]:
    """Pairs, and the CPU seconds of the ticks that match; reading the queries is left out."""
    declared = tr.percolate(
        "bench", tr.topic("documents", schema="id INT, body STRING"),
        queries=tr.topic("queries", schema="id INT, query STRING", key="id"), id="id",
        query="query", text="body",
    )  # fmt: skip
    compiled, wrong = compile_patterns([declared], {})
    assert not wrong
    graph, states = compiled["bench"].graph, MemoryStates()
    count = len(queries)
    ids = pa.array(range(count), pa.int32())
    columns = {
        "id": ids, "query": pa.array(queries), PARTITION: pa.repeat(pa.scalar(0, pa.int64()), count),
        OFFSET: ids.cast(pa.int64()), KEY: ids.cast(pa.string()).cast(pa.binary()),
        DELETED: pa.repeat(pa.scalar(False), count),
    }  # fmt: skip
    schema = input_schema(graph.tables["queries"])
    stored = pa.table([columns[name] for name in schema.names], schema=schema)
    run_tick(graph, {"queries": stored}, states, TickContext(1, 0))
    schema = input_schema(graph.tables["documents"])

    def tick(number: int, first: int) -> int:
        texts = documents[first : first + TICK]
        places = pa.array(range(first, first + len(texts)), pa.int64())
        zeros = pa.repeat(pa.scalar(0, pa.int64()), len(texts))
        read = {
            "id": places.cast(pa.int32()), "body": pa.array(texts), PARTITION: zeros, OFFSET: places,
            "__micros": zeros, "__time": zeros.cast(pa.timestamp("us", tz="UTC")),
        }  # fmt: skip
        table = pa.table([read[name] for name in schema.names], schema=schema)
        found = run_tick(graph, {"documents": table}, states, TickContext(number, 0))
        return found["bench"].num_rows if found else 0

    tick(2, 0)  # the queries are compiled, and anchored where it pays
    began = time.process_time()
    pairs = sum(tick(3 + at, at) for at in range(0, len(documents), TICK))
    return pairs, time.process_time() - began


def lucene(documents: list[str], queries: list[str]) -> tuple[int, float] | str:
    """The same of Lucene's Monitor in its second run; or why there is none."""
    for program in ("mvn", "javac", "java"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    home = Path(".tailrace/bench-lucene").resolve()
    home.mkdir(parents=True, exist_ok=True)
    (home / "pom.xml").write_text(POM)
    (home / "Percolate.java").write_text(JAVA)
    if not (home / "lib").exists():
        done = subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"],
            cwd=home, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(home / "lib", ignore_errors=True)
            return f"Lucene {LUCENE} cannot be had from Maven"
    subprocess.run(["javac", "-cp", "lib/*", "Percolate.java"], cwd=home, check=True, timeout=300)
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch, "documents"), Path(scratch, "queries")
        for path, lines in zip(files, (documents, queries), strict=True):
            path.write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            ["java", "-Xmx4g", "-XX:ActiveProcessorCount=2", "-cp", ".:lib/*", "Percolate", *map(str, files)],
            cwd=home, capture_output=True, text=True, timeout=1800, check=True,
        )  # fmt: skip
    pairs, seconds = done.stdout.split()
    return int(pairs), float(seconds)


def memory(count: int) -> int:
    """What a process takes with so many queries, in a process of its own, in MB."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.percolate", "--memory", str(count)],
        capture_output=True, text=True, check=True, timeout=1800,
    )  # fmt: skip
    return int(json.loads(done.stdout)["mb"])


def take(count: int) -> None:
    """Hold so many queries as an operator does, and tell the memory."""
    from tailrace.pipelines.engine.percolate.fields import Fields
    from tailrace.pipelines.engine.percolate.queries import QuerySet

    rng = random.Random(1)
    queries, rows = QuerySet(Fields((("body", ""),), ())), {}
    for number in range(count):
        key = b"\x01" + number.to_bytes(8, "big")
        queries.put(key, query(rng))
        rows[key] = (1, (number, None, f"owner {number}", f"https://example.org/{number}"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"mb": peak, "queries": len(queries), "rows": len(rows)}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        take(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 0)
