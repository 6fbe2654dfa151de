-- Home timelines: posts of those one follows; unfollowing and deleting take them away, in one
-- tick, for a star with many followers as for anyone.

TABLE net.public.posts (id BIGINT, author STRING, text STRING) KEY (id);
TABLE net.public.follows (follower STRING, author STRING) KEY (follower, author);

VIEW timeline KEY (follower, id) AS
SELECT f.follower, p.id, p.author, p.text
FROM net.follows f JOIN net.posts p ON p.author = f.author;

VIEW newest KEY (follower) AS
SELECT follower, id, text FROM (
    SELECT *, row_number() OVER (PARTITION BY follower ORDER BY id DESC) AS n FROM timeline)
WHERE n = 1;

TICK
+ net.public.follows {"follower":"ann","author":"star"}
+ net.public.follows {"follower":"bob","author":"star"}
+ net.public.follows {"follower":"bob","author":"ann"}
+ net.public.posts {"id":1,"author":"star","text":"hello"}
+ net.public.posts {"id":2,"author":"ann","text":"hi bob"}
= timeline
{"follower":"ann","id":1,"author":"star","text":"hello"}
{"follower":"bob","id":1,"author":"star","text":"hello"}
{"follower":"bob","id":2,"author":"ann","text":"hi bob"}
= newest
{"follower":"ann","id":1,"text":"hello"}
{"follower":"bob","id":2,"text":"hi bob"}

TICK
+ net.public.posts {"id":3,"author":"star","text":"again"}
- net.public.follows {"follower":"bob","author":"ann"}
= timeline
{"follower":"ann","id":1,"author":"star","text":"hello"}
{"follower":"ann","id":3,"author":"star","text":"again"}
{"follower":"bob","id":1,"author":"star","text":"hello"}
{"follower":"bob","id":3,"author":"star","text":"again"}
= newest
{"follower":"ann","id":3,"text":"again"}
{"follower":"bob","id":3,"text":"again"}

TICK
- net.public.posts {"id":3}
+ net.public.follows {"follower":"cy","author":"star"}
= timeline
{"follower":"ann","id":1,"author":"star","text":"hello"}
{"follower":"bob","id":1,"author":"star","text":"hello"}
{"follower":"cy","id":1,"author":"star","text":"hello"}
= newest
{"follower":"ann","id":1,"text":"hello"}
{"follower":"bob","id":1,"text":"hello"}
{"follower":"cy","id":1,"text":"hello"}

TICK
+ net.public.posts {"id":1,"author":"star","text":"hello, edited"}
= timeline
{"follower":"ann","id":1,"author":"star","text":"hello, edited"}
{"follower":"bob","id":1,"author":"star","text":"hello, edited"}
{"follower":"cy","id":1,"author":"star","text":"hello, edited"}
= newest
{"follower":"ann","id":1,"text":"hello, edited"}
{"follower":"bob","id":1,"text":"hello, edited"}
{"follower":"cy","id":1,"text":"hello, edited"}
