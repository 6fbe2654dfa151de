-- FULL JOIN USING in a chain, NATURAL and parenthesised joins, grouping sets with duplicates
-- and in each other, windows over groups, shadowed names.

TABLE shop.public.a (id BIGINT, k INT, s STRING) KEY (id);
TABLE shop.public.b (id BIGINT, k INT, n INT) KEY (id);
TABLE shop.public.c (k INT, m INT);

VIEW chain AS
SELECT k, a.id x, b.id y, c.m FROM shop.a FULL JOIN shop.b USING (k) FULL JOIN shop.c USING (k);

VIEW alike AS
SELECT id, k, s, n FROM shop.a NATURAL JOIN shop.b;

VIEW bracketed AS
SELECT a.id, b.id y, c.m FROM shop.a LEFT JOIN (shop.b JOIN shop.c ON b.k = c.k) ON a.k = b.k;

VIEW twice AS
SELECT k, s, count(*) n FROM shop.a GROUP BY GROUPING SETS ((k, s), (k), (k), ()) HAVING count(*) > 0;

VIEW nested AS
SELECT k, s, grouping_id(k, s) g, count(*) n FROM shop.a GROUP BY GROUPING SETS (ROLLUP(k, s), (s)) HAVING count(*) > 0;

VIEW over_groups AS
SELECT k, sum(n) t, rank() OVER (ORDER BY sum(n) DESC NULLS LAST) r, sum(sum(n)) OVER () w FROM shop.b GROUP BY k;

VIEW shadowed AS
WITH x AS (SELECT k FROM shop.a), y AS (WITH x AS (SELECT k, n FROM shop.b) SELECT k, n FROM x) SELECT x.k, y.n FROM x JOIN y ON x.k = y.k;

VIEW grouped_by_subquery AS
SELECT (SELECT count(*) FROM shop.b WHERE b.k = a.k) c, count(*) n FROM shop.a GROUP BY 1;

TICK
+ shop.public.a {"id":1,"k":1,"s":"x"}
+ shop.public.a {"id":2,"k":1,"s":"y"}
+ shop.public.a {"id":3,"k":null,"s":"x"}
+ shop.public.b {"id":1,"k":1,"n":5}
+ shop.public.b {"id":2,"k":2,"n":null}
+ shop.public.c {"k":1,"m":7}
+ shop.public.c {"k":3,"m":8}
= chain
{"k":1,"x":1,"y":1,"m":7,"count":1}
{"k":1,"x":2,"y":1,"m":7,"count":1}
{"k":2,"x":null,"y":2,"m":null,"count":1}
{"k":3,"x":null,"y":null,"m":8,"count":1}
{"k":null,"x":3,"y":null,"m":null,"count":1}
= alike
{"id":1,"k":1,"s":"x","n":5}
= bracketed
{"id":1,"y":1,"m":7,"count":1}
{"id":2,"y":1,"m":7,"count":1}
{"id":3,"y":null,"m":null,"count":1}
= twice
{"k":1,"s":"x","n":1,"count":1}
{"k":1,"s":"y","n":1,"count":1}
{"k":1,"s":null,"n":2,"count":2}
{"k":null,"s":"x","n":1,"count":1}
{"k":null,"s":null,"n":1,"count":2}
{"k":null,"s":null,"n":3,"count":1}
= nested
{"k":1,"s":"x","g":0,"n":1,"count":1}
{"k":1,"s":"y","g":0,"n":1,"count":1}
{"k":1,"s":null,"g":1,"n":2,"count":1}
{"k":null,"s":"x","g":0,"n":1,"count":1}
{"k":null,"s":"x","g":2,"n":2,"count":1}
{"k":null,"s":"y","g":2,"n":1,"count":1}
{"k":null,"s":null,"g":1,"n":1,"count":1}
{"k":null,"s":null,"g":3,"n":3,"count":1}
= over_groups
{"k":1,"t":5,"r":1,"w":5}
{"k":2,"t":null,"r":2,"w":5}
= shadowed
{"k":1,"n":5,"count":2}
= grouped_by_subquery
{"c":0,"n":1}
{"c":1,"n":2}

TICK
+ shop.public.b {"id":3,"k":3,"n":1}
+ shop.public.a {"id":1,"k":3,"s":"x"}
+ shop.public.c {"k":1,"m":7}
= chain
{"k":1,"x":2,"y":1,"m":7,"count":2}
{"k":2,"x":null,"y":2,"m":null,"count":1}
{"k":3,"x":1,"y":3,"m":8,"count":1}
{"k":null,"x":3,"y":null,"m":null,"count":1}
= alike
= bracketed
{"id":1,"y":3,"m":8,"count":1}
{"id":2,"y":1,"m":7,"count":2}
{"id":3,"y":null,"m":null,"count":1}
= twice
{"k":1,"s":"y","n":1,"count":1}
{"k":1,"s":null,"n":1,"count":2}
{"k":3,"s":"x","n":1,"count":1}
{"k":3,"s":null,"n":1,"count":2}
{"k":null,"s":"x","n":1,"count":1}
{"k":null,"s":null,"n":1,"count":2}
{"k":null,"s":null,"n":3,"count":1}
= nested
{"k":1,"s":"y","g":0,"n":1,"count":1}
{"k":1,"s":null,"g":1,"n":1,"count":1}
{"k":3,"s":"x","g":0,"n":1,"count":1}
{"k":3,"s":null,"g":1,"n":1,"count":1}
{"k":null,"s":"x","g":0,"n":1,"count":1}
{"k":null,"s":"x","g":2,"n":2,"count":1}
{"k":null,"s":"y","g":2,"n":1,"count":1}
{"k":null,"s":null,"g":1,"n":1,"count":1}
{"k":null,"s":null,"g":3,"n":3,"count":1}
= over_groups
{"k":1,"t":5,"r":1,"w":6}
{"k":2,"t":null,"r":3,"w":6}
{"k":3,"t":1,"r":2,"w":6}
= shadowed
{"k":1,"n":5,"count":1}
{"k":3,"n":1,"count":1}
= grouped_by_subquery
{"c":0,"n":1}
{"c":1,"n":2}

TICK
- shop.public.a {"id":2}
- shop.public.b {"id":1}
+ shop.public.a {"id":4,"k":2,"s":null}
- shop.public.c {"k":1,"m":7}
= chain
{"k":1,"x":null,"y":null,"m":7,"count":1}
{"k":2,"x":4,"y":2,"m":null,"count":1}
{"k":3,"x":1,"y":3,"m":8,"count":1}
{"k":null,"x":3,"y":null,"m":null,"count":1}
= alike
= bracketed
{"id":1,"y":3,"m":8,"count":1}
{"id":3,"y":null,"m":null,"count":1}
{"id":4,"y":null,"m":null,"count":1}
= twice
{"k":2,"s":null,"n":1,"count":3}
{"k":3,"s":"x","n":1,"count":1}
{"k":3,"s":null,"n":1,"count":2}
{"k":null,"s":"x","n":1,"count":1}
{"k":null,"s":null,"n":1,"count":2}
{"k":null,"s":null,"n":3,"count":1}
= nested
{"k":2,"s":null,"g":0,"n":1,"count":1}
{"k":2,"s":null,"g":1,"n":1,"count":1}
{"k":3,"s":"x","g":0,"n":1,"count":1}
{"k":3,"s":null,"g":1,"n":1,"count":1}
{"k":null,"s":"x","g":0,"n":1,"count":1}
{"k":null,"s":"x","g":2,"n":2,"count":1}
{"k":null,"s":null,"g":1,"n":1,"count":1}
{"k":null,"s":null,"g":2,"n":1,"count":1}
{"k":null,"s":null,"g":3,"n":3,"count":1}
= over_groups
{"k":2,"t":null,"r":2,"w":1}
{"k":3,"t":1,"r":1,"w":1}
= shadowed
{"k":2,"n":null,"count":1}
{"k":3,"n":1,"count":1}
= grouped_by_subquery
{"c":0,"n":1}
{"c":1,"n":2}
