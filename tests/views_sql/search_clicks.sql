-- Two streams joined within a window, either side first; searches without a click and clicks
-- without a search are reported when their window closes.

STREAM searches (id BIGINT, at TIMESTAMP);
STREAM clicks (id BIGINT, search_id BIGINT, at TIMESTAMP);

VIEW clicked AS
SELECT s.id, count(c.id) AS clicks
FROM searches s JOIN clicks c ON c.search_id = s.id
    AND c.at >= s.at AND c.at <= s.at + INTERVAL '10' MINUTE
GROUP BY s.id;

VIEW no_click KEY (id) AS
SELECT s.id FROM searches s
WHERE s.at <= now() - INTERVAL '10' MINUTE
  AND NOT EXISTS (SELECT 1 FROM clicks c WHERE c.search_id = s.id
                  AND c.at >= s.at AND c.at <= s.at + INTERVAL '10' MINUTE);

VIEW stray_click KEY (id) AS
SELECT c.id FROM clicks c
WHERE c.at <= now() - INTERVAL '10' MINUTE
  AND NOT EXISTS (SELECT 1 FROM searches s WHERE s.id = c.search_id
                  AND s.at <= c.at AND s.at >= c.at - INTERVAL '10' MINUTE);

VIEW rate KEY (searches) AS
SELECT count(*) AS searches, count(c.id) AS clicked, count(c.id) / count(*) AS rate
FROM (SELECT DISTINCT id FROM searches) s LEFT JOIN clicked c ON c.id = s.id;

TICK 2026-01-01T10:01:00Z
+ searches {"id":1,"at":"2026-01-01T10:00:00Z"}
+ clicks {"id":11,"search_id":1,"at":"2026-01-01T10:00:30Z"}
+ clicks {"id":12,"search_id":2,"at":"2026-01-01T10:02:00Z"}
= clicked
{"id":1,"clicks":1}
= no_click
= stray_click
= rate
{"searches":1,"clicked":1,"rate":1.0}

TICK 2026-01-01T10:03:00Z
+ searches {"id":2,"at":"2026-01-01T10:01:30Z"}
+ searches {"id":3,"at":"2026-01-01T10:02:30Z"}
+ clicks {"id":13,"search_id":1,"at":"2026-01-01T10:11:00Z"}
= clicked
{"id":1,"clicks":1}
{"id":2,"clicks":1}
= no_click
= stray_click
= rate
{"searches":3,"clicked":2,"rate":0.6666666666666666}

TICK 2026-01-01T10:12:30Z
= clicked
{"id":1,"clicks":1}
{"id":2,"clicks":1}
= no_click
{"id":3}
= stray_click
= rate
{"searches":3,"clicked":2,"rate":0.6666666666666666}

TICK 2026-01-01T10:13:00Z
+ clicks {"id":14,"search_id":3,"at":"2026-01-01T10:12:29Z"}
= clicked
{"id":1,"clicks":1}
{"id":2,"clicks":1}
{"id":3,"clicks":1}
= no_click
= stray_click
= rate
{"searches":3,"clicked":3,"rate":1.0}

TICK 2026-01-01T10:21:00Z
= stray_click
{"id":13}
= rate
{"searches":3,"clicked":3,"rate":1.0}

TICK 2026-01-01T10:21:01Z
+ searches {"id":1,"at":"2026-01-01T10:01:01Z"}
= clicked
{"id":1,"clicks":2}
{"id":2,"clicks":1}
{"id":3,"clicks":1}
= stray_click
= rate
{"searches":3,"clicked":3,"rate":1.0}
