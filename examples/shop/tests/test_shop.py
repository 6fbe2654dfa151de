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
