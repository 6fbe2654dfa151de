-- A table without a key, and a stream: rows count as often as they are there.

TABLE shop.public.log (word STRING, n INT);
STREAM clicks (user STRING, at TIMESTAMP_NTZ);

VIEW words AS
SELECT word FROM shop.log;

VIEW clicks_per_user AS
SELECT user, count(*) AS clicks, max(at) AS latest FROM clicks GROUP BY user;

TICK
+ shop.public.log {"word":"a","n":1}
+ shop.public.log {"word":"a","n":2}
+ shop.public.log {"word":"b","n":null}
+ clicks {"user":"u","at":"2026-01-01T10:00:00"}
= words
{"word":"a","count":2}
{"word":"b","count":1}
= clicks_per_user
{"user":"u","clicks":1,"latest":"2026-01-01T10:00:00"}

TICK
- shop.public.log {"word":"a","n":2}
- shop.public.log {"word":"b","n":null}
+ clicks {"user":"u","at":"2026-01-01T09:00:00"}
+ clicks {"user":"v","at":"2026-01-01T09:00:00"}
= words
{"word":"a","count":1}
= clicks_per_user
{"user":"u","clicks":2,"latest":"2026-01-01T10:00:00"}
{"user":"v","clicks":1,"latest":"2026-01-01T09:00:00"}
