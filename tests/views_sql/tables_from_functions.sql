-- Functions that give a table: a list asked as if it were one, rows for each day, what has no match stays.

TABLE shop.public.orders (id BIGINT, prices ARRAY<INT>, nights INT, since DATE) KEY (id);

VIEW totals KEY (id) AS
SELECT o.id, (SELECT sum(price) FROM explode(o.prices) AS p(price) WHERE price > 0) AS total FROM shop.orders o;

VIEW dear KEY (id) AS
SELECT o.id FROM shop.orders o WHERE EXISTS (SELECT 1 FROM explode(o.prices) AS p(price) WHERE price >= 100);

VIEW nights KEY (id, night) AS
SELECT o.id, night FROM shop.orders o, LATERAL explode(sequence(o.since, date_add(o.since, o.nights - 1))) AS n(night);

VIEW above KEY (id, price) AS
SELECT o.id, price FROM shop.orders o LEFT JOIN LATERAL explode(o.prices) AS p(price) ON price > 50;

VIEW thirds KEY (id, third) AS
SELECT o.id, third FROM shop.orders o, LATERAL range(3) AS r(third) WHERE o.nights % 3 = third;

TICK
+ shop.public.orders {"id":1,"prices":[10,120,-5],"nights":2,"since":"2026-02-28"}
+ shop.public.orders {"id":2,"prices":[],"nights":1,"since":"2026-01-01"}
+ shop.public.orders {"id":3,"prices":null,"nights":null,"since":null}
= totals
{"id":1,"total":130}
{"id":2,"total":null}
{"id":3,"total":null}
= dear
{"id":1}
= nights
{"id":1,"night":"2026-02-28"}
{"id":1,"night":"2026-03-01"}
{"id":2,"night":"2026-01-01"}
= above
{"id":1,"price":120}
{"id":2,"price":null}
{"id":3,"price":null}
= thirds
{"id":1,"third":2}
{"id":2,"third":1}

TICK
+ shop.public.orders {"id":1,"prices":[60,70],"nights":3,"since":"2026-02-28"}
+ shop.public.orders {"id":2,"prices":[100],"nights":1,"since":"2026-01-01"}
- shop.public.orders {"id":3}
= totals
{"id":1,"total":130}
{"id":2,"total":100}
= dear
{"id":2}
= nights
{"id":1,"night":"2026-02-28"}
{"id":1,"night":"2026-03-01"}
{"id":1,"night":"2026-03-02"}
{"id":2,"night":"2026-01-01"}
= above
{"id":1,"price":60}
{"id":1,"price":70}
{"id":2,"price":100}
= thirds
{"id":1,"third":0}
{"id":2,"third":1}
