"""How a project's views are kept, told from its declarations and the log's table schemas."""

from __future__ import annotations

import contextlib
import marshal
import socket
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import orjson

from tailrace.config import parse_address
from tailrace.errors import UsageError
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.compiler.explain import Size, explain
from tailrace.pipelines.compiler.wording import Wording
from tailrace.pipelines.engine.graph import Graph, TableInput
from tailrace.pipelines.engine.operators.join import Join
from tailrace.pipelines.engine.operators.join_distance import HISTOGRAM
from tailrace.pipelines.reading.catalog import described_table, read_catalog
from tailrace.pipelines.reading.reader import LogReader
from tailrace.pipelines.ticks.carried import as_carried
from tailrace.pipelines.ticks.failed_views import subgraph
from tailrace.project.errors import MissingInputError
from tailrace.project.load import Project
from tailrace.project.undescribed import undescribed

TABLE = "table:"


def explain_view(project: Project, bootstrap: str, name: str) -> str:
    """The operators of view `name`, in words; types come from the log, or the databases.

    What each keeps is told as of the last tick, or where the log does not answer or there is
    too much to read, as the caches of this host have it; they also tell how long partners of
    joins of streams are apart."""
    from tailrace.pipelines.state.files import open_files
    from tailrace.pipelines.state.inspect import cached_sizes, current_sizes
    from tailrace.pipelines.ticks.driver import last_row

    _known(project, name)
    state = project.settings.state_directory
    tick = None
    if answers(bootstrap):
        with LogReader(bootstrap) as reader:
            tick = last_row(reader, project.name)
    if tick is None:
        found, exact = cached_sizes(state / "cache"), True
    else:
        with tempfile.TemporaryDirectory() as scratch:
            found, exact = current_sizes(
                open_files(project.settings.spark.state or state / "state"),
                state / "cache",
                Path(scratch),
                tick.state,
            )
    sizes = {operator: Size(size.rows, size.bytes) for operator, size in found.items()}
    graph = as_carried(compiled(project, bootstrap), tick)
    text = explain(graph, name, sizes, _apart(graph, state / "cache", found))
    return text if exact else f"{text}\nrows and bytes are of the tick before"


def _apart(graph: Graph, cache: Path, known: Collection[str]) -> dict[str, dict[int, int]]:
    """The histograms of the joins of streams that have run here, over all shards."""
    from tailrace.pipelines.state.inspect import cached_values

    joins = [
        node.id
        for node in graph.nodes
        if isinstance(node.operator, Join) and node.operator.between is not None
    ]
    counts: dict[str, dict[int, int]] = {join: {} for join in joins if join in known}
    for operator, value in cached_values(cache, list(counts), HISTOGRAM):
        for bucket, pairs in marshal.loads(value).items():
            counts[operator][bucket] = counts[operator].get(bucket, 0) + pairs
    return counts


def draw_view(project: Project, bootstrap: str, name: str) -> dict[str, Any]:
    """The operators of view `name` as nodes and edges, tables first."""
    _known(project, name)
    graph = subgraph(compiled(project, bootstrap), [name])
    words = Wording(graph)
    nodes = [
        {"id": f"{TABLE}{topic}", "kind": "table", "what": topic, "level": 0}
        for topic in graph.tables
    ]
    nodes += [
        {
            "id": node.id,
            "kind": node.operator.kind,
            "what": words.of(node),
            "level": node.level,
        }
        for node in graph.nodes
    ]
    edges = [
        {
            "from": edge.source,
            "to": node.id,
            "where": words.where(edge),
        }
        for node in graph.nodes
        for edge in node.edges
    ]
    return {"view": name, "nodes": nodes, "edges": edges}


def state_of_view(project: Project, bootstrap: str, name: str) -> dict[str, Any]:
    """Rows and bytes that each operator of view `name` keeps at the last tick.

    Reads all state files of the project: seconds for millions of rows.
    """
    from tailrace.pipelines.state.files import open_files
    from tailrace.pipelines.state.inspect import sizes
    from tailrace.pipelines.ticks.driver import last_row

    _known(project, name)
    if not answers(bootstrap):
        raise UsageError("the log does not answer", hint="run the project: `tailrace up`")
    with LogReader(bootstrap) as reader:
        tick = last_row(reader, project.name)
    if tick is None:
        raise UsageError("the project has not ticked yet", hint="run it: `tailrace up`")
    graph = subgraph(as_carried(compiled(project, bootstrap), tick), [name])
    files = open_files(project.settings.spark.state or project.settings.state_directory / "state")
    with tempfile.TemporaryDirectory() as scratch:
        found = sizes(files, Path(scratch), tick.state)
    words = Wording(graph)
    operators = [
        {
            "id": node.id,
            "kind": node.operator.kind,
            "what": words.of(node),
            "rows": found[node.id].rows if node.id in found else 0,
            "bytes": found[node.id].bytes if node.id in found else 0,
        }
        for node in graph.nodes
    ]
    return {"view": name, "tick": tick.number, "operators": operators}


def _known(project: Project, name: str) -> None:
    if name not in project.views:
        raise MissingInputError(
            f"no view {name!r} is declared",
            hint=f"there are: {', '.join(project.views) or 'none'}",
        )


def compiled(project: Project, bootstrap: str) -> Graph:
    """The graph of its views; types come from the log, or the databases."""
    tables = known_tables(project, bootstrap)
    every = [*tables, *undescribed(project, tables)]
    return compile_views(project.views.values(), every, project.functions.values())


def known_tables(project: Project, bootstrap: str) -> list[TableInput]:
    """The captured tables, as the log or the databases describe them."""
    return _from_log(bootstrap) if answers(bootstrap) else _from_databases(project)


def _from_log(bootstrap: str) -> list[TableInput]:
    with LogReader(bootstrap) as reader:
        return list(read_catalog(reader).tables.values())


def _from_databases(project: Project) -> list[TableInput]:
    """Nothing runs: ask the databases themselves what their tables look like."""
    from tailrace.sources.describe import describe

    with contextlib.chdir(project.directory):  # relative paths are the project's
        return [
            described_table(orjson.loads(table.record("")[1]))
            for source in project.sources.values()
            for table in describe(source)
        ]


def answers(bootstrap: str) -> bool:
    """Whether any broker of the list accepts a connection."""
    for address in bootstrap.split(","):
        try:
            socket.create_connection(parse_address(address.strip()), timeout=2).close()
        except OSError:
            continue
        return True
    return False
