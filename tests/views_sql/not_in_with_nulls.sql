-- NOT IN with NULLs on either side, of one column and of two, alone and correlated.

TABLE shop.public.a (id BIGINT, k INT, s STRING) KEY (id);
TABLE shop.public.c (k INT, s STRING);

VIEW one AS
SELECT id FROM shop.a WHERE k NOT IN (SELECT k FROM shop.c);

VIEW two AS
SELECT id FROM shop.a WHERE (k, s) NOT IN (SELECT k, s FROM shop.c);

VIEW value AS
SELECT id, k NOT IN (SELECT k FROM shop.c) x, (k, s) IN (SELECT k, s FROM shop.c) y, 1 IN (SELECT k FROM shop.c) z FROM shop.a;

VIEW correlated AS
SELECT id FROM shop.a WHERE k NOT IN (SELECT k FROM shop.c WHERE c.s = a.s);

VIEW never AS
SELECT id FROM shop.a WHERE 1 NOT IN (SELECT k FROM shop.c WHERE s = 'x');

TICK
+ shop.public.a {"id":1,"k":1,"s":"x"}
+ shop.public.a {"id":2,"k":null,"s":"x"}
+ shop.public.a {"id":3,"k":3,"s":null}
+ shop.public.a {"id":4,"k":null,"s":null}
= one
{"id":1}
{"id":2}
{"id":3}
{"id":4}
= two
{"id":1}
{"id":2}
{"id":3}
{"id":4}
= value
{"id":1,"x":true,"y":false,"z":false}
{"id":2,"x":true,"y":false,"z":false}
{"id":3,"x":true,"y":false,"z":false}
{"id":4,"x":true,"y":false,"z":false}
= correlated
{"id":1}
{"id":2}
{"id":3}
{"id":4}
= never
{"id":1}
{"id":2}
{"id":3}
{"id":4}

TICK
+ shop.public.c {"k":1,"s":"x"}
+ shop.public.c {"k":2,"s":null}
= one
{"id":3}
= two
{"id":3}
= value
{"id":1,"x":false,"y":true,"z":true}
{"id":2,"x":null,"y":null,"z":true}
{"id":3,"x":true,"y":false,"z":true}
{"id":4,"x":null,"y":null,"z":true}
= correlated
{"id":3}
{"id":4}
= never

TICK
+ shop.public.c {"k":null,"s":"x"}
+ shop.public.a {"id":5,"k":9,"s":"y"}
= one
= two
{"id":5}
= value
{"id":1,"x":false,"y":true,"z":true}
{"id":2,"x":null,"y":null,"z":true}
{"id":3,"x":null,"y":null,"z":true}
{"id":4,"x":null,"y":null,"z":true}
{"id":5,"x":null,"y":false,"z":true}
= correlated
{"id":3}
{"id":4}
{"id":5}
= never

TICK
- shop.public.c {"k":2,"s":null}
- shop.public.c {"k":1,"s":"x"}
+ shop.public.a {"id":1,"k":3,"s":"x"}
= one
= two
{"id":5}
= value
{"id":1,"x":null,"y":null,"z":null}
{"id":2,"x":null,"y":null,"z":null}
{"id":3,"x":null,"y":null,"z":null}
{"id":4,"x":null,"y":null,"z":null}
{"id":5,"x":null,"y":false,"z":null}
= correlated
{"id":3}
{"id":4}
{"id":5}
= never

TICK
- shop.public.c {"k":null,"s":"x"}
+ shop.public.c {"k":null,"s":null}
+ shop.public.c {"k":null,"s":null}
= one
= two
= value
{"id":1,"x":null,"y":null,"z":null}
{"id":2,"x":null,"y":null,"z":null}
{"id":3,"x":null,"y":null,"z":null}
{"id":4,"x":null,"y":null,"z":null}
{"id":5,"x":null,"y":null,"z":null}
= correlated
{"id":1}
{"id":2}
{"id":3}
{"id":4}
{"id":5}
= never
{"id":1}
{"id":2}
{"id":3}
{"id":4}
{"id":5}

TICK
- shop.public.c {"k":null,"s":null}
- shop.public.c {"k":null,"s":null}
- shop.public.a {"id":4}
= one
{"id":1}
{"id":2}
{"id":3}
{"id":5}
= two
{"id":1}
{"id":2}
{"id":3}
{"id":5}
= value
{"id":1,"x":true,"y":false,"z":false}
{"id":2,"x":true,"y":false,"z":false}
{"id":3,"x":true,"y":false,"z":false}
{"id":5,"x":true,"y":false,"z":false}
= correlated
{"id":1}
{"id":2}
{"id":3}
{"id":5}
= never
{"id":1}
{"id":2}
{"id":3}
{"id":5}
