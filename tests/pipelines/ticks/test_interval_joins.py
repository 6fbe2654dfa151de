"""Joins of two streams within a window, through the ticks: what has no partner is reported when
the window closes by the watermark, once, whatever the policy for late rows is."""

from __future__ import annotations

import marshal
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

import tailrace as tr
from pipelines.ticks.test_ticks import in_process
from tailrace.client.admin import Admin
from tailrace.client.writer import TransactionalWriter
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.pipelines.engine.operators.join_distance import EDGES, HISTOGRAM
from tailrace.pipelines.errors import NotIncrementalError, SqlNameError
from tailrace.pipelines.reading.catalog import topic_table
from tailrace.pipelines.reading.reader import LogReader, read_all
from tailrace.pipelines.state.cache import close_opened
from tailrace.pipelines.state.inspect import cached_values
from tailrace.pipelines.ticks.driver import TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.testing.fake_clock import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)
WITHIN = "c.search = s.id AND c.at BETWEEN s.at AND s.at + INTERVAL '10' SECOND"


class Streams:
    """Searches and clicks, a FULL JOIN within ten seconds of them, and a clock to turn."""

    def __init__(
        self, bootstrap: str, directory: Path, run: Callable[[Work], Outcome], late: str
    ) -> None:
        mark = uuid.uuid4().hex[:6]
        self.bootstrap, self.mark = bootstrap, mark
        self.searches = tr.topic(
            f"searches{mark}", schema="id BIGINT, at TIMESTAMP", time="at", late=late, keep="1 hour"
        )
        self.clicks = tr.topic(
            f"clicks{mark}", schema="id BIGINT, search BIGINT, at TIMESTAMP", time="at", late=late,
            keep="1 hour",
        )  # fmt: skip
        self.view = tr.view(
            f"outcomes{mark}",
            f"""SELECT s.id AS search, c.id AS click, coalesce(c.at, s.at) AS at
                FROM searches{mark} s FULL JOIN clicks{mark} c ON {WITHIN}
                WHERE (s.id IS NOT NULL AND c.id IS NOT NULL)
                   OR coalesce(c.at, s.at) < watermark('searches{mark}', 'clicks{mark}')
                                             - INTERVAL '10' SECOND""",
            key=["search", "click"],
        )
        self.clock = FakeClock(int(START.timestamp() * 1000))
        topics = [self.searches, self.clicks]
        with Admin(bootstrap) as admin:
            for topic in topics:
                admin.ensure_topic(topic.name, 2, {})
        self.graph = compile_views([self.view], [topic_table(topic) for topic in topics])
        self.cache = directory / "cache"
        self._settings = TickSettings(
            f"p{mark}", bootstrap, str(directory / "state"), str(self.cache), shards=2
        )
        self._run, self._topics = run, topics
        self.ticks = self._made()

    def _made(self) -> ProjectTicks:
        return ProjectTicks(
            self.graph,
            self._settings,
            self._run,
            plain=frozenset(topic.name for topic in self._topics),
            times={topic.name: topic.time for topic in self._topics if topic.time is not None},
            clock=self.clock,
        )

    def restart(self) -> None:
        """Go on in a new process, as it were, without what this one remembers."""
        self.ticks.close()
        self.ticks = self._made()
        self.ticks.start()

    def write(self, *rows: tuple[Any, dict[str, Any], int]) -> None:
        with TransactionalWriter(self.bootstrap, f"w{self.mark}") as writer:
            writer.init()
            for topic, row, second in rows:
                at = (START + timedelta(seconds=second)).isoformat()
                writer.send(topic.name, 0, None, orjson.dumps({**row, "at": at}))
            writer.commit()

    def settle(self) -> None:
        """Take in what was written, and let ticks come that are due by the clock alone."""
        for _ in range(3):
            self.ticks.step(0.0)
            self.clock.advance(2)

    def records(self) -> list[tuple[tuple[Any, Any], bool]]:
        """Every record of the view: its key, and whether it shows a row."""
        found = []
        with LogReader(self.bootstrap) as reader:
            for records in read_all(reader, self.view.name):
                for key, value in zip(records.keys, records.values, strict=True):
                    parts = orjson.loads(key or b"")
                    found.append(((parts["search"], parts["click"]), value is not None))
        return found

    def shown(self) -> set[tuple[Any, Any]]:
        last = dict(self.records())
        return {key for key, shown in last.items() if shown}


@pytest.fixture
def streams(
    tailrace_broker: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Streams]:
    run, late = request.param
    made = Streams(tailrace_broker, tmp_path, run, late)
    try:
        made.ticks.start()
        yield made
    finally:
        made.ticks.close()


@pytest.mark.parametrize(
    "streams",
    [
        pytest.param((in_process, "correct"), id="correct"),
        pytest.param((in_process, "drop"), id="drop"),
        pytest.param((in_process, "side"), id="side", marks=pytest.mark.thorough),
        pytest.param((run_levels_here, "drop"), id="levels", marks=pytest.mark.thorough),
    ],
    indirect=True,
)  # fmt: skip
def test_a_row_without_a_partner_is_reported_when_its_window_closes(
    streams: Streams, request: pytest.FixtureRequest
) -> None:
    searches, clicks = streams.searches, streams.clicks
    streams.write(
        (clicks, {"id": 11, "search": 1}, 8),  # before its search
        (searches, {"id": 1}, 0),
        (searches, {"id": 2}, 5),
        (clicks, {"id": 19, "search": 9}, 6),  # of no search
    )
    streams.settle()
    assert streams.shown() == {(1, 11)}
    streams.write((searches, {"id": 3}, 14), (clicks, {"id": 18, "search": 8}, 14))
    streams.settle()
    assert streams.shown() == {(1, 11)}  # the watermark is 14: the windows of 5 and 6 are open
    streams.write((searches, {"id": 4}, 40), (clicks, {"id": 17, "search": 7}, 41))
    streams.settle()
    closed = {(1, 11), (2, None), (3, None), (None, 19), (None, 18)}
    assert streams.shown() == closed
    assert all(shown for _, shown in streams.records())
    assert len(streams.records()) == len(closed)  # each once, and none before
    streams.write((clicks, {"id": 12, "search": 2}, 12))  # late
    streams.settle()
    if "correct" in request.node.name:
        assert streams.shown() == closed - {(2, None)} | {(2, 12)}
    else:
        assert streams.shown() == closed
        assert len(streams.records()) == len(closed)


@pytest.mark.thorough
@pytest.mark.parametrize("streams", [(in_process, "drop")], indirect=True, ids=["drop"])
def test_a_backlog_reports_nothing_that_has_its_partner_further_on(streams: Streams) -> None:
    """By the clock of the wall all windows have closed long ago."""
    streams.clock.advance(24 * 3600)
    searches, clicks = streams.searches, streams.clicks
    for second in range(0, 60, 20):
        streams.write((searches, {"id": second}, second))
        streams.settle()  # its click has not been read yet
        streams.write((clicks, {"id": 100 + second, "search": second}, second + 5))
        streams.settle()
    assert streams.shown() == {(0, 100), (20, 120), (40, 140)}
    assert all(None not in key for key, _ in streams.records())


@pytest.mark.parametrize("streams", [(in_process, "correct")], indirect=True, ids=["correct"])
def test_how_long_partners_are_apart_is_remembered(streams: Streams) -> None:
    [join] = [n.id for n in streams.graph.nodes if getattr(n.operator, "between", None) is not None]

    def counted() -> dict[int, int]:
        found: dict[int, int] = {}
        close_opened()  # a process may have a cache open once
        for _, value in cached_values(streams.cache, [join], HISTOGRAM):
            for bucket, pairs in marshal.loads(value).items():
                found[bucket] = found.get(bucket, 0) + pairs
        return found

    searches, clicks = streams.searches, streams.clicks
    for number in range(8):
        at = 60 * number
        streams.write((searches, {"id": number}, at), (clicks, {"id": number, "search": number}, at + 1 + number % 2))  # fmt: skip
    streams.settle()
    second, two = (int(EDGES.searchsorted(micros)) for micros in (1_000_000, 2_000_000))
    assert counted() == {second: 4, two: 4}
    streams.restart()
    streams.write((clicks, {"id": 20, "search": 7}, 421))
    streams.settle()
    assert counted() == {second: 5, two: 4}
    told = explain(streams.graph, streams.view.name, None, {join: counted()})
    assert f"time from {searches.name}.at to {clicks.name}.at, of 9 pairs: half within 1 s" in told


def tables() -> list[Any]:
    return [
        topic_table(tr.topic("searches", schema="id BIGINT, at TIMESTAMP", time="at")),
        topic_table(tr.topic("plain", schema="id BIGINT, at TIMESTAMP")),
    ]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT id FROM searches WHERE at < watermark('plain')", "no stream with an event time"),
        ("SELECT id FROM searches WHERE at < watermark('searhces')", "no stream with an event time"),
        ("SELECT id FROM searches WHERE at < watermark()", "of which streams"),
    ],
)  # fmt: skip
def test_a_watermark_of_nothing_is_refused_with_the_place(sql: str, said: str) -> None:
    with pytest.raises(SqlNameError, match=said) as caught:
        compile_views([ViewDefinition("v", sql)], tables())
    assert "^" in caught.value.detail


@pytest.mark.parametrize(
    ("sql", "policy"),
    [
        ("SELECT id, watermark('searches') AS w FROM searches", "auto"),
        ("SELECT id FROM searches WHERE hour(at) < hour(watermark('searches'))", "auto"),
        ("SELECT id FROM searches WHERE at < watermark('searches') OR at < now()", "auto"),
        ("SELECT id FROM searches WHERE at < watermark('searches')", "full"),
    ],
)
def test_a_watermark_is_a_bound_of_a_filter_and_nothing_else(sql: str, policy: str) -> None:
    with pytest.raises(NotIncrementalError, match="watermark") as caught:
        compile_views([ViewDefinition("v", sql, None, policy)], tables())
    line, marks = caught.value.detail.splitlines()[-2:]
    assert line[marks.index("^") :].startswith("watermark('searches')")


def test_a_watermark_and_the_clock_may_stand_side_by_side() -> None:
    sql = (
        "SELECT id FROM searches WHERE at < watermark('searches') AND at > now() - INTERVAL '1' DAY"
    )
    graph = compile_views([ViewDefinition("v", sql, None, "strict")], tables())
    assert [node.operator.kind for node in graph.nodes].count("clock") == 2
