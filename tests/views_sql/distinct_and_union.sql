-- Set operations count how often a row is there.

TABLE shop.public.customers (id BIGINT, country STRING) KEY (id);
TABLE shop.public.orders (id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING, placed_at TIMESTAMP_NTZ) KEY (id);

VIEW d AS
SELECT DISTINCT status FROM shop.orders;

VIEW u AS
SELECT id FROM shop.orders UNION SELECT id FROM shop.customers;

VIEW ua AS
SELECT id FROM shop.orders UNION ALL SELECT id FROM shop.customers;

TICK
+ shop.public.customers {"id":1,"country":"NL"}
+ shop.public.customers {"id":2,"country":"DE"}
+ shop.public.customers {"id":3,"country":null}
+ shop.public.orders {"id":1,"customer_id":1,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"paid","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":3,"customer_id":2,"amount":"7.25","status":"open","placed_at":"2026-01-02T00:00:00"}
= d
{"status":"open"}
{"status":"paid"}
= u
{"id":1}
{"id":2}
{"id":3}
= ua
{"id":1,"count":2}
{"id":2,"count":2}
{"id":3,"count":2}

TICK
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":null,"amount":"1.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":5,"customer_id":9,"amount":"2.00","status":null,"placed_at":null}
= d
{"status":"open"}
{"status":null}
= u
{"id":1}
{"id":2}
{"id":3}
{"id":4}
{"id":5}
= ua
{"id":1,"count":2}
{"id":2,"count":2}
{"id":3,"count":2}
{"id":4,"count":1}
{"id":5,"count":1}

TICK
+ shop.public.customers {"id":1,"country":"DE"}
- shop.public.orders {"id":3}
= d
{"status":"open"}
{"status":null}
= u
{"id":1}
{"id":2}
{"id":3}
{"id":4}
{"id":5}
= ua
{"id":1,"count":2}
{"id":2,"count":2}
{"id":3,"count":1}
{"id":4,"count":1}
{"id":5,"count":1}

TICK
+ shop.public.customers {"id":9,"country":"FR"}
+ shop.public.orders {"id":1,"customer_id":3,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":2,"amount":"-1.00","status":"paid","placed_at":"2026-01-01T10:00:00"}
= d
{"status":"open"}
{"status":"paid"}
{"status":null}
= u
{"id":1}
{"id":2}
{"id":3}
{"id":4}
{"id":5}
{"id":9}
= ua
{"id":1,"count":2}
{"id":2,"count":2}
{"id":3,"count":1}
{"id":4,"count":1}
{"id":5,"count":1}
{"id":9,"count":1}

TICK
- shop.public.customers {"id":9}
- shop.public.customers {"id":2}
- shop.public.orders {"id":1}
+ shop.public.orders {"id":6,"customer_id":1,"amount":"0.00","status":"open","placed_at":"2026-01-01T10:00:00"}
= d
{"status":"open"}
{"status":"paid"}
{"status":null}
= u
{"id":1}
{"id":2}
{"id":3}
{"id":4}
{"id":5}
{"id":6}
= ua
{"id":1,"count":1}
{"id":2,"count":1}
{"id":3,"count":1}
{"id":4,"count":1}
{"id":5,"count":1}
{"id":6,"count":1}
