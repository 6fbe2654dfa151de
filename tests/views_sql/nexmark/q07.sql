-- the highest bid of every ten seconds
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid b
JOIN (
  SELECT max(price) AS most, window.start AS start_time, window.end AS end_time
  FROM bid GROUP BY window(date_time, '10 seconds')
) m ON b.price = m.most AND b.date_time >= m.start_time AND b.date_time < m.end_time
