-- Counts per window of time; a late or moved row corrects its window.

TABLE shop.public.orders (id BIGINT, amount INT, placed_at TIMESTAMP_NTZ) KEY (id);

VIEW per_window KEY (start) AS
SELECT window.start AS start, window.end AS end, count(*) AS orders, sum(amount) AS total
FROM shop.orders GROUP BY window(placed_at, '10 minutes');

VIEW whole AS
SELECT window, count(*) AS orders FROM shop.orders GROUP BY window(placed_at, '1 hour');

TICK
+ shop.public.orders {"id":1,"amount":5,"placed_at":"2026-01-01T10:03:00"}
+ shop.public.orders {"id":2,"amount":7,"placed_at":"2026-01-01T10:09:59.999999"}
+ shop.public.orders {"id":3,"amount":1,"placed_at":"2026-01-01T10:10:00"}
= per_window
{"start":"2026-01-01T10:00:00","end":"2026-01-01T10:10:00","orders":2,"total":12}
{"start":"2026-01-01T10:10:00","end":"2026-01-01T10:20:00","orders":1,"total":1}
= whole
{"window":{"start":"2026-01-01T10:00:00","end":"2026-01-01T11:00:00"},"orders":3}

TICK
+ shop.public.orders {"id":2,"amount":7,"placed_at":"2026-01-01T10:15:00"}
+ shop.public.orders {"id":4,"amount":2,"placed_at":"1969-12-31T23:59:00"}
= per_window
{"start":"2026-01-01T10:00:00","end":"2026-01-01T10:10:00","orders":1,"total":5}
{"start":"2026-01-01T10:10:00","end":"2026-01-01T10:20:00","orders":2,"total":8}
{"start":"1969-12-31T23:50:00","end":"1970-01-01T00:00:00","orders":1,"total":2}
= whole
{"window":{"start":"2026-01-01T10:00:00","end":"2026-01-01T11:00:00"},"orders":3}
{"window":{"start":"1969-12-31T23:00:00","end":"1970-01-01T00:00:00"},"orders":1}
