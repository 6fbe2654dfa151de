"""The shop: what is captured, what is kept true, where copies go."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import tailrace as tr
from tailrace import sinks, sources

if TYPE_CHECKING:  # only Spark's own process needs it at run time
    from pyspark.sql import DataFrame

# Documents by customer: in Redis where there is one (the demo starts it), else in SQLite.
cache: sinks.Declaration = (
    sinks.Redis(tr.env("SHOP_REDIS"), prefix="customer", format="json")
    if "SHOP_REDIS" in os.environ
    else sinks.SQLite("cache.db", table="customer_360")
)

shop = sources.Postgres(
    "shop",
    dsn=tr.env("SHOP_DSN"),
    tables=[
        "customers",
        "products",
        "orders",
        "payments",
        "searches",
        "clicks",
        "page_views",
        "tax_rates",
        "watches",
    ],
    # Streams read facts, not rows, and as-of joins need every version: these are kept.
    history={"payments": "90 days", "tax_rates": "forever"},
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

# By the minute and the customer's country; a refund takes money out again, and a customer
# who moves house takes their payments along.
revenue_per_minute = tr.view(
    "revenue_per_minute",
    """
    SELECT date_trunc('minute', p.paid_at) AS minute, c.country,
           sum(p.amount) AS revenue, count(*) AS payments
    FROM shop.payments p
    JOIN shop.orders o ON o.id = p.order_id
    JOIN shop.customers c ON c.id = o.customer_id
    GROUP BY date_trunc('minute', p.paid_at), c.country
    """,
    key=["minute", "country"],
    to=sinks.DuckDB("warehouse.duckdb", table="revenue_per_minute"),
)

# Top-k: ten rows, whatever the shop sells.
best_sellers = tr.view(
    "best_sellers",
    """
    SELECT p.id, p.name, sum(o.quantity) AS sold
    FROM shop.orders o JOIN shop.products p ON p.id = o.product_id
    GROUP BY p.id, p.name
    ORDER BY sold DESC, p.id LIMIT 10
    """,
    key="id",
)

# Everything about a customer in one row, their orders as a list inside it.
customer_360 = tr.view(
    "customer_360",
    """
    SELECT c.id, c.name, c.country, count(o.id) AS orders, sum(o.amount) AS spent,
           collect_list(struct(o.id, o.amount, o.status, o.placed_at) ORDER BY o.id)
               FILTER (WHERE o.id IS NOT NULL) AS history
    FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id
    GROUP BY c.id, c.name, c.country
    """,
    key="id",
    to=cache,
)

# The catalogue as a search index: `tailrace search catalogue.search "quiet lamp"`.
catalogue = tr.view(
    "catalogue",
    "SELECT id, name, description, price FROM shop.products",
    key="id",
    to=sinks.Search("search", fields={"name": "text:en", "description": "text:en"}),
)

# Searches without a click count too.
click_through = tr.view(
    "click_through",
    """
    SELECT s.term, count(DISTINCT s.id) AS searches, count(c.id) AS clicks
    FROM shop.searches s LEFT JOIN shop.clicks c ON c.search_id = s.id
    GROUP BY s.term
    """,
    key="term",
)

# The rate that was valid when the sale was made, whatever it is now.
tax_at_sale = tr.view(
    "tax_at_sale",
    """
    SELECT c.country, count(*) AS sales, sum(o.amount * r.rate) AS tax
    FROM shop.orders o
    JOIN shop.customers c ON c.id = o.customer_id
    JOIN shop.tax_rates FOR SYSTEM_TIME AS OF o.placed_at r ON r.country = c.country
    GROUP BY c.country
    """,
    key="country",
)

# By the minute in which a page was really seen: phones tell it late and by clocks that are
# wrong; the time of sending, by both clocks, says by how much.
visits_per_minute = tr.view(
    "visits_per_minute",
    """
    SELECT date_trunc('minute', timestamp_seconds(unix_timestamp(happened_at)
               + unix_timestamp(received_at) - unix_timestamp(sent_at))) AS minute,
           count(*) AS visits,
           count_if(device = 'phone') AS phones,
           count_if(abs(unix_timestamp(received_at) - unix_timestamp(sent_at)) > 60)
               AS wrong_clocks
    FROM shop.page_views
    GROUP BY date_trunc('minute', timestamp_seconds(unix_timestamp(happened_at)
               + unix_timestamp(received_at) - unix_timestamp(sent_at)))
    """,
    key="minute",
)

# Cards that were tried with small amounts before a large one was taken: a thief's habit. It is
# gone when one of the payments is refunded, and found again if the others still fit.
suspects = tr.view(
    "suspects",
    """
    SELECT m.card_id, m.began, m.small, m.taken
    FROM shop.payments MATCH_RECOGNIZE (
        PARTITION BY card_id
        ORDER BY paid_at, id
        MEASURES first(tried.paid_at) AS began, count(tried.*) AS small, large.amount AS taken
        PATTERN (tried{3,} large)
        WITHIN INTERVAL '10' MINUTES
        DEFINE tried AS tried.amount < 2, large AS large.amount > 500
    ) AS m
    """,
    key=["card_id", "began"],
)

# The same habit as events: each match is reported once, when no later payment can change it, with
# one id after any replay, and other programs read them as a topic.
card_testing = tr.pattern(
    "card_testing",
    shop.table("payments").inserts(),
    key="card_id",
    order_by="paid_at",
    within="10 minutes",
    match="tried{3,} large",
    define={"tried": "amount < 2", "large": "amount > 500"},
    select={"tried": "count(tried)", "taken": "last(large.amount)"},
)


@tr.stream(shop.table("payments").inserts(), key="card_id", trigger="2 seconds")
def alerts(payments: DataFrame) -> DataFrame:
    """Large payments, as they happen, in plain PySpark."""
    return payments.where("amount > 500").select("card_id", "amount", "paid_at")
