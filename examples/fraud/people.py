"""Payments and orders as people make them, and now and then a thief.

python people.py 127.0.0.1:9092 300     for five minutes
"""

import random
import sys
import time
from datetime import UTC, datetime, timedelta

import tailrace as tr


def main(address: str, seconds: float) -> None:
    rng = random.Random()
    ends_at = time.monotonic() + seconds
    number, thieves, open_orders = 0, {}, []
    with tr.connect(address) as log, log.producer() as producer:

        def pay(card: int, amount: float) -> None:
            nonlocal number
            number += 1
            # Some phones tell what they did a few seconds later.
            at = datetime.now(UTC) - timedelta(seconds=rng.choice([0, 0, 0, 3, 6]))
            row = {"id": number, "card_id": card, "amount": f"{amount:.2f}", "paid_at": at}
            producer.send("payments", key=tr_key(card), value=as_json(row))

        def tell(order: int, what: str) -> None:
            row = {"order_id": order, "what": what, "at": datetime.now(UTC)}
            producer.send("orders", key=tr_key(order), value=as_json(row))

        while time.monotonic() < ends_at:
            pay(rng.randrange(1_000), rng.uniform(5, 200))
            if rng.random() < 0.02:
                thieves[rng.randrange(1_000)] = rng.randrange(3, 6)
            for card, left in list(thieves.items()):
                if left:
                    pay(card, rng.uniform(0.1, 1.9))
                    thieves[card] = left - 1
                else:
                    pay(card, rng.uniform(501, 2_000))
                    del thieves[card]
            if rng.random() < 0.3:
                open_orders.append(number)
                tell(number, "placed")
            if open_orders and rng.random() < 0.29:
                tell(open_orders.pop(0), rng.choice(["paid", "paid", "paid", "cancelled"]))
            time.sleep(0.1)


def tr_key(value: int) -> bytes:
    return str(value).encode()


def as_json(row: dict) -> bytes:
    import orjson

    return orjson.dumps(row)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60)
