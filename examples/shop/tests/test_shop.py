"""The shop's own tests: `tailrace test`."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import tailrace as tr
from tailrace.facts.reservations import Claimed, Confirmed, Queued, Released

PRODUCTS = "id BIGINT, name STRING, description STRING, price DECIMAL(10,2), stock INT"
PAGE_VIEWS = (
    "id BIGINT, customer_id BIGINT, device STRING, path STRING, happened_at TIMESTAMP,"
    " sent_at TIMESTAMP, received_at TIMESTAMP"
)
PAYMENTS = "id BIGINT, order_id BIGINT, card_id BIGINT, amount DECIMAL(12,2), paid_at TIMESTAMP"
CUSTOMERS = "id BIGINT, name STRING, country STRING, city STRING, joined_at TIMESTAMP"
ORDERS = (
    "id BIGINT, customer_id BIGINT, product_id BIGINT, quantity INT, amount DECIMAL(12,2),"
    " status STRING, placed_at TIMESTAMP"
)


def test_a_customer_who_moves_takes_open_orders_along(tailrace_project) -> None:
    shop = tailrace_project.tables({"shop.customers": CUSTOMERS, "shop.orders": ORDERS})
    shop.upsert("shop.customers", {"id": 1, "country": "NL"})
    shop.upsert(
        "shop.orders", {"id": 7, "customer_id": 1, "amount": Decimal("9.50"), "status": "open"}
    )
    shop.tick()
    assert [row["country"] for row in shop.rows("open_orders")] == ["NL"]
    shop.upsert("shop.customers", {"id": 1, "country": "DE"})
    shop.tick()
    assert shop.rows("open_orders") == [{"country": "DE", "orders": 1, "value": Decimal("9.50")}]


def test_a_customer_carries_their_orders_inside_their_row(tailrace_project) -> None:
    shop = tailrace_project.tables({"shop.customers": CUSTOMERS, "shop.orders": ORDERS})
    shop.upsert("shop.customers", {"id": 1, "name": "Ada", "country": "NL"})
    shop.tick()
    empty = {"id": 1, "name": "Ada", "country": "NL", "orders": 0, "spent": None, "history": []}
    assert shop.rows("customer_360") == [empty]
    for number, amount in ((8, "1.25"), (7, "9.50")):
        shop.upsert(
            "shop.orders",
            {"id": number, "customer_id": 1, "amount": Decimal(amount), "status": "open"},
        )
    shop.tick()
    [row] = shop.rows("customer_360")
    assert (row["orders"], row["spent"]) == (2, Decimal("10.75"))
    assert row["history"] == [
        {"id": 7, "amount": Decimal("9.50"), "status": "open", "placed_at": None},
        {"id": 8, "amount": Decimal("1.25"), "status": "open", "placed_at": None},
    ]


def test_a_card_that_was_tried_is_suspected_until_a_payment_is_refunded(tailrace_project) -> None:
    shop = tailrace_project.tables({"shop.payments": PAYMENTS})
    began = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)

    def paid(number: int, amount: str) -> dict[str, object]:
        at = began + timedelta(seconds=number)
        return {"id": number, "card_id": 666, "amount": Decimal(amount), "paid_at": at}

    for number, amount in enumerate(["1.00", "1.00", "1.50", "1.20"]):
        shop.upsert("shop.payments", paid(number, amount))
    shop.tick()
    assert shop.rows("suspects") == []
    shop.upsert("shop.payments", paid(4, "900.00"))
    shop.tick()
    [row] = shop.rows("suspects")
    assert (row["began"], row["small"], row["taken"]) == (began, 4, Decimal("900.00"))
    shop.delete("shop.payments", paid(0, "1.00"))
    shop.tick()
    [row] = shop.rows("suspects")
    assert (row["began"], row["small"]) == (began + timedelta(seconds=1), 3)
    shop.delete("shop.payments", paid(1, "1.00"))
    shop.tick()
    assert shop.rows("suspects") == []


def test_a_page_seen_on_a_phone_with_a_wrong_clock_counts_when_it_was_seen(
    tailrace_project,
) -> None:
    shop = tailrace_project.tables({"shop.page_views": PAGE_VIEWS})
    ours = datetime(2026, 11, 16, 12, 37, 20, tzinfo=UTC)  # the minute it really was
    wrong = timedelta(hours=-2)
    shop.upsert(
        "shop.page_views",
        {
            "id": 1,
            "device": "phone",
            "happened_at": ours + wrong,
            "sent_at": ours + wrong + timedelta(minutes=5),
            "received_at": ours + timedelta(minutes=5),
        },
    )
    shop.tick()
    [row] = shop.rows("visits_per_minute")
    assert (row["minute"].hour, row["minute"].minute) == (12, 37)
    assert (row["visits"], row["wrong_clocks"]) == (1, 1)


def test_a_review_reaches_the_rating_and_the_searches_that_staff_stored(tailrace_project) -> None:
    shop = tailrace_project.tables({"shop.products": PRODUCTS})
    shop.upsert("shop.products", {"id": 1, "name": "red lamp"})
    for stars, text in ((5, "lovely"), (2, "broken on arrival")):
        shop.upsert("reviews", {"product_id": 1, "stars": stars, "text": text})
    shop.upsert("carrier", {"order_id": 1, "status": "sent"})
    shop.tick()
    assert shop.rows("ratings") == [{"name": "red lamp", "reviews": 2, "stars": 3.5}]
    assert shop.rows("parcels_by_status") == [{"status": "sent", "parcels": 1}]

    noticed = tailrace_project.queries("noticed", queries="id BIGINT, owner STRING, query STRING")
    noticed.put({"id": 1, "owner": "ben", "query": "broken OR late"})
    noticed.put({"id": 2, "owner": "omar", "query": "stars:<2"})
    matches = noticed.tick(
        [
            {"product_id": 1, "stars": 2, "text": "broken on arrival"},
            {"product_id": 1, "stars": 1, "text": "came late"},
        ]
    )
    assert sorted((one["owner"], one["event"]["stars"]) for one in matches) == [
        ("ben", 1), ("ben", 2), ("omar", 1),
    ]  # fmt: skip


def test_a_confirmed_seat_earns_points_and_a_free_one_goes_to_the_next(tailrace_project) -> None:
    project = tailrace_project.project
    confirmed = Confirmed("customer-7")
    project.reactions["thanks"].given(confirmed, stream="evening").sends(
        tr.send("earn", "customer-7", on=project.events["points"], gained=25, order=0)
    )
    six = datetime(2026, 11, 16, 18, 0, tzinfo=UTC)
    held = [Claimed(f"customer-{n}", six + timedelta(minutes=1)) for n in range(3)]
    line = project.events["workshop"].given(*held, Queued("customer-9"))
    line.when("release", holder="customer-1", at=six).then(
        Released("customer-1"), Claimed("customer-9", six + timedelta(minutes=1))
    )
