-- A stream enriched from a table that changes: an activity carries the person as known now.

STREAM activities (id BIGINT, person_id BIGINT, action STRING);
TABLE app.public.people (id BIGINT, name STRING, born INT) KEY (id);

VIEW enriched AS
SELECT a.id, a.action, p.name, p.born FROM activities a LEFT JOIN app.people p ON p.id = a.person_id;

VIEW by_decade KEY (decade) AS
SELECT p.born div 10 * 10 AS decade, count(*) AS actions
FROM activities a JOIN app.people p ON p.id = a.person_id GROUP BY p.born div 10 * 10;

TICK
+ app.public.people {"id":1,"name":"Ann","born":1990}
+ activities {"id":1,"person_id":1,"action":"view"}
+ activities {"id":2,"person_id":2,"action":"buy"}
= enriched
{"id":1,"action":"view","name":"Ann","born":1990,"count":1}
{"id":2,"action":"buy","name":null,"born":null,"count":1}
= by_decade
{"decade":1990,"actions":1}

TICK
+ app.public.people {"id":2,"name":"Bob","born":1985}
+ app.public.people {"id":1,"name":"Anna","born":1990}
= enriched
{"id":1,"action":"view","name":"Anna","born":1990,"count":1}
{"id":2,"action":"buy","name":"Bob","born":1985,"count":1}
= by_decade
{"decade":1980,"actions":1}
{"decade":1990,"actions":1}

TICK
- app.public.people {"id":1}
+ activities {"id":3,"person_id":2,"action":"view"}
= enriched
{"id":1,"action":"view","name":null,"born":null,"count":1}
{"id":2,"action":"buy","name":"Bob","born":1985,"count":1}
{"id":3,"action":"view","name":"Bob","born":1985,"count":1}
= by_decade
{"decade":1980,"actions":2}
