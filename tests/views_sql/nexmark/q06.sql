-- the average selling price of each seller's last ten closed auctions
SELECT seller, date_time, id,
       avg(final) OVER (PARTITION BY seller ORDER BY date_time, id
                        ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT a.id, a.seller, b.price AS final, b.date_time,
         row_number() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.date_time) AS place
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
) q
WHERE place <= 1
