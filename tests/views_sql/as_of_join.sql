-- The version that was valid at the row's time; late versions and late rows correct the result.

HISTORY shop.public.rates (currency STRING, rate DECIMAL(10,4)) KEY (currency);
TABLE shop.public.orders (id BIGINT, currency STRING, amount DECIMAL(10,2), placed_at TIMESTAMP) KEY (id);

VIEW priced AS
SELECT o.id, o.amount * r.rate AS value
FROM shop.orders o JOIN shop.rates FOR SYSTEM_TIME AS OF o.placed_at r ON r.currency = o.currency;

VIEW all_orders AS
SELECT o.id, r.rate, r.__versioned_at AS since
FROM shop.orders o LEFT JOIN shop.rates FOR SYSTEM_TIME AS OF o.placed_at r ON r.currency = o.currency;

TICK
+ shop.public.rates {"currency":"EUR","rate":"1.1000","__versioned_at":"2026-01-01T01:00:00Z"}
+ shop.public.orders {"id":1,"currency":"EUR","amount":"10.00","placed_at":"2026-01-01T02:00:00Z"}
+ shop.public.orders {"id":2,"currency":"EUR","amount":"10.00","placed_at":"2026-01-01T00:30:00Z"}
= priced
{"id":1,"value":"11.000000"}
= all_orders
{"id":1,"rate":"1.1000","since":"2026-01-01T01:00:00Z"}
{"id":2,"rate":null,"since":null}

TICK
+ shop.public.rates {"currency":"EUR","rate":"1.2000","__versioned_at":"2026-01-01T01:30:00Z"}
= priced
{"id":1,"value":"12.000000"}
= all_orders
{"id":1,"rate":"1.2000","since":"2026-01-01T01:30:00Z"}
{"id":2,"rate":null,"since":null}

TICK
+ shop.public.rates {"currency":"EUR","rate":"1.0000","__versioned_at":"2026-01-01T00:00:00Z"}
- shop.public.rates {"currency":"EUR","__versioned_at":"2026-01-01T01:45:00Z"}
= priced
{"id":2,"value":"10.000000"}
= all_orders
{"id":1,"rate":null,"since":null}
{"id":2,"rate":"1.0000","since":"2026-01-01T00:00:00Z"}

TICK
- shop.public.orders {"id":2}
+ shop.public.orders {"id":3,"currency":"EUR","amount":"2.00","placed_at":"2026-01-01T01:30:00Z"}
= priced
{"id":3,"value":"2.400000"}
= all_orders
{"id":1,"rate":null,"since":null}
{"id":3,"rate":"1.2000","since":"2026-01-01T01:30:00Z"}
