"""The shop: what is captured, what is kept true, where copies go."""

import tailrace as tr
from tailrace import sinks, sources

shop = sources.Postgres(
    "shop",
    dsn=tr.env("SHOP_DSN"),
    tables=["customers", "products", "orders", "payments"],
)

# Joined, filtered and grouped; a row leaves when its last open order is paid.
open_orders = tr.view(
    "open_orders",
    """
    SELECT c.country, count(*) AS orders, sum(o.amount) AS value
    FROM shop.orders o JOIN shop.customers c ON c.id = o.customer_id
    WHERE o.status = 'open'
    GROUP BY c.country
    """,
    key="country",
    to=sinks.SQLite("copies.db", table="open_orders"),
)

# What each country bought, refunds taken out again.
revenue = tr.view(
    "revenue",
    """
    SELECT c.country, sum(p.amount) AS revenue, count(*) AS payments
    FROM shop.payments p
    JOIN shop.orders o ON o.id = p.order_id
    JOIN shop.customers c ON c.id = o.customer_id
    GROUP BY c.country
    """,
    key="country",
)

# Every product with what it sold; products never ordered are there too.
sales = tr.view(
    "sales",
    """
    SELECT p.id, p.name, p.stock, count(o.id) AS orders, sum(o.quantity) AS sold
    FROM shop.products p LEFT JOIN shop.orders o ON o.product_id = p.id
    GROUP BY p.id, p.name, p.stock
    """,
    key="id",
)
