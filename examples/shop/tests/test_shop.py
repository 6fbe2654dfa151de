"""The shop's own tests: `tailrace test`."""

from decimal import Decimal

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
