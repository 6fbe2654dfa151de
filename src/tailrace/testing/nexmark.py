"""Nexmark's streams: people, auctions and bids of an auction house, 1 : 3 : 46.

A simplified generator with the distributions its queries look at: some auctions and bidders
are hot, prices span seven orders of magnitude, a share of the events comes late. Times of
bids are unique, so that every order by time is total. The same seed gives the same events.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from typing import Any

from tailrace.pipelines.engine.graph import TableInput
from tailrace.testing.ticks import table

Row = dict[str, Any]

COLUMNS = {
    "person": "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING,"
    " state STRING, date_time TIMESTAMP, extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT,"
    " reserve BIGINT, date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT,"
    " extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,"
    " date_time TIMESTAMP, extra STRING",
    "side_input": "key BIGINT, value STRING",
}
TABLES: list[TableInput] = [
    table(name, columns, ["key"] if name == "side_input" else (),
          "table" if name == "side_input" else "stream")
    for name, columns in COLUMNS.items()
]  # fmt: skip
BEGINNING = datetime.datetime(2026, 7, 15, 5, 59, 0, tzinfo=datetime.UTC)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")
_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


def side_input() -> list[Row]:
    """The table of query 13."""
    return [{"key": key, "value": f"v{key % 7}"} for key in range(100)]


def events(
    count: int, seed: int = 1, *, apart_ms: float = 1.0, late: float = 0.05
) -> Iterator[tuple[str, Row]]:
    """Stream and row of `count` events in the order they arrive."""
    chance = random.Random(seed)
    held: list[tuple[int, str, Row]] = []
    people, auctions = 1000, 1000
    for number in range(count):
        at = BEGINNING + datetime.timedelta(microseconds=round(number * apart_ms * 1000))
        slot = number % 50
        if slot == 0:
            people += 1
            event = "person", _person(chance, people, at)
        elif slot < 4:
            auctions += 1
            event = "auction", _auction(chance, auctions, people, at)
        else:
            event = "bid", _bid(chance, auctions, people, at)
        if chance.random() < late:
            held.append((number + chance.randrange(1, 400), *event))
        else:
            yield event
        while held and held[0][0] <= number:
            _, name, row = held.pop(0)
            yield name, row
    yield from ((name, row) for _, name, row in held)


def _person(chance: random.Random, number: int, at: datetime.datetime) -> Row:
    place = chance.randrange(len(_STATES))
    name = f"{chance.choice(_NAMES)} {chance.choice(_NAMES)}s"
    return {
        "id": number, "name": name, "email_address": f"{name.lower().replace(' ', '.')}@example.com",
        "credit_card": " ".join(f"{chance.randrange(10_000):04}" for _ in range(4)),
        "city": _CITIES[place], "state": _STATES[place], "date_time": at, "extra": _extra(chance),
    }  # fmt: skip


def _auction(chance: random.Random, number: int, people: int, at: datetime.datetime) -> Row:
    price = _price(chance)
    return {
        "id": number, "item_name": f"item {chance.randrange(1000)}", "description": _extra(chance),
        "initial_bid": price, "reserve": price + _price(chance), "date_time": at,
        "expires": at + datetime.timedelta(milliseconds=chance.randrange(1, 20_000)),
        "seller": _recent(chance, people, 1000, 100, 4), "category": 10 + chance.randrange(5),
        "extra": _extra(chance),
    }  # fmt: skip


def _bid(chance: random.Random, auctions: int, people: int, at: datetime.datetime) -> Row:
    if chance.random() < 0.5:
        channel = chance.choice(_CHANNELS)
        url = f"https://www.nexmark.com/{channel.lower()}/item.htm?query=1"
    else:
        number = chance.randrange(10_000)
        channel = f"channel-{number}"
        url = f"https://www.nexmark.com/a{number % 7}/b/item.htm?query=1&channel_id={number}"
    return {
        "auction": _recent(chance, auctions, 1000, 100, 2), "bidder": _recent(chance, people, 1000, 100, 4),
        "price": _price(chance), "channel": channel, "url": url, "date_time": at,
        "extra": _extra(chance),
    }  # fmt: skip


def _recent(chance: random.Random, last: int, first: int, window: int, hot: int) -> int:
    """One of the last ones; with a chance of 1 − 1/hot the hottest of them."""
    if chance.randrange(hot):
        return max(first, last // window * window)
    return chance.randrange(max(first, last - window), last + 1)


def _price(chance: random.Random) -> int:
    return round(10 ** (chance.random() * 6) * 100)


def _extra(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefgh", k=20))
