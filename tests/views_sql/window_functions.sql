-- Functions over the rows around.

TABLE shop.public.customers (id BIGINT, country STRING) KEY (id);
TABLE shop.public.orders (id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING, placed_at TIMESTAMP_NTZ) KEY (id);

VIEW v AS
SELECT id, row_number() OVER (PARTITION BY status ORDER BY id) AS n, lag(amount) OVER (PARTITION BY status ORDER BY id) AS previous, sum(amount) OVER (PARTITION BY status ORDER BY id) AS running FROM shop.orders;

TICK
+ shop.public.customers {"id":1,"country":"NL"}
+ shop.public.customers {"id":2,"country":"DE"}
+ shop.public.customers {"id":3,"country":null}
+ shop.public.orders {"id":1,"customer_id":1,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"paid","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":3,"customer_id":2,"amount":"7.25","status":"open","placed_at":"2026-01-02T00:00:00"}
= v
{"id":1,"n":1,"previous":null,"running":"10.00"}
{"id":2,"n":1,"previous":null,"running":"5.50"}
{"id":3,"n":2,"previous":"10.00","running":"17.25"}

TICK
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":null,"amount":"1.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":5,"customer_id":9,"amount":"2.00","status":null,"placed_at":null}
= v
{"id":1,"n":1,"previous":null,"running":"10.00"}
{"id":2,"n":2,"previous":"10.00","running":"15.50"}
{"id":3,"n":3,"previous":"5.50","running":"22.75"}
{"id":4,"n":4,"previous":"7.25","running":"23.75"}
{"id":5,"n":1,"previous":null,"running":"2.00"}

TICK
+ shop.public.customers {"id":1,"country":"DE"}
- shop.public.orders {"id":3}
= v
{"id":1,"n":1,"previous":null,"running":"10.00"}
{"id":2,"n":2,"previous":"10.00","running":"15.50"}
{"id":4,"n":3,"previous":"5.50","running":"16.50"}
{"id":5,"n":1,"previous":null,"running":"2.00"}

TICK
+ shop.public.customers {"id":9,"country":"FR"}
+ shop.public.orders {"id":1,"customer_id":3,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":2,"amount":"-1.00","status":"paid","placed_at":"2026-01-01T10:00:00"}
= v
{"id":1,"n":1,"previous":null,"running":"10.00"}
{"id":2,"n":2,"previous":"10.00","running":"15.50"}
{"id":4,"n":1,"previous":null,"running":"-1.00"}
{"id":5,"n":1,"previous":null,"running":"2.00"}

TICK
- shop.public.customers {"id":9}
- shop.public.customers {"id":2}
- shop.public.orders {"id":1}
+ shop.public.orders {"id":6,"customer_id":1,"amount":"0.00","status":"open","placed_at":"2026-01-01T10:00:00"}
= v
{"id":2,"n":1,"previous":null,"running":"5.50"}
{"id":4,"n":1,"previous":null,"running":"-1.00"}
{"id":5,"n":1,"previous":null,"running":"2.00"}
{"id":6,"n":2,"previous":"5.50","running":"5.50"}
