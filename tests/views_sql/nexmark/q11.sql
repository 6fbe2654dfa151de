-- bids of each bidder in each session
SELECT bidder, count(*) AS bids, session_window.start AS start_time, session_window.end AS end_time
FROM bid GROUP BY bidder, session_window(date_time, '10 seconds')
