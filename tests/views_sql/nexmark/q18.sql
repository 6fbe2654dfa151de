-- the last bid of each bidder in each auction
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place
  FROM bid
) q
WHERE place <= 1
