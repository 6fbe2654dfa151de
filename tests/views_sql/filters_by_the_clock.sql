-- Rows come and leave by the clock: between two moments, by months and days, one of several ways,
-- behind a join and by the last row of a group.

TABLE shop.public.orders (id BIGINT, country STRING, placed_at TIMESTAMP, due DATE) KEY (id);
TABLE shop.public.countries (country STRING, name STRING) KEY (country);

VIEW this_month AS
SELECT id FROM shop.orders WHERE placed_at BETWEEN now() - INTERVAL '1' MONTH AND now();

VIEW due_today AS
SELECT id FROM shop.orders WHERE due = current_date();

VIEW new_or_old AS
SELECT o.id, c.name FROM shop.orders o JOIN shop.countries c ON c.country = o.country
WHERE o.placed_at > now() - INTERVAL '1' DAY OR o.placed_at < date_trunc('MONTH', now()) - INTERVAL '1' MONTH;

VIEW silent KEY (country) AS
SELECT country, max(placed_at) AS last FROM shop.orders GROUP BY country
HAVING max(placed_at) <= now() - INTERVAL '7' DAY;

TICK 2026-01-31T12:00:00Z
+ shop.public.countries {"country":"NL","name":"Netherlands"}
+ shop.public.orders {"id":1,"country":"NL","placed_at":"2026-01-31T11:00:00Z","due":"2026-02-01"}
+ shop.public.orders {"id":2,"country":"NL","placed_at":"2026-01-28T11:00:00Z","due":"2026-01-31"}
+ shop.public.orders {"id":3,"country":"NL","placed_at":"2026-02-03T00:00:00Z","due":null}
= this_month
{"id":1}
{"id":2}
= due_today
{"id":2}
= new_or_old
{"id":1,"name":"Netherlands"}
{"id":3,"name":"Netherlands"}
= silent

TICK 2026-02-01T00:00:00Z
= due_today
{"id":1}
= new_or_old
{"id":1,"name":"Netherlands"}
{"id":3,"name":"Netherlands"}

TICK 2026-02-28T11:30:00Z
= this_month
{"id":1}
{"id":3}
= due_today
= new_or_old
= silent
{"country":"NL","last":"2026-02-03T00:00:00Z"}

TICK 2026-03-01T00:00:00Z
+ shop.public.orders {"id":4,"country":"NL","placed_at":"2026-02-28T23:00:00Z","due":"2026-03-01"}
= this_month
{"id":3}
{"id":4}
= due_today
{"id":4}
= new_or_old
{"id":1,"name":"Netherlands"}
{"id":2,"name":"Netherlands"}
{"id":4,"name":"Netherlands"}
= silent

TICK 2026-03-08T00:00:00Z
- shop.public.countries {"country":"NL"}
= this_month
{"id":4}
= new_or_old
= silent
{"country":"NL","last":"2026-02-28T23:00:00Z"}
