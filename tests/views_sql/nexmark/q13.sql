-- every bid with the value of its auction in another table
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side_input s ON b.auction % 100 = s.key
