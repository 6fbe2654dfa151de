-- Aggregates that give back what was added.

TABLE shop.public.customers (id BIGINT, country STRING) KEY (id);
TABLE shop.public.orders (id BIGINT, customer_id BIGINT, amount DECIMAL(10,2), status STRING, placed_at TIMESTAMP_NTZ) KEY (id);

VIEW v AS
SELECT status, count(*) AS n, count(customer_id) AS customers, sum(amount) AS total, avg(amount) AS mean, min(amount) AS low, max(placed_at) AS latest, count(DISTINCT customer_id) AS buyers, bool_and(amount > 1) AS above, stddev(amount) AS spread FROM shop.orders GROUP BY status;

TICK
+ shop.public.customers {"id":1,"country":"NL"}
+ shop.public.customers {"id":2,"country":"DE"}
+ shop.public.customers {"id":3,"country":null}
+ shop.public.orders {"id":1,"customer_id":1,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"paid","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":3,"customer_id":2,"amount":"7.25","status":"open","placed_at":"2026-01-02T00:00:00"}
= v
{"status":"open","n":2,"customers":2,"total":"17.25","mean":"8.625000","low":"7.25","latest":"2026-01-02T00:00:00","buyers":2,"above":true,"spread":1.9445436482630056}
{"status":"paid","n":1,"customers":1,"total":"5.50","mean":"5.500000","low":"5.50","latest":"2026-01-01T10:00:00","buyers":1,"above":true,"spread":null}

TICK
+ shop.public.orders {"id":2,"customer_id":1,"amount":"5.50","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":null,"amount":"1.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":5,"customer_id":9,"amount":"2.00","status":null,"placed_at":null}
= v
{"status":"open","n":4,"customers":3,"total":"23.75","mean":"5.937500","low":"1.00","latest":"2026-01-02T00:00:00","buyers":2,"above":false,"spread":3.776986232434532}
{"status":null,"n":1,"customers":1,"total":"2.00","mean":"2.000000","low":"2.00","latest":null,"buyers":1,"above":true,"spread":null}

TICK
+ shop.public.customers {"id":1,"country":"DE"}
- shop.public.orders {"id":3}
= v
{"status":"open","n":3,"customers":2,"total":"16.50","mean":"5.500000","low":"1.00","latest":"2026-01-01T10:00:00","buyers":1,"above":false,"spread":4.5}
{"status":null,"n":1,"customers":1,"total":"2.00","mean":"2.000000","low":"2.00","latest":null,"buyers":1,"above":true,"spread":null}

TICK
+ shop.public.customers {"id":9,"country":"FR"}
+ shop.public.orders {"id":1,"customer_id":3,"amount":"10.00","status":"open","placed_at":"2026-01-01T10:00:00"}
+ shop.public.orders {"id":4,"customer_id":2,"amount":"-1.00","status":"paid","placed_at":"2026-01-01T10:00:00"}
= v
{"status":"open","n":2,"customers":2,"total":"15.50","mean":"7.750000","low":"5.50","latest":"2026-01-01T10:00:00","buyers":2,"above":true,"spread":3.181980515339464}
{"status":"paid","n":1,"customers":1,"total":"-1.00","mean":"-1.000000","low":"-1.00","latest":"2026-01-01T10:00:00","buyers":1,"above":false,"spread":null}
{"status":null,"n":1,"customers":1,"total":"2.00","mean":"2.000000","low":"2.00","latest":null,"buyers":1,"above":true,"spread":null}

TICK
- shop.public.customers {"id":9}
- shop.public.customers {"id":2}
- shop.public.orders {"id":1}
+ shop.public.orders {"id":6,"customer_id":1,"amount":"0.00","status":"open","placed_at":"2026-01-01T10:00:00"}
= v
{"status":"open","n":2,"customers":2,"total":"5.50","mean":"2.750000","low":"0.00","latest":"2026-01-01T10:00:00","buyers":1,"above":false,"spread":3.8890872965260113}
{"status":"paid","n":1,"customers":1,"total":"-1.00","mean":"-1.000000","low":"-1.00","latest":"2026-01-01T10:00:00","buyers":1,"above":false,"spread":null}
{"status":null,"n":1,"customers":1,"total":"2.00","mean":"2.000000","low":"2.00","latest":null,"buyers":1,"above":true,"spread":null}
