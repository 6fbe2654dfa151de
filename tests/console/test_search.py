"""Pages of a topic's records: filters, places, and every record once from page to page."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from servers.consoles import Console
from tailrace.console import search
from tailrace.console.search import Filter, _Partition


def write(console: Console, rows: list[tuple[str, str, int]], partitions: int = 3) -> None:
    import tailrace as tr

    with tr.connect(console.served.bootstrap) as log:
        log.create_topic("t", partitions=partitions)
    producer = Producer({"bootstrap.servers": console.served.bootstrap})
    for number, (key, value, at) in enumerate(rows):
        producer.produce("t", key=key, value=value, partition=number % partitions, timestamp=at, headers={"n": str(number)})  # fmt: skip
    assert producer.flush(30) == 0


def page(console: Console, **asked: Any) -> dict[str, Any]:
    if "start" in asked:
        asked["from"] = asked.pop("start")
    answer = console.client.get("/api/topics/t/latest", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def pages(console: Console, **asked: Any) -> list[str]:
    """The numbers of all records, page by page."""
    numbers, after = [], None
    while True:
        found = page(console, **asked, **({"after": after} if after else {}))
        numbers += [record["headers"]["n"] for record in found["records"]]
        after = found["next"]
        if after is None:
            return numbers


def rows(count: int) -> list[tuple[str, str, int]]:
    # Times that go back now and then: a page must not rely on them.
    return [
        (f"k{n % 7}", orjson.dumps({"n": n, "big": n > 90, "a": {"b": f"x{n}"}}).decode(), 1_700_000_000_000 + (n * 37) % 50)
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("start", ["latest", "earliest", "0"])
def test_every_record_is_met_once_from_page_to_page(console: Console, start: str) -> None:
    write(console, rows(100))
    found = pages(console, start=start, limit=7)
    assert sorted(map(int, found)) == list(range(100))


def test_records_are_found_by_key_value_header_partition_and_condition(console: Console) -> None:
    write(console, rows(100))
    numbers = lambda **asked: sorted(map(int, pages(console, limit=5, **asked)))  # noqa: E731
    assert numbers(key="k3") == [n for n in range(100) if n % 7 == 3]
    assert numbers(value='"b":"x42"', start="earliest") == [42]
    assert numbers(header="n=99") == [99]
    assert len(numbers(header="n")) == 100
    assert numbers(header="m") == []
    assert numbers(partition=1) == [n for n in range(100) if n % 3 == 1]
    assert numbers(where="big AND a.b LIKE 'x%5'") == [95]
    assert numbers(where="key = 'k3' AND n < 11", start="earliest") == [3, 10]
    assert numbers(start="offset:33", partition=0) == [99]


def test_a_page_ends_at_its_limits_and_the_next_goes_on(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(console, rows(100))
    monkeypatch.setattr(search, "BLOCK", 10)
    monkeypatch.setattr(search, "MOST_RECORDS", 20)
    for start in ("latest", "earliest"):
        first = page(console, start=start, key="nobody", limit=5)
        assert first["records"] == []
        assert 20 <= first["scanned"] <= 30
        assert first["next"]
        assert pages(console, start=start, key="nobody", limit=5) == []
    monkeypatch.setattr(search, "MOST_BYTES", 100)
    assert sorted(map(int, pages(console, limit=50))) == list(range(100))
    assert sorted(map(int, pages(console, limit=50, start="earliest"))) == list(range(100))


@pytest.mark.parametrize("asked", [{"from": "offset:x"}, {"from": "offset:" + "9" * 30}, {"after": "x"}, {"where": "((("}])  # fmt: skip
def test_what_cannot_be_understood_is_400(console: Console, asked: dict[str, str]) -> None:
    write(console, rows(1))
    answer = console.client.get("/api/topics/t/latest", params=asked)
    assert answer.status_code == 400, answer.text


def test_odd_values_match_no_condition_and_hide_nothing() -> None:
    for value in (None, b"", b"\xff", b"[1]", b"{", b'{"op": 1, "after": 3}'):
        assert not Filter(where=lambda row: "n" in row).accepts(b"k", value, (), search.text)
        assert Filter(key="k").accepts(b"k", value, (), search.text)
    assert not Filter(key="k").accepts(None, b"", (), search.text)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30),
    room=st.integers(1, 5),
    most=st.integers(1, 9),
)
def test_a_partition_gives_every_match_once_in_both_directions(
    sizes: list[tuple[int, bool]], room: int, most: int
) -> None:
    log = [{"offset": at, "value": "x" * size} for at, (size, kept) in enumerate(sizes) if kept]
    for back in (False, True):
        each = _Partition(len(sizes) if back else 0, 0 if back else len(sizes))
        met: list[int] = []
        while each.at != each.until:
            first, end = each.next_block(back, 4)
            block = iter([record for record in log if first <= record["offset"] < end])
            each.found = []
            if back:
                each.take_back(block, first, room, most)
            else:
                each.take(block, end, room, most)
            met += [record["offset"] for record in each.found]
        wanted = [record["offset"] for record in log]
        assert met == (wanted[::-1] if back else wanted)
