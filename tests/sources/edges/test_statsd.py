"""StatsD: lines, what they add up to, and that received and lost are all that was sent."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace as tr
from tailrace import sources
from tailrace.client.log import Log
from tailrace.console.alarms import alarms
from tailrace.sources.edges.datagrams import drops
from tailrace.sources.edges.figures import LastMinute
from tailrace.sources.edges.statsd import Listening
from tailrace.sources.edges.statsd_lines import Aggregate, BadLine
from tailrace.sources.errors import SourceDeclarationError


def added(*lines: bytes) -> dict[tuple[str, tuple[str, ...]], float]:
    aggregate = Aggregate()
    for line in lines:
        aggregate.add(line)
    return {(one.name, one.tags): one.value for one in aggregate.take()}


def test_counters_are_sums_and_sampled_ones_are_scaled() -> None:
    assert added(b"a:1|c", b"a:2|c|@0.5", b"a:-1|c", b"a:3:4|c") == {("a", ()): 11}


def test_gauges_are_set_and_changed_and_stay() -> None:
    aggregate = Aggregate()
    for line in (b"g:10|g", b"g:+5|g", b"g:-3|g"):
        aggregate.add(line)
    assert [(one.kind, one.value) for one in aggregate.take()] == [("gauge", 12)]
    assert aggregate.take() == []
    aggregate.add(b"g:+1|g")
    assert [one.value for one in aggregate.take()] == [13]


def test_sets_count_what_differs() -> None:
    assert added(b"u:x|s", b"u:y|s", b"u:x|s") == {("u", ()): 2}


def test_timers_tell_how_values_are_spread() -> None:
    found = added(*(b"t:%d|ms" % n for n in range(1, 101)))
    assert {name.removeprefix("t."): value for (name, _), value in found.items()} == {
        "count": 100, "sum": 5050, "min": 1, "max": 100, "mean": 50.5,
        "p50": 50, "p95": 95, "p99": 99,
    }  # fmt: skip
    sampled = added(b"t:10|h|@0.1", b"t:20|h")
    assert sampled["t.count", ()] == 11
    assert sampled["t.p50", ()] == 10


def test_tags_tell_series_apart_in_any_order() -> None:
    found = added(b"a:1|c|#x:1,y", b"a:1|c|@1|#y,x:1", b"a:1|c", b"a:5|c|#z|c:abc")
    assert found == {("a", ("x:1", "y")): 2, ("a", ()): 1, ("a", ("z",)): 5}


@pytest.mark.parametrize(
    "line",
    [b"", b"a", b"a:1", b":1|c", b"a:|c", b"a:x|c", b"a:1|q", b"a:1|c|@0", b"a:1|c|@2", b"a:1|c|?",
     b"a:nan|g", b"a:1_0|c", b"a:inf|g", b"a: 1|c", b"\xff:1|c", b"a:1e999|c", b"x" * 9000 + b":1|c"],
)  # fmt: skip
def test_a_line_that_says_nothing_counts_nothing(line: bytes) -> None:
    aggregate = Aggregate()
    with pytest.raises(BadLine):
        aggregate.add(line)
    assert aggregate.take() == []


def test_series_and_values_have_limits() -> None:
    aggregate = Aggregate(series_limit=2, values_limit=3)
    aggregate.add(b"a:1|c")
    aggregate.add(b"b:1|ms")
    for line in (b"d:1|c", b"d:1|g", b"b:1:2:3|ms"):
        with pytest.raises(BadLine):
            aggregate.add(line)
    aggregate.add(b"a:1|c")
    assert len(aggregate.take()) == 9


def taken(aggregate: Aggregate, lines: list[bytes]) -> int:
    """How many of the lines were."""
    count = 0
    for line in lines:
        with suppress(BadLine):
            aggregate.add(line)
            count += 1
    return count


def test_long_names_and_many_values_have_a_limit_together() -> None:
    long = "x" * 7000
    for line in ("{}:1|g", "{}:1|c", "{}:1|ms", "{}:1|s", "s:{}|s", "a:1|g|#{}", "ö{}:1|c"):
        lines = [line.format(f"{number}{long}").encode() for number in range(20)]
        assert 0 < taken(Aggregate(room_bytes=100_000), lines) < 15, line
    aggregate = Aggregate(room_bytes=100_000)
    values = b"t:" + b":".join([b"1"] * 1000) + b"|ms"
    assert taken(aggregate, [values] * 5) == 2
    aggregate.take()
    assert taken(aggregate, [values]) == 1  # a flush makes room


def test_gauges_that_nobody_sets_any_more_make_room() -> None:
    aggregate = Aggregate(series_limit=3)
    for line in (b"a:1|g", b"b:2|g", b"c:3|g"):
        aggregate.add(line)
    with pytest.raises(BadLine):
        aggregate.add(b"d:4|g")
    aggregate.take()
    aggregate.add(b"a:+1|g")
    aggregate.add(b"d:4|g")
    aggregate.add(b"e:5|c")
    with pytest.raises(BadLine):
        aggregate.add(b"f:6|g")
    assert {one.name: one.value for one in aggregate.take()} == {"a": 2, "d": 4, "e": 5}


@given(st.binary(max_size=60))
def test_any_bytes_are_counted_or_refused(data: bytes) -> None:
    aggregate = Aggregate()
    try:
        aggregate.add(data)
    except BadLine:
        assert aggregate.take() == []


_lines = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(-5, 5),
        st.sampled_from(["c", "g", "s"]),
        st.sampled_from([(), ("x",), ("x", "y:1")]),
    ),
    max_size=30,
)


@given(_lines)
def test_a_plain_sum_of_all_lines_says_the_same(lines: list[tuple[str, int, str, Any]]) -> None:
    counters: dict[Any, float] = defaultdict(float)
    gauges: dict[Any, float] = defaultdict(float)
    sets: dict[Any, set[int]] = defaultdict(set)
    aggregate = Aggregate()
    for name, value, kind, tags in lines:
        aggregate.add(f"{name}:{value}|{kind}{'|#' + ','.join(tags) if tags else ''}".encode())
        if kind == "c":
            counters[name, tags] += value
        elif kind == "g":
            gauges[name, tags] = gauges[name, tags] + value if value < 0 else value
        else:
            sets[name, tags].add(value)
    expected = {
        **{("counter", *key): value for key, value in counters.items()},
        **{("gauge", *key): value for key, value in gauges.items()},
        **{("set", *key): len(held) for key, held in sets.items()},
    }
    assert {(one.kind, one.name, one.tags): one.value for one in aggregate.take()} == expected


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tr.open(tmp_path / "log") as opened:
        yield opened


@contextmanager
def listening(log: Log, **settings: Any) -> Iterator[tuple[Listening, socket.socket]]:
    edge = sources.StatsD("metrics", "127.0.0.1:0", **{"flush": "1 hour", **settings})
    found = Listening(edge, log)
    host, _, port = found.address.partition(":")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect((host, int(port)))
            yield found, sender
    finally:
        found.close()


def wait_for(found: Listening, count: int) -> dict[str, int]:
    until = time.monotonic() + 60
    while (now := found.figures())["datagrams"] + now["lost_datagrams"] < count:
        assert time.monotonic() < until, now
        time.sleep(0.01)
    return now


def test_what_comes_in_datagrams_is_written_at_a_flush(log: Log) -> None:
    with listening(log) as (found, sender):
        found.start()
        sender.send(b"hits:1|c|#page:home\nhits:2|c|#page:home\nbad\n")
        sender.send(b"temperature:21.5|g")
        assert wait_for(found, 2)["bad_lines"] == 1
        found.flush()
        values = [json.loads(one.value or b"") for one in log.read("metrics")]
        assert sorted((one["name"], one["type"], one["value"], one["tags"]) for one in values) == [
            ("hits", "counter", 3, ["page:home"]),
            ("temperature", "gauge", 21.5, []),
        ]
        assert len({one["at"] for one in values}) == 1
        sender.send(b"last:1|c")
        wait_for(found, 3)
    assert json.loads(list(log.read("metrics"))[-1].value or b"")["name"] == "last"


def test_received_and_lost_are_all_that_was_sent(log: Log) -> None:
    """Nobody reads while a small buffer is flooded, so some must be lost."""
    with listening(log, buffer="4 KiB") as (found, sender):
        for number in range(2000):
            sender.send(b"n:%d|c|#%s" % (number, b"x" * 200))
        found.start()
        now = wait_for(found, 2000)
        assert now["datagrams"] + now["lost_datagrams"] == 2000
        assert now["lost_datagrams"] > 0
        assert now["datagrams"] > 0


def test_losses_and_refusals_of_the_last_minute_are_alarms(tmp_path: Path) -> None:
    class Stopped:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    clock = Stopped()
    minute = LastMinute(clock)  # type: ignore[arg-type]
    figures = {"received": 0, "refused": 0, "lost": 0}
    minute.look(figures)
    figures = {"received": 100, "refused": 30, "lost": 2}
    part = {"kind": "edge", "name": "metrics", "state": "running"}
    found = list(alarms([part | minute.look(figures)], [], tmp_path / "none"))
    assert [one["what"] for one in found] == ["edge metrics", "edge metrics"]
    assert "lost 2" in found[0]["message"]
    assert "refused 30 of 100" in found[1]["message"]
    for clock.now in (61.0, 125.0):
        quiet = minute.look(figures)
    assert list(alarms([part | quiet], [], tmp_path / "none")) == []


def test_a_socket_that_nobody_knows_has_lost_nothing() -> None:
    assert drops(os.stat("/").st_ino + 2**40) == 0


def test_a_declaration_that_means_nothing_is_refused() -> None:
    for wrong in ({"flush": "soon"}, {"flush": 0}, {"flush": "0 s"}, {"buffer": "much"}):
        with pytest.raises(SourceDeclarationError):
            sources.StatsD("m", "127.0.0.1:8125", **wrong)  # type: ignore[arg-type]
