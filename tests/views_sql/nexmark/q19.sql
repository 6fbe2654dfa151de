-- the ten highest bids of each auction
SELECT auction, bidder, price, channel, url, date_time, extra, place
FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS place
  FROM bid
) q
WHERE place <= 10
