-- Moments that are kept as texts, and intervals that a row says the length of.

TABLE shop.public.rentals (id BIGINT, since STRING, days INT, until DATE) KEY (id);

VIEW reminders KEY (id) AS
SELECT id, since + INTERVAL '36' HOUR AS reminded, DATE '2026-01-01' + CAST(days AS INTERVAL DAY) AS ends,
       CAST(CAST(days AS INTERVAL DAY) AS STRING) AS span, CAST(until - since AS INT) AS length
FROM shop.rentals;

VIEW long KEY (id) AS
SELECT id FROM shop.rentals WHERE CAST(days AS INTERVAL DAY) > CAST('2' AS INTERVAL DAY);

TICK
+ shop.public.rentals {"id":1,"since":"2026-01-31","days":3,"until":"2026-02-02"}
+ shop.public.rentals {"id":2,"since":"2026-01-31 10:00:00+02:00","days":1,"until":"2026-01-30"}
+ shop.public.rentals {"id":3,"since":null,"days":null,"until":null}
= reminders
{"id":1,"reminded":"2026-02-01 12:00:00","ends":"2026-01-04","span":"INTERVAL '3' DAY","length":2}
{"id":2,"reminded":"2026-02-01 20:00:00","ends":"2026-01-02","span":"INTERVAL '1' DAY","length":-1}
{"id":3,"reminded":null,"ends":null,"span":null,"length":null}
= long
{"id":1}

TICK
+ shop.public.rentals {"id":2,"since":"2026-01-31","days":30,"until":"2026-01-31"}
- shop.public.rentals {"id":1}
= reminders
{"id":2,"reminded":"2026-02-01 12:00:00","ends":"2026-01-31","span":"INTERVAL '30' DAY","length":0}
{"id":3,"reminded":null,"ends":null,"span":null,"length":null}
= long
{"id":2}
