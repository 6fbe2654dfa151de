-- Rows leave by themselves when their hour is over.

TABLE shop.public.orders (id BIGINT, placed_at TIMESTAMP) KEY (id);

VIEW last_hour AS
SELECT id FROM shop.orders WHERE placed_at > now() - INTERVAL '1' HOUR;

VIEW due KEY (n) AS
SELECT count(*) AS n FROM shop.orders WHERE placed_at <= now();

TICK 2026-01-01T10:00:00Z
+ shop.public.orders {"id":1,"placed_at":"2026-01-01T09:30:00Z"}
+ shop.public.orders {"id":2,"placed_at":"2026-01-01T09:00:00Z"}
+ shop.public.orders {"id":3,"placed_at":"2026-01-01T10:10:00Z"}
= last_hour
{"id":1}
{"id":3}
= due
{"n":2}

TICK 2026-01-01T10:30:00Z
= last_hour
{"id":3}
= due
{"n":3}

TICK 2026-01-01T11:09:59Z
+ shop.public.orders {"id":1,"placed_at":"2026-01-01T11:30:00Z"}
= last_hour
{"id":1}
{"id":3}
= due
{"n":2}

TICK 2026-01-01T11:10:00Z
- shop.public.orders {"id":2}
= last_hour
{"id":1}
= due
{"n":1}
