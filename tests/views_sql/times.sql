-- Parts of times and arithmetic with intervals.

TABLE shop.public.customers (id BIGINT, country STRING) KEY (id);
TABLE shop.public.orders (id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING, placed_at TIMESTAMP_NTZ) KEY (id);

VIEW v AS
SELECT id, date_trunc('DAY', placed_at) AS day, hour(placed_at) AS hour, placed_at + INTERVAL '90' MINUTE AS later FROM shop.orders;

TICK
+ shop.public.customers {"id":1,"country":"NL"}
+ shop.public.customers {"id":2,"country":"DE"}
+ shop.public.customers {"id":3,"country":null}
+ shop.public.orders {"id":1,"customer_id":1,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"paid","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":3,"customer_id":2,"amount":"7.25","status":"open","placed_at":"2026-01-02T00:00:00"}
= v
{"id":1,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":2,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":3,"day":"2026-01-02T00:00:00Z","hour":0,"later":"2026-01-02T01:30:00"}

TICK
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":null,"amount":"1.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":5,"customer_id":9,"amount":"2.00","status":null,"placed_at":null}
= v
{"id":1,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":2,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":3,"day":"2026-01-02T00:00:00Z","hour":0,"later":"2026-01-02T01:30:00"}
{"id":4,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":5,"day":null,"hour":null,"later":null}

TICK
+ shop.public.customers {"id":1,"country":"DE"}
- shop.public.orders {"id":3}
= v
{"id":1,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":2,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":4,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":5,"day":null,"hour":null,"later":null}

TICK
+ shop.public.customers {"id":9,"country":"FR"}
+ shop.public.orders {"id":1,"customer_id":3,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":2,"amount":"-1.00","status":"paid","placed_at":"2026-01-01T10:00:00"}
= v
{"id":1,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":2,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":4,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":5,"day":null,"hour":null,"later":null}

TICK
- shop.public.customers {"id":9}
- shop.public.customers {"id":2}
- shop.public.orders {"id":1}
+ shop.public.orders {"id":6,"customer_id":1,"amount":"0.00","status":"open","placed_at":"2026-01-01T10:00:00"}
= v
{"id":2,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":4,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
{"id":5,"day":null,"hour":null,"later":null}
{"id":6,"day":"2026-01-01T00:00:00Z","hour":10,"later":"2026-01-01T11:30:00"}
