-- A row pattern in a window: every row with its own fall and rise, true under late rows and deletes.
TABLE shop.public.orders (id BIGINT, customer STRING, price INT) KEY (id);
VIEW falls KEY (id) AS
SELECT id, low OVER w AS low, name OVER w AS name, count(*) OVER w AS rows, max(price) OVER w AS high,
       row_number() OVER w AS place
FROM shop.orders
WINDOW w AS (
    PARTITION BY customer
    ORDER BY id
    MEASURES LAST(B.price) AS low, CLASSIFIER() AS name
    ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    AFTER MATCH SKIP TO NEXT ROW
    INITIAL
    PATTERN (A B+ C+)
    DEFINE B AS B.price < PREV(B.price),
           C AS C.price > PREV(C.price)
);
VIEW first_falls KEY (id) AS
SELECT id, low OVER w AS low, first_value(price) OVER w AS begins
FROM shop.orders
WINDOW w AS (
    PARTITION BY customer
    ORDER BY id
    MEASURES LAST(B.price) AS low
    ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING
    AFTER MATCH SKIP PAST LAST ROW
    SEEK
    PATTERN (A B+)
    DEFINE B AS B.price < PREV(B.price)
);

TICK
+ shop.public.orders {"id": 1, "customer": "c1", "price": 90}
+ shop.public.orders {"id": 2, "customer": "c1", "price": 80}
+ shop.public.orders {"id": 3, "customer": "c1", "price": 70}
+ shop.public.orders {"id": 5, "customer": "c1", "price": 80}
+ shop.public.orders {"id": 6, "customer": "c1", "price": 90}
+ shop.public.orders {"id": 7, "customer": "c2", "price": 5}
= falls
{"id": 1, "low": 70, "name": "C", "rows": 5, "high": 90, "place": 1}
{"id": 2, "low": 70, "name": "C", "rows": 4, "high": 90, "place": 2}
{"id": 3, "low": null, "name": null, "rows": 0, "high": null, "place": 3}
{"id": 5, "low": null, "name": null, "rows": 0, "high": null, "place": 4}
{"id": 6, "low": null, "name": null, "rows": 0, "high": null, "place": 5}
{"id": 7, "low": null, "name": null, "rows": 0, "high": null, "place": 1}
= first_falls
{"id": 1, "low": 70, "begins": 90}
{"id": 2, "low": null, "begins": null}
{"id": 3, "low": null, "begins": null}
{"id": 5, "low": null, "begins": null}
{"id": 6, "low": null, "begins": null}
{"id": 7, "low": null, "begins": null}

-- A late row deepens the fall; another fall begins at the end.
TICK
+ shop.public.orders {"id": 4, "customer": "c1", "price": 60}
+ shop.public.orders {"id": 8, "customer": "c1", "price": 50}
= falls
{"id": 1, "low": 60, "name": "C", "rows": 6, "high": 90, "place": 1}
{"id": 2, "low": 60, "name": "C", "rows": 5, "high": 90, "place": 2}
{"id": 3, "low": 60, "name": "C", "rows": 4, "high": 90, "place": 3}
{"id": 4, "low": null, "name": null, "rows": 0, "high": null, "place": 4}
{"id": 5, "low": null, "name": null, "rows": 0, "high": null, "place": 5}
{"id": 6, "low": null, "name": null, "rows": 0, "high": null, "place": 6}
{"id": 7, "low": null, "name": null, "rows": 0, "high": null, "place": 1}
{"id": 8, "low": null, "name": null, "rows": 0, "high": null, "place": 7}
= first_falls
{"id": 1, "low": 60, "begins": 90}
{"id": 2, "low": null, "begins": null}
{"id": 3, "low": null, "begins": null}
{"id": 4, "low": null, "begins": null}
{"id": 5, "low": 50, "begins": 90}
{"id": 6, "low": null, "begins": null}
{"id": 7, "low": null, "begins": null}
{"id": 8, "low": null, "begins": null}

-- The lowest one leaves again.
TICK
- shop.public.orders {"id": 4}
- shop.public.orders {"id": 8}
= first_falls
{"id": 1, "low": 70, "begins": 90}
{"id": 2, "low": null, "begins": null}
{"id": 3, "low": null, "begins": null}
{"id": 5, "low": null, "begins": null}
{"id": 6, "low": null, "begins": null}
{"id": 7, "low": null, "begins": null}
