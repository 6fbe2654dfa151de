"""People in the shop: they join, buy, pay, ask for refunds and move house.

    python people.py DSN [CHANGES_A_SECOND]

Each line of work is one database transaction, as an application would do it.
"""

import random
import sys
import time

import psycopg

COUNTRIES = {"NL": "Delft", "DE": "Kiel", "FR": "Lille", "ES": "Vigo", "IT": "Bari", "SE": "Umeå"}
NAMES = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gita", "Hugo", "Ines", "Jan", "Kim", "Lena"]
THINGS = ["kettle", "lamp", "chair", "rug", "clock", "kite", "drum", "saw", "tent", "globe"]
KINDS = ["red", "blue", "small", "large", "old", "new", "quiet", "bright"]


def furnish(connection: psycopg.Connection) -> None:
    """Put goods on the shelves and let the first customers in."""
    dice = random.Random(1)
    with connection.transaction(), connection.cursor() as cursor:
        for kind in KINDS:
            for thing in THINGS:
                cursor.execute(
                    "INSERT INTO products (name, description, price, stock) VALUES (%s, %s, %s, %s)",
                    (
                        f"{kind} {thing}",
                        f"a {kind} {thing} for every home",
                        dice.randint(3, 120),
                        500,
                    ),
                )
        for country in COUNTRIES:
            cursor.execute("INSERT INTO tax_rates VALUES (%s, 0.2)", (country,))
        for _ in range(200):
            join(cursor, dice)


def join(cursor: psycopg.Cursor, dice: random.Random) -> None:
    country = dice.choice(list(COUNTRIES))
    cursor.execute(
        "INSERT INTO customers (name, country, city) VALUES (%s, %s, %s)",
        (dice.choice(NAMES), country, COUNTRIES[country]),
    )


def order(cursor: psycopg.Cursor, dice: random.Random) -> None:
    quantity = dice.randint(1, 4)
    cursor.execute(
        "WITH product AS (UPDATE products SET stock = stock - %s WHERE id = %s RETURNING id, price)"
        " INSERT INTO orders (customer_id, product_id, quantity, amount, status)"
        " SELECT (SELECT id FROM customers ORDER BY random() LIMIT 1), id, %s, price * %s, 'open'"
        " FROM product",
        (quantity, dice.randint(1, len(KINDS) * len(THINGS)), quantity, quantity),
    )


def pay(cursor: psycopg.Cursor, dice: random.Random) -> None:
    """An open order is paid: two rows in one transaction, never seen apart."""
    cursor.execute(
        "WITH paid AS (UPDATE orders SET status = 'paid' WHERE id ="
        " (SELECT id FROM orders WHERE status = 'open' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)"
        " RETURNING id, amount)"
        " INSERT INTO payments (order_id, card_id, amount) SELECT id, %s, amount FROM paid",
        (dice.randint(1, 500),),
    )


def refund(cursor: psycopg.Cursor, dice: random.Random) -> None:
    cursor.execute(
        "WITH gone AS (DELETE FROM payments WHERE id ="
        " (SELECT id FROM payments ORDER BY random() LIMIT 1) RETURNING order_id)"
        " UPDATE orders SET status = 'refunded' WHERE id IN (SELECT order_id FROM gone)"
    )


def search(cursor: psycopg.Cursor, dice: random.Random) -> None:
    """Most searches lead nowhere; that is worth knowing too."""
    cursor.execute(
        "INSERT INTO searches (customer_id, term) VALUES (%s, %s)",
        (dice.randint(1, 200), dice.choice(THINGS)),
    )


def click(cursor: psycopg.Cursor, dice: random.Random) -> None:
    cursor.execute(
        "INSERT INTO clicks (search_id, product_id)"
        " SELECT id, %s FROM searches ORDER BY id DESC OFFSET %s LIMIT 1",
        (dice.randint(1, len(KINDS) * len(THINGS)), dice.randint(0, 20)),
    )


def change_tax(cursor: psycopg.Cursor, dice: random.Random) -> None:
    """From now on; sales of before keep the rate they were made at."""
    cursor.execute(
        "UPDATE tax_rates SET rate = %s WHERE country = %s",
        (dice.choice(["0.19", "0.20", "0.21"]), dice.choice(list(COUNTRIES))),
    )


def try_stolen_card(cursor: psycopg.Cursor, dice: random.Random) -> None:
    """A thief tries a card with small amounts, then takes a large one."""
    for amount in (1, 1, 1, 900):
        cursor.execute(
            "INSERT INTO payments (order_id, card_id, amount)"
            " SELECT id, 666, %s FROM orders ORDER BY id DESC LIMIT 1",
            (amount,),
        )


def move_house(cursor: psycopg.Cursor, dice: random.Random) -> None:
    country = dice.choice(list(COUNTRIES))
    cursor.execute(
        "UPDATE customers SET country = %s, city = %s WHERE id ="
        " (SELECT id FROM customers ORDER BY random() LIMIT 1)",
        (country, COUNTRIES[country]),
    )


ACTS = [
    (order, 40), (pay, 33), (search, 20), (click, 8), (refund, 3), (move_house, 4), (join, 3),
    (try_stolen_card, 0.3), (change_tax, 0.3),
]  # fmt: skip


def live(dsn: str, changes_a_second: float) -> None:
    """Go on until the database or the caller ends it."""
    dice = random.Random()
    acts, weights = zip(*ACTS, strict=True)
    with psycopg.connect(dsn, autocommit=True) as connection:
        begun, done = time.monotonic(), 0
        while True:
            with connection.transaction(), connection.cursor() as cursor:
                dice.choices(acts, weights)[0](cursor, dice)
            done += 2  # most acts change two rows
            pause = begun + done / changes_a_second - time.monotonic()
            if pause > 0:
                time.sleep(pause)


if __name__ == "__main__":
    live(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 50)
