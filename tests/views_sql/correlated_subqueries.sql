-- Correlated subqueries that are not a plain join: totals of nothing, HAVING, UNION, LATERAL,
-- two levels, inside aggregates and in the ON of outer joins.

TABLE shop.public.a (id BIGINT, k INT, s STRING) KEY (id);
TABLE shop.public.b (id BIGINT, k INT, n INT) KEY (id);
TABLE shop.public.c (k INT, n INT);

VIEW counted AS
SELECT id, (SELECT count(*) FROM shop.b WHERE b.k = a.k HAVING count(*) < 2) x, (SELECT c + 1 FROM (SELECT count(*) c FROM shop.b WHERE b.k = a.k) q) y FROM shop.a;

VIEW in_count AS
SELECT id FROM shop.a WHERE k IN (SELECT count(*) FROM shop.b WHERE b.k = a.k);

VIEW always AS
SELECT id FROM shop.a WHERE EXISTS (SELECT count(*) FROM shop.b WHERE b.k = a.k) AND NOT EXISTS (SELECT 1 FROM shop.b WHERE b.k = a.k HAVING count(*) > 1);

VIEW either AS
SELECT id FROM shop.a WHERE EXISTS (SELECT 1 FROM shop.b WHERE b.k = a.k UNION ALL SELECT 1 FROM shop.c WHERE c.k = a.k);

VIEW two_levels AS
SELECT id FROM shop.a WHERE EXISTS (SELECT 1 FROM shop.b WHERE b.k = a.k AND EXISTS (SELECT 1 FROM shop.c WHERE c.k = b.k AND c.n = a.id));

VIEW beside KEY (id) AS
SELECT a.id, t.c, t.m FROM shop.a LEFT JOIN LATERAL (SELECT count(*) c, max(n) m FROM shop.b WHERE b.k = a.k) t ON t.c > 0;

VIEW mixed AS
SELECT id, (SELECT sum(b.n + a.id) FROM shop.b WHERE b.k = a.k) x FROM shop.a;

VIEW inside AS
SELECT k, sum((SELECT count(*) FROM shop.b WHERE b.k = a.k)) x, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM shop.c WHERE c.k = a.k)) y FROM shop.a GROUP BY k;

VIEW outer_on AS
SELECT a.id, b.id y FROM shop.a LEFT JOIN shop.b ON a.k = b.k AND b.n IN (SELECT n FROM shop.c);

TICK
+ shop.public.a {"id":1,"k":1,"s":"x"}
+ shop.public.a {"id":2,"k":2,"s":"y"}
+ shop.public.a {"id":3,"k":null,"s":"x"}
+ shop.public.a {"id":4,"k":0,"s":null}
+ shop.public.b {"id":1,"k":1,"n":5}
+ shop.public.c {"k":1,"n":1}
+ shop.public.c {"k":2,"n":5}
= counted
{"id":1,"x":1,"y":2}
{"id":2,"x":0,"y":1}
{"id":3,"x":0,"y":1}
{"id":4,"x":0,"y":1}
= in_count
{"id":1}
{"id":4}
= always
{"id":1}
{"id":2}
{"id":3}
{"id":4}
= either
{"id":1}
{"id":2}
= two_levels
{"id":1}
= beside
{"id":1,"c":1,"m":5}
{"id":2,"c":null,"m":null}
{"id":3,"c":null,"m":null}
{"id":4,"c":null,"m":null}
= mixed
{"id":1,"x":6}
{"id":2,"x":null}
{"id":3,"x":null}
{"id":4,"x":null}
= inside
{"k":0,"x":0,"y":0}
{"k":1,"x":1,"y":1}
{"k":2,"x":0,"y":1}
{"k":null,"x":0,"y":0}
= outer_on
{"id":1,"y":1}
{"id":2,"y":null}
{"id":3,"y":null}
{"id":4,"y":null}

TICK
+ shop.public.b {"id":2,"k":1,"n":null}
+ shop.public.b {"id":3,"k":2,"n":7}
+ shop.public.c {"k":2,"n":2}
= counted
{"id":1,"x":null,"y":3}
{"id":2,"x":1,"y":2}
{"id":3,"x":0,"y":1}
{"id":4,"x":0,"y":1}
= in_count
{"id":4}
= always
{"id":2}
{"id":3}
{"id":4}
= either
{"id":1}
{"id":2}
= two_levels
{"id":1}
{"id":2}
= beside
{"id":1,"c":2,"m":5}
{"id":2,"c":1,"m":7}
{"id":3,"c":null,"m":null}
{"id":4,"c":null,"m":null}
= mixed
{"id":1,"x":6}
{"id":2,"x":9}
{"id":3,"x":null}
{"id":4,"x":null}
= inside
{"k":0,"x":0,"y":0}
{"k":1,"x":2,"y":1}
{"k":2,"x":1,"y":1}
{"k":null,"x":0,"y":0}
= outer_on
{"id":1,"y":1}
{"id":2,"y":null}
{"id":3,"y":null}
{"id":4,"y":null}

TICK
+ shop.public.b {"id":1,"k":2,"n":5}
+ shop.public.a {"id":4,"k":1,"s":"z"}
- shop.public.c {"k":2,"n":5}
= counted
{"id":1,"x":1,"y":2}
{"id":2,"x":null,"y":3}
{"id":3,"x":0,"y":1}
{"id":4,"x":1,"y":2}
= in_count
{"id":1}
{"id":2}
{"id":4}
= always
{"id":1}
{"id":3}
{"id":4}
= either
{"id":1}
{"id":2}
{"id":4}
= two_levels
{"id":1}
{"id":2}
= beside
{"id":1,"c":1,"m":null}
{"id":2,"c":2,"m":7}
{"id":3,"c":null,"m":null}
{"id":4,"c":1,"m":null}
= mixed
{"id":1,"x":null}
{"id":2,"x":16}
{"id":3,"x":null}
{"id":4,"x":null}
= inside
{"k":1,"x":2,"y":2}
{"k":2,"x":2,"y":1}
{"k":null,"x":0,"y":0}
= outer_on
{"id":1,"y":null}
{"id":2,"y":null}
{"id":3,"y":null}
{"id":4,"y":null}

TICK
- shop.public.b {"id":2}
- shop.public.b {"id":3}
- shop.public.a {"id":1}
+ shop.public.c {"k":null,"n":null}
= counted
{"id":2,"x":1,"y":2}
{"id":3,"x":0,"y":1}
{"id":4,"x":0,"y":1}
= in_count
= always
{"id":2}
{"id":3}
{"id":4}
= either
{"id":2}
{"id":4}
= two_levels
{"id":2}
= beside
{"id":2,"c":1,"m":5}
{"id":3,"c":null,"m":null}
{"id":4,"c":null,"m":null}
= mixed
{"id":2,"x":7}
{"id":3,"x":null}
{"id":4,"x":null}
= inside
{"k":1,"x":0,"y":1}
{"k":2,"x":1,"y":1}
{"k":null,"x":0,"y":0}
= outer_on
{"id":2,"y":null}
{"id":3,"y":null}
{"id":4,"y":null}
