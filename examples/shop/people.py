"""People in the shop: they come and go with the hours, look, search, click, buy, pay, ask for
their money back and move house. Some do it on phones whose clocks are wrong; one is a thief.

    SHOP_DSN=… [SHOP_LOG=HOST:PORT] python people.py [CHANGES_A_SECOND]

With SHOP_LOG they also earn points when they pay, spend them, and claim seats in the workshop:
commands to `points` and `workshop`. They review what they bought and the carrier reports parcels:
calls of `callers.py`.
A day takes ten minutes here. Each step is one database transaction, as an application
would do it; steps of many visits are mixed, as they are in life.
"""

import math
import os
import queue
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from callers import Outside

COUNTRIES = {"NL": "Delft", "DE": "Kiel", "FR": "Lille", "ES": "Vigo", "IT": "Bari", "SE": "Umeå"}
NAMES = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gita", "Hugo", "Ines", "Jan", "Kim", "Lena"]
THINGS = ["kettle", "lamp", "chair", "rug", "clock", "kite", "drum", "saw", "tent", "globe"]
KINDS = ["red", "blue", "small", "large", "old", "new", "quiet", "bright"]
PRODUCTS = len(KINDS) * len(THINGS)
CUSTOMERS = 200
DAY_SECONDS = 600
STOLEN_CARD = 666_000

Cursor = psycopg.Cursor
Step = Callable[[Cursor], int]
"""One transaction; how many rows it changed."""
Decision = tuple[str, int, int, int]
"""What a customer wants: earn or spend, who, how many points, for which order; or a seat."""
WATCHES = [
    ("ben", "broken OR late"),
    ("ines", "neighbour"),
    ("omar", "stars:<2"),
    ("zoe", "colour AND wrong"),
]


def furnish(connection: psycopg.Connection) -> None:
    """Put goods on the shelves and let the first customers in."""
    dice = random.Random(1)
    with connection.transaction(), connection.cursor() as cursor:
        for kind in KINDS:
            for thing in THINGS:
                cursor.execute(
                    "INSERT INTO products (name, description, price, stock) VALUES (%s, %s, %s, %s)",
                    (f"{kind} {thing}", f"a {kind} {thing} for every home", dice.randint(3, 120), 500),
                )  # fmt: skip
        for country in COUNTRIES:
            cursor.execute("INSERT INTO tax_rates VALUES (%s, 0.2)", (country,))
        for _ in range(CUSTOMERS):
            join(cursor, dice)
        cursor.executemany("INSERT INTO watches (owner, query) VALUES (%s, %s)", WATCHES)


def join(cursor: Cursor, dice: random.Random) -> int:
    """A new customer; their number."""
    country = dice.choice(list(COUNTRIES))
    cursor.execute(
        "INSERT INTO customers (name, country, city) VALUES (%s, %s, %s) RETURNING id",
        (dice.choice(NAMES), country, COUNTRIES[country]),
    )
    found = cursor.fetchone()
    return found[0] if found else 1


class Shop:
    """What the people in it know of each other: who is a customer, what was paid lately."""

    def __init__(self, customers: int, dice: random.Random) -> None:
        self.customers = customers
        self.dice = dice
        self.outside: Outside | None = None
        self.paid: deque[int] = deque(maxlen=500)
        self.decisions: queue.Queue[Decision] = queue.Queue(1000)
        # A wrong clock stays wrong: by minutes, or by a whole time zone.
        self.clocks = {n: dice.choice([-7200, -300, 90, 600]) for n in range(0, 5000, 7)}

    def visit(self) -> Iterator[Step]:
        """One visit, step by step."""
        dice = self.dice
        person = dice.randint(1, self.customers)
        phone = dice.random() < 0.4
        offline = phone and dice.random() < 0.2
        seen: list[tuple[str, datetime]] = []
        for path in ("/", "/offers")[: dice.randint(1, 2)]:
            seen.append((path, datetime.now(UTC)))
            if not offline:
                yield self.view_pages(person, phone, [seen.pop()])
        while dice.random() < 0.6:
            term = dice.choice(THINGS)
            search: list[int] = []
            yield self.search(person, term, search)
            clicks = 0
            while search and dice.random() < 0.35 and clicks < 3:
                product = dice.randint(1, PRODUCTS)
                clicks += 1
                yield self.click(search[0], product)
                seen.append((f"/products/{product}", datetime.now(UTC)))
                if not offline:
                    yield self.view_pages(person, phone, [seen.pop()])
        bought: list[tuple[int, str]] = []
        if dice.random() < 0.7:
            yield self.order(person, bought)
        if bought and dice.random() < 0.9:
            begun = time.monotonic()
            yield self.pay(person, *bought[0])
            self.decide(("earn", person, max(1, round(float(bought[0][1]))), bought[0][0]))
            self.tell(bought[0][0], time.monotonic() - begun)
        if bought and dice.random() < 0.2:
            self.decide(("spend", person, dice.choice([50, 100, 500]), 0))
        if bought and dice.random() < 0.1:
            self.decide(("seat", person, 0, 0))
        if dice.random() < 0.05 and self.paid:
            yield self.refund(self.paid.popleft())
        if dice.random() < 0.05:
            yield self.move_house(person)
        if dice.random() < 0.04:
            yield self.join
        if seen:  # back in reach: what the phone kept to itself arrives now, late
            yield self.view_pages(person, phone, seen)

    def thief(self) -> Iterator[Step]:
        """A stolen card is tried with small amounts, then a large one is taken."""
        card = STOLEN_CARD + self.dice.randint(0, 3)
        for amount in ("1.00", "1.00", "1.50", "900.00"):
            bought: list[tuple[int, str]] = []
            yield self.order(self.dice.randint(1, self.customers), bought)
            if bought:
                yield self.charge(card, bought[0][0], amount)

    def decide(self, decision: Decision) -> None:
        if not self.decisions.full():  # nobody waits at a till that is closed
            self.decisions.put(decision)

    def tell(self, order: int, seconds: float) -> None:
        """What others report of an order that is paid: the till, the carrier, the customer."""
        if self.outside is None:
            return
        self.outside.measure(f"checkout:{seconds * 1000:.0f}|ms")
        self.outside.parcel(order, self.dice.choice(["sent", "sent", "delivered", "lost"]))
        if self.dice.random() < 0.5:
            self.outside.review(self.dice.randint(1, PRODUCTS))

    # --- steps ---------------------------------------------------------------------------

    def join(self, cursor: Cursor) -> int:
        self.customers = max(self.customers, join(cursor, self.dice))
        return 1

    def view_pages(self, person: int, phone: bool, pages: list[tuple[str, datetime]]) -> Step:
        """By the device's clock: when it was seen, and when that is sent."""
        wrong = timedelta(seconds=self.clocks.get(person, 0) if phone else 0)

        def step(cursor: Cursor) -> int:
            sent = datetime.now(UTC) + wrong
            cursor.executemany(
                "INSERT INTO page_views (customer_id, device, path, happened_at, sent_at)"
                " VALUES (%s, %s, %s, %s, %s)",
                [
                    (person, "phone" if phone else "desk", path, at + wrong, sent)
                    for path, at in pages
                ],
            )
            return len(pages)

        return step

    def search(self, person: int, term: str, made: list[int]) -> Step:
        """Most searches lead nowhere; that is worth knowing too."""

        def step(cursor: Cursor) -> int:
            cursor.execute(
                "INSERT INTO searches (customer_id, term) VALUES (%s, %s) RETURNING id",
                (person, term),
            )
            made.extend(row[0] for row in cursor.fetchall())
            return 1

        return step

    def click(self, search: int, product: int) -> Step:
        def step(cursor: Cursor) -> int:
            cursor.execute(
                "INSERT INTO clicks (search_id, product_id) VALUES (%s, %s)", (search, product)
            )
            return 1

        return step

    def order(self, person: int, made: list[tuple[int, str]]) -> Step:
        product, quantity = self.dice.randint(1, PRODUCTS), self.dice.randint(1, 4)

        def step(cursor: Cursor) -> int:
            cursor.execute(
                "WITH product AS"
                " (UPDATE products SET stock = stock - %s WHERE id = %s RETURNING id, price)"
                " INSERT INTO orders (customer_id, product_id, quantity, amount, status)"
                " SELECT %s, id, %s, price * %s, 'open' FROM product RETURNING id, amount::text",
                (quantity, product, person, quantity, quantity),
            )
            made.extend(cursor.fetchall())
            return 2

        return step

    def pay(self, person: int, order: int, amount: str) -> Step:
        """An order is paid: two rows in one transaction, never seen apart."""
        return self.charge(1000 + person, order, amount)

    def charge(self, card: int, order: int, amount: str) -> Step:
        def step(cursor: Cursor) -> int:
            cursor.execute("UPDATE orders SET status = 'paid' WHERE id = %s", (order,))
            cursor.execute(
                "INSERT INTO payments (order_id, card_id, amount) VALUES (%s, %s, %s)",
                (order, card, amount),
            )
            self.paid.append(order)
            return 2

        return step

    def refund(self, order: int) -> Step:
        def step(cursor: Cursor) -> int:
            cursor.execute("DELETE FROM payments WHERE order_id = %s", (order,))
            cursor.execute("UPDATE orders SET status = 'refunded' WHERE id = %s", (order,))
            return 2

        return step

    def move_house(self, person: int) -> Step:
        country = self.dice.choice(list(COUNTRIES))

        def step(cursor: Cursor) -> int:
            cursor.execute(
                "UPDATE customers SET country = %s, city = %s WHERE id = %s",
                (country, COUNTRIES[country], person),
            )
            return 1

        return step

    def change_tax(self, cursor: Cursor) -> int:
        """From now on; sales of before keep the rate they were made at."""
        cursor.execute(
            "UPDATE tax_rates SET rate = %s WHERE country = %s",
            (self.dice.choice(["0.19", "0.20", "0.21"]), self.dice.choice(list(COUNTRIES))),
        )
        return 1


def decide(log: str, wanted: "queue.Queue[Decision]", dice: random.Random) -> None:
    """Give the customers' commands to the owners of their points and seats; for good."""
    sys.path.insert(0, str(Path(__file__).parent))
    import tailrace as tr
    from pipelines import points, workshop

    connected = tr.connect(log)
    with (
        points.points.open(connected, owns=False) as book,
        workshop.workshop.open(connected, owns=False) as seats,
    ):
        while True:
            kind, person, number, order = wanted.get()
            customer = f"customer-{person}"
            try:
                if kind == "earn":
                    book.execute(points.earn, customer, gained=number, order=order, id=f"order-{order}")  # fmt: skip
                elif kind == "spend":
                    book.execute(points.spend, customer, used=number)
                else:
                    evening = (
                        datetime.now(UTC).strftime("evening %H:")
                        + f"{datetime.now(UTC).minute // 2 * 2:02}"
                    )
                    claim = seats.claim(evening, holder=customer, wait=True)
                    if claim.status == "claimed" and dice.random() < 0.7:
                        seats.confirm(evening, holder=customer)  # the others run out in a minute
            except tr.TailraceError:
                continue  # too few points; or the log was killed, and people leave the till


def rhythm(seconds: float) -> float:
    """How busy the shop is: 1 on average, little at night, most in the evening."""
    return 1 + 0.7 * math.sin(2 * math.pi * seconds / DAY_SECONDS)


def live(dsn: str, changes_a_second: float) -> None:
    """Go on until the database or the caller ends it."""
    dice = random.Random()
    with psycopg.connect(dsn, autocommit=True) as connection:
        counted = connection.execute("SELECT coalesce(max(id), 1) FROM customers").fetchone()
        shop = Shop(counted[0] if counted else 1, dice)
        if log := os.environ.get("SHOP_LOG"):
            threading.Thread(target=decide, args=(log, shop.decisions, dice), daemon=True).start()
            from callers import Outside

            shop.outside = Outside(dice)
            threading.Thread(target=shop.outside.run, daemon=True).start()
        inside: list[Iterator[Step]] = []
        due = begun = time.monotonic()
        while True:
            while len(inside) < 20:
                inside.append(shop.thief() if dice.random() < 0.002 else shop.visit())
            place = dice.randrange(len(inside))
            step = shop.change_tax if dice.random() < 0.001 else next(inside[place], None)
            if step is None:
                del inside[place]
                continue
            with connection.transaction(), connection.cursor() as cursor:
                changed = step(cursor)
            due += changed / (changes_a_second * rhythm(due - begun))
            pause = due - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            elif pause < -5:
                due = time.monotonic()  # the machine slept: nobody makes up for it


if __name__ == "__main__":
    live(os.environ["SHOP_DSN"], float(sys.argv[1]) if len(sys.argv) > 1 else 50)
