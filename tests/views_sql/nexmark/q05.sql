-- the auctions with most bids in the last ten seconds, every two
WITH counted AS (
  SELECT auction, count(*) AS num, window.start AS start_time, window.end AS end_time
  FROM bid GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
)
SELECT c.auction, c.num, c.start_time
FROM counted c
JOIN (SELECT max(num) AS most, start_time, end_time FROM counted GROUP BY start_time, end_time) m
  ON c.start_time = m.start_time AND c.end_time = m.end_time AND c.num >= m.most
