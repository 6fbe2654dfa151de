-- Intervals that a row computes, values laid out as rows, maps merged by a function.

TABLE shop.public.plans (id BIGINT, start TIMESTAMP, months INT, days INT, prices MAP<STRING, INT>) KEY (id);

VIEW ends KEY (id) AS
SELECT id, start + make_interval(0, months, 0, days) AS ends,
       start - INTERVAL '2' HOUR * days AS reminded,
       start + make_dt_interval(days, 1, 30) AS tried
FROM shop.plans;

VIEW parts KEY (id, what) AS
SELECT id, p.what, p.amount FROM shop.plans LATERAL VIEW stack(2, 'months', months, 'days', days) p AS what, amount;

VIEW priced KEY (id) AS
SELECT id, to_json(map_zip_with(prices, map('a', 1, 'c', 5), (k, x, y) -> coalesce(x, 0) + coalesce(y, 0))) AS merged
FROM shop.plans;

TICK
+ shop.public.plans {"id":1,"start":"2026-01-31T12:00:00Z","months":1,"days":2,"prices":{"a":10,"b":20}}
+ shop.public.plans {"id":2,"start":"2026-01-31T12:00:00Z","months":null,"days":0,"prices":null}
= ends
{"id":1,"ends":"2026-03-02T12:00:00Z","reminded":"2026-01-31T08:00:00Z","tried":"2026-02-02T13:30:00Z"}
{"id":2,"ends":null,"reminded":"2026-01-31T12:00:00Z","tried":"2026-01-31T13:30:00Z"}
= parts
{"id":1,"what":"months","amount":1}
{"id":1,"what":"days","amount":2}
{"id":2,"what":"months","amount":null}
{"id":2,"what":"days","amount":0}
= priced
{"id":1,"merged":"{\"a\":11,\"b\":20,\"c\":5}"}
{"id":2,"merged":null}

TICK
+ shop.public.plans {"id":2,"start":"2026-02-28T00:00:00Z","months":12,"days":1,"prices":{}}
- shop.public.plans {"id":1}
= ends
{"id":2,"ends":"2027-03-01T00:00:00Z","reminded":"2026-02-27T22:00:00Z","tried":"2026-03-01T01:30:00Z"}
= parts
{"id":2,"what":"months","amount":12}
{"id":2,"what":"days","amount":1}
= priced
{"id":2,"merged":"{\"a\":1,\"c\":5}"}
