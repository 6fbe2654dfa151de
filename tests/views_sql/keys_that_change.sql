-- Keys change on every side of every join in one transaction; equal rows of tables without a
-- key come, go and are updated.

TABLE shop.public.a (id BIGINT, k INT, s STRING) KEY (id);
TABLE shop.public.b (id BIGINT, k INT, n INT) KEY (id);
TABLE shop.public.c (k INT, n INT);

VIEW inner_join AS
SELECT a.id, b.id y, c.n FROM shop.a JOIN shop.b ON a.k = b.k JOIN shop.c ON c.k = b.k;

VIEW full_join AS
SELECT a.id, b.id y FROM shop.a FULL JOIN shop.b ON a.k = b.k;

VIEW left_anti AS
SELECT a.id FROM shop.a LEFT ANTI JOIN shop.b ON a.k = b.k;

VIEW self_join AS
SELECT x.id, y.id other FROM shop.a x LEFT JOIN shop.a y ON x.k = y.id;

VIEW bag AS
SELECT k, n FROM shop.c;

VIEW bag_self AS
SELECT x.k, y.n FROM shop.c x JOIN shop.c y ON x.k = y.k;

VIEW bag_distinct AS
SELECT DISTINCT k, n FROM shop.c;

VIEW bag_except AS
SELECT k, n FROM shop.c EXCEPT ALL SELECT k, n FROM shop.b;

TICK
+ shop.public.a {"id":1,"k":1,"s":"x"}
+ shop.public.a {"id":2,"k":2,"s":"y"}
+ shop.public.b {"id":1,"k":1,"n":5}
+ shop.public.b {"id":2,"k":2,"n":6}
+ shop.public.c {"k":1,"n":5}
+ shop.public.c {"k":1,"n":5}
+ shop.public.c {"k":2,"n":6}
= inner_join
{"id":1,"y":1,"n":5,"count":2}
{"id":2,"y":2,"n":6,"count":1}
= full_join
{"id":1,"y":1,"count":1}
{"id":2,"y":2,"count":1}
= left_anti
= self_join
{"id":1,"other":1}
{"id":2,"other":2}
= bag
{"k":1,"n":5,"count":2}
{"k":2,"n":6,"count":1}
= bag_self
{"k":1,"n":5,"count":4}
{"k":2,"n":6,"count":1}
= bag_distinct
{"k":1,"n":5}
{"k":2,"n":6}
= bag_except
{"k":1,"n":5,"count":1}

TICK
- shop.public.a {"id":1}
+ shop.public.a {"id":3,"k":1,"s":"x"}
- shop.public.b {"id":1}
+ shop.public.b {"id":4,"k":1,"n":5}
- shop.public.c {"k":1,"n":5}
+ shop.public.c {"k":1,"n":7}
= inner_join
{"id":2,"y":2,"n":6,"count":1}
{"id":3,"y":4,"n":5,"count":1}
{"id":3,"y":4,"n":7,"count":1}
= full_join
{"id":2,"y":2,"count":1}
{"id":3,"y":4,"count":1}
= left_anti
= self_join
{"id":2,"other":2}
{"id":3,"other":null}
= bag
{"k":1,"n":5,"count":1}
{"k":1,"n":7,"count":1}
{"k":2,"n":6,"count":1}
= bag_self
{"k":1,"n":5,"count":2}
{"k":1,"n":7,"count":2}
{"k":2,"n":6,"count":1}
= bag_distinct
{"k":1,"n":5}
{"k":1,"n":7}
{"k":2,"n":6}
= bag_except
{"k":1,"n":7,"count":1}

TICK
+ shop.public.a {"id":2,"k":1,"s":"y"}
+ shop.public.a {"id":3,"k":2,"s":"x"}
+ shop.public.b {"id":2,"k":1,"n":6}
+ shop.public.b {"id":4,"k":2,"n":5}
- shop.public.c {"k":2,"n":6}
+ shop.public.c {"k":2,"n":5}
- shop.public.c {"k":1,"n":5}
- shop.public.c {"k":1,"n":7}
+ shop.public.c {"k":2,"n":5}
= inner_join
{"id":3,"y":4,"n":5,"count":2}
= full_join
{"id":2,"y":2,"count":1}
{"id":3,"y":4,"count":1}
= left_anti
= self_join
{"id":2,"other":null}
{"id":3,"other":2}
= bag
{"k":2,"n":5,"count":2}
= bag_self
{"k":2,"n":5,"count":4}
= bag_distinct
{"k":2,"n":5}
= bag_except
{"k":2,"n":5,"count":1}

TICK
- shop.public.a {"id":2}
+ shop.public.a {"id":2,"k":null,"s":"y"}
+ shop.public.b {"id":2,"k":null,"n":null}
- shop.public.c {"k":2,"n":5}
+ shop.public.c {"k":null,"n":null}
+ shop.public.c {"k":null,"n":null}
= inner_join
{"id":3,"y":4,"n":5,"count":1}
= full_join
{"id":2,"y":null,"count":1}
{"id":3,"y":4,"count":1}
{"id":null,"y":2,"count":1}
= left_anti
{"id":2}
= self_join
{"id":2,"other":null}
{"id":3,"other":2}
= bag
{"k":2,"n":5,"count":1}
{"k":null,"n":null,"count":2}
= bag_self
{"k":2,"n":5,"count":1}
= bag_distinct
{"k":2,"n":5}
{"k":null,"n":null}
= bag_except
{"k":null,"n":null,"count":1}
