"""Plans read as SQL does, without the names that columns have between operators."""

from __future__ import annotations

import re

import pytest

from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.compiler.explain import explain
from tailrace.testing.ticks import table

TABLES = [
    table("shop.orders", "id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING, placed_at TIMESTAMP", ("id",)),
    table("shop.customers", "id BIGINT, country STRING, city STRING", ("id",)),
    table("shop.payments", "id BIGINT, order_id BIGINT, amount DECIMAL(10,2)", ("id",)),
]  # fmt: skip
PLANS = [
    (
        "SELECT c.country, count(*) AS n, sum(o.amount) AS value FROM shop.orders o"
        " JOIN shop.customers c ON c.id = o.customer_id WHERE o.status = 'open' GROUP BY c.country",
        ["group by country: count(*), sum(amount)", "join on customer_id = id, adding up amount", "where status = 'open'"],
    ),
    (
        "SELECT date_trunc('minute', o.placed_at) AS minute, c.country, sum(p.amount) AS paid"
        " FROM shop.payments p JOIN shop.orders o ON o.id = p.order_id"
        " JOIN shop.customers c ON c.id = o.customer_id GROUP BY 1, 2",
        ["group by date_trunc('MINUTE', placed_at), country: sum(amount)", "join on order_id = id"],
    ),
    (
        "SELECT c.id, count(o.id) AS n, collect_list(o.status ORDER BY o.id) AS all"
        " FROM shop.customers c LEFT JOIN shop.orders o ON o.customer_id = c.id GROUP BY c.id",
        ["left join on id = customer_id", "group by customers.id: count(orders.id), collect_list(status order by orders.id)"],
    ),
    (
        "SELECT customer_id, sum(amount) AS value FROM shop.orders GROUP BY customer_id ORDER BY value DESC, customer_id LIMIT 3",
        ["first 3 by sum(amount) desc, customer_id"],
    ),
    (
        "SELECT id, row_number() OVER (PARTITION BY customer_id ORDER BY placed_at DESC) AS n FROM shop.orders",
        ["row_number() over (partition by customer_id order by placed_at desc)"],
    ),
    (
        "SELECT a.id, b.id AS other FROM shop.orders a JOIN shop.orders b ON a.customer_id = b.customer_id AND a.amount < b.amount",
        ["join on orders.customer_id = orders.customer_id", "where orders.amount < orders.amount_2"],
    ),
    (
        "SELECT upper(c.country) AS land, count(DISTINCT o.id) AS n FROM shop.orders o JOIN shop.customers c"
        " ON c.id = o.customer_id GROUP BY upper(c.country) HAVING count(DISTINCT o.id) > 1",
        ["group by upper(country): count(distinct id)", "where count(distinct id) > 1"],
    ),
    (
        "SELECT id FROM shop.orders WHERE EXISTS (SELECT 1 FROM shop.payments p WHERE p.order_id = orders.id)"
        " AND amount > (SELECT avg(amount) FROM shop.payments)",
        ["join where there is a match on id = order_id", "over all rows: avg(amount)", "not incremental: cross join: "],
    ),
    (
        "SELECT country FROM shop.customers UNION SELECT city FROM shop.customers",
        ["distinct country", "union all (country)"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "said"), PLANS)
def test_a_plan_reads_as_the_query_does(sql: str, said: list[str]) -> None:
    text = explain(compile_views([ViewDefinition("v", sql)], TABLES), "v")
    for words in said:
        assert words in text
    assert not re.search(r"\b(e|a|c|sum)\d+\b|__\w+|-[0-9a-f]{32}", text), text
