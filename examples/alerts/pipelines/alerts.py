"""Saved searches: people store queries, and are told of every listing that matches one."""

import tailrace as tr
from tailrace import sinks

listings = tr.topic(
    "listings",
    schema="id BIGINT, title STRING, body STRING, price DECIMAL(10,2), country STRING",
)
saved_searches = tr.topic(
    "saved_searches",
    schema="id BIGINT, owner STRING, query STRING, url STRING, only_once BOOLEAN, per_hour INT",
    key="id",
)

alerts = tr.percolate(
    "alerts",
    listings,
    queries=saved_searches,
    id="id",
    query="query",
    text={"title": "text:en", "body": "text:en"},
    fields=["price", "country"],
    carry=["owner", "url"],
    operator="and",
    once="only_once",
    per_hour="per_hour",
    to=sinks.Webhook(address="url", hosts=["127.0.0.1"]),
)

interest = tr.view(
    "interest",
    "SELECT owner, count(*) AS matches, max(event.price) AS dearest FROM alerts GROUP BY owner",
    key="owner",
)
