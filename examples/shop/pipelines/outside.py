"""What reaches the shop from outside its database: reviews over HTTP, calls of the carrier, metrics."""

from __future__ import annotations

import os

import tailrace as tr
from pipelines.shop import shop
from tailrace import sources

# Addresses are plain text, so that the file says where each edge listens; the demo chooses others
# where these are taken.
web = sources.HTTP("web", listen=os.environ.get("SHOP_WEB", "127.0.0.1:9101"), topics=["reviews"])
carrier = sources.Webhook(
    "carrier",
    listen=os.environ.get("SHOP_CARRIER", "127.0.0.1:9102"),
    path="/carrier",
    secret=tr.env("SHOP_CARRIER_SECRET", default="whsec_c2hvcC1hbmQtY2Fycmllci1vbmx5"),
)
metrics = sources.StatsD(
    "metrics", listen=os.environ.get("SHOP_METRICS", "127.0.0.1:9103"), flush="5 seconds"
)

reviews = tr.topic("reviews", schema="product_id BIGINT, stars INT, text STRING")
parcels = tr.topic("carrier", schema="order_id BIGINT, status STRING")

ratings = tr.view(
    "ratings",
    """
    SELECT p.name, count(*) AS reviews, round(avg(r.stars), 2) AS stars
    FROM reviews r JOIN shop.products p ON p.id = r.product_id
    GROUP BY p.name
    """,
    key="name",
)

parcels_by_status = tr.view(
    "parcels_by_status",
    "SELECT status, count(*) AS parcels FROM carrier GROUP BY status",
    key="status",
)

# Staff store searches in a table of the database; every review is matched against all of them.
noticed = tr.percolate(
    "noticed",
    reviews,
    queries=shop.table("watches"),
    id="id",
    query="query",
    text={"text": "text:en"},
    fields=["stars"],
    carry=["owner"],
    operator="and",
)
