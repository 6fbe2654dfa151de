-- MATCH_RECOGNIZE: a fall and a rise of prices, which comes late, is corrected, moves and leaves.
TABLE shop.public.orders (id BIGINT, customer STRING, day DATE, price INT) KEY (id);
VIEW falls KEY (customer, bottom_day) AS
SELECT m.customer, m.start_price, m.bottom_price, m.final_price, m.bottom_day, m.days
FROM shop.orders MATCH_RECOGNIZE (
    PARTITION BY customer
    ORDER BY day
    MEASURES A.price AS start_price,
             LAST(B.price) AS bottom_price,
             LAST(B.day) AS bottom_day,
             LAST(C.price) AS final_price,
             count(*) AS days
    ONE ROW PER MATCH
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A B+ C+)
    DEFINE B AS B.price < PREV(B.price),
           C AS C.price > PREV(C.price)
) AS m;
VIEW steps KEY (id) AS
SELECT id, number, name, low, total
FROM shop.orders MATCH_RECOGNIZE (
    PARTITION BY customer
    ORDER BY day
    MEASURES MATCH_NUMBER() AS number,
             CLASSIFIER() AS name,
             FINAL LAST(B.price) AS low,
             RUNNING sum(U.price) AS total
    ALL ROWS PER MATCH WITH UNMATCHED ROWS
    PATTERN (A B+ C+)
    SUBSET U = (A, B)
    DEFINE B AS B.price < PREV(B.price),
           C AS C.price > PREV(C.price)
) AS m;

TICK
+ shop.public.orders {"id": 1, "customer": "c1", "day": "2020-05-11", "price": 100}
+ shop.public.orders {"id": 2, "customer": "c1", "day": "2020-05-12", "price": 200}
+ shop.public.orders {"id": 3, "customer": "c2", "day": "2020-05-13", "price": 8}
+ shop.public.orders {"id": 4, "customer": "c1", "day": "2020-05-14", "price": 100}
+ shop.public.orders {"id": 5, "customer": "c2", "day": "2020-05-15", "price": 4}
+ shop.public.orders {"id": 6, "customer": "c1", "day": "2020-05-16", "price": 50}
+ shop.public.orders {"id": 7, "customer": "c1", "day": "2020-05-17", "price": 100}
+ shop.public.orders {"id": 8, "customer": "c2", "day": "2020-05-18", "price": 6}
= falls
{"customer": "c1", "start_price": 200, "bottom_price": 50, "final_price": 100, "bottom_day": "2020-05-16", "days": 4}
{"customer": "c2", "start_price": 8, "bottom_price": 4, "final_price": 6, "bottom_day": "2020-05-15", "days": 3}
= steps
{"id": 1, "number": null, "name": null, "low": null, "total": null}
{"id": 2, "number": 1, "name": "A", "low": 50, "total": 200}
{"id": 4, "number": 1, "name": "B", "low": 50, "total": 300}
{"id": 6, "number": 1, "name": "B", "low": 50, "total": 350}
{"id": 7, "number": 1, "name": "C", "low": 50, "total": 350}
{"id": 3, "number": 1, "name": "A", "low": 4, "total": 8}
{"id": 5, "number": 1, "name": "B", "low": 4, "total": 12}
{"id": 8, "number": 1, "name": "C", "low": 4, "total": 12}

-- A late row lengthens the fall of c2; a correction ends the rise of c1 before it began.
TICK
+ shop.public.orders {"id": 9, "customer": "c2", "day": "2020-05-16", "price": 2}
+ shop.public.orders {"id": 7, "customer": "c1", "day": "2020-05-17", "price": 40}
= falls
{"customer": "c2", "start_price": 8, "bottom_price": 2, "final_price": 6, "bottom_day": "2020-05-16", "days": 4}
= steps
{"id": 1, "number": null, "name": null, "low": null, "total": null}
{"id": 2, "number": null, "name": null, "low": null, "total": null}
{"id": 4, "number": null, "name": null, "low": null, "total": null}
{"id": 6, "number": null, "name": null, "low": null, "total": null}
{"id": 7, "number": null, "name": null, "low": null, "total": null}
{"id": 3, "number": 1, "name": "A", "low": 2, "total": 8}
{"id": 5, "number": 1, "name": "B", "low": 2, "total": 12}
{"id": 9, "number": 1, "name": "B", "low": 2, "total": 14}
{"id": 8, "number": 1, "name": "C", "low": 2, "total": 14}

-- A row moves to the other customer, another leaves.
TICK
+ shop.public.orders {"id": 8, "customer": "c1", "day": "2020-05-18", "price": 60}
- shop.public.orders {"id": 9}
= falls
{"customer": "c1", "start_price": 200, "bottom_price": 40, "final_price": 60, "bottom_day": "2020-05-17", "days": 5}
