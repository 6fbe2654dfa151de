"""Visitors who search and click: `python people.py [HOST:PORT] [SECONDS]` while the project runs.

Two servers write the two streams and neither waits for the other, so that a click may be in the
log before its search. Two in five searches lead to no click; one click in fifty is of no search.
"""

from __future__ import annotations

import heapq
import random
import sys
import time
from datetime import UTC, datetime, timedelta

import orjson

import tailrace as tr

TERMS = {"lamp": 0.8, "chair": 0.6, "table": 0.5, "sofa": 0.2}  # how often they find something


def main(address: str = "127.0.0.1:9092", seconds: str = "60") -> None:
    chance = random.Random()
    first = int(time.time() * 1000)  # ids that no earlier run has used
    waiting: list[tuple[float, int, str, dict[str, object]]] = []  # records on their way
    until = time.monotonic() + float(seconds)
    number = 0
    log = tr.connect(address)
    with log.producer() as producer:
        while time.monotonic() < until:
            number += 1
            now, at = time.monotonic(), datetime.now(UTC)
            term = chance.choice(list(TERMS))
            search = {"id": first + number, "visitor": f"v{chance.randint(1, 40)}", "term": term}
            search["at"] = at.isoformat()
            heapq.heappush(waiting, (now + chance.uniform(0, 3), number, "searches", search))
            if chance.random() < TERMS[term]:
                later = chance.expovariate(1 / 8)
                of = first + number if chance.random() < 0.98 else 0
                click: dict[str, object] = {"id": first + number, "search_id": of}
                click |= {
                    "place": chance.randint(1, 10),
                    "at": (at + timedelta(seconds=later)).isoformat(),
                }
                arrives = now + later + chance.uniform(0, 3)
                heapq.heappush(waiting, (arrives, number, "clicks", click))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, topic, row = heapq.heappop(waiting)
                producer.send(topic, value=orjson.dumps(row))
            time.sleep(0.05)
    log.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
