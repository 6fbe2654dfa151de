-- Windows that overlap and windows that end by themselves; a late row moves what it touches.

TABLE shop.public.visits (id BIGINT, person STRING, at TIMESTAMP_NTZ) KEY (id);

VIEW hopping KEY (start) AS
SELECT window.start AS start, count(*) AS visits
FROM shop.visits GROUP BY window(at, '10 minutes', '5 minutes');

VIEW sessions KEY (person, start) AS
SELECT person, session_window.start AS start, session_window.end AS end, count(*) AS visits
FROM shop.visits GROUP BY session_window(at, '5 minutes'), person;

TICK
+ shop.public.visits {"id":1,"person":"ann","at":"2026-01-01T10:03:00"}
+ shop.public.visits {"id":2,"person":"ann","at":"2026-01-01T10:12:00"}
+ shop.public.visits {"id":3,"person":"bob","at":"2026-01-01T10:04:00"}
+ shop.public.visits {"id":4,"person":"bob","at":null}
= hopping
{"start":"2026-01-01T09:55:00","visits":2}
{"start":"2026-01-01T10:00:00","visits":2}
{"start":"2026-01-01T10:05:00","visits":1}
{"start":"2026-01-01T10:10:00","visits":1}
= sessions
{"person":"ann","start":"2026-01-01T10:03:00","end":"2026-01-01T10:08:00","visits":1}
{"person":"ann","start":"2026-01-01T10:12:00","end":"2026-01-01T10:17:00","visits":1}
{"person":"bob","start":"2026-01-01T10:04:00","end":"2026-01-01T10:09:00","visits":1}

TICK
+ shop.public.visits {"id":5,"person":"ann","at":"2026-01-01T10:07:30"}
= hopping
{"start":"2026-01-01T09:55:00","visits":2}
{"start":"2026-01-01T10:00:00","visits":3}
{"start":"2026-01-01T10:05:00","visits":2}
{"start":"2026-01-01T10:10:00","visits":1}
= sessions
{"person":"ann","start":"2026-01-01T10:03:00","end":"2026-01-01T10:17:00","visits":3}
{"person":"bob","start":"2026-01-01T10:04:00","end":"2026-01-01T10:09:00","visits":1}

TICK
- shop.public.visits {"id":5}
- shop.public.visits {"id":3}
= hopping
{"start":"2026-01-01T09:55:00","visits":1}
{"start":"2026-01-01T10:00:00","visits":1}
{"start":"2026-01-01T10:05:00","visits":1}
{"start":"2026-01-01T10:10:00","visits":1}
= sessions
{"person":"ann","start":"2026-01-01T10:03:00","end":"2026-01-01T10:08:00","visits":1}
{"person":"ann","start":"2026-01-01T10:12:00","end":"2026-01-01T10:17:00","visits":1}
