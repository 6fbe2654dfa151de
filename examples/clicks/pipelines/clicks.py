"""Searches and the clicks they led to: two streams joined within a minute, either side first.

The question is how often a search leads to a click. A search without one must count too, and it
is one only when its minute is over, by the time of the events: `watermark('searches', 'clicks')`
is the moment up to which both streams are complete.
"""

import tailrace as tr

# Rows may come 10 seconds out of order. Half an hour after the newest ones nothing is corrected
# any more, and what was joined leaves the state. Later rows go to searches.late and clicks.late.
searches = tr.topic(
    "searches",
    schema="id BIGINT, visitor STRING, term STRING, at TIMESTAMP",
    time="at",
    watermark="10 seconds",
    idle="20 seconds",
    lateness="30 minutes",
    late="side",
    keep="30 minutes",
)
clicks = tr.topic(
    "clicks",
    schema="id BIGINT, search_id BIGINT, place INT, at TIMESTAMP",
    time="at",
    watermark="10 seconds",
    idle="20 seconds",
    lateness="30 minutes",
    late="side",
    keep="30 minutes",
)

# One row for every search: at once when it is clicked on, else when its minute is over. A click
# that comes still later than that, but not by half an hour, corrects it.
outcomes = tr.view(
    "outcomes",
    """
    SELECT s.id, s.term, s.at, count(c.id) AS clicks, min(c.place) AS best_place
    FROM searches s LEFT JOIN clicks c ON c.search_id = s.id
        AND c.at BETWEEN s.at AND s.at + INTERVAL '1' MINUTE
    GROUP BY s.id, s.term, s.at
    HAVING count(c.id) > 0
        OR s.at < watermark('searches', 'clicks') - INTERVAL '1' MINUTE
    """,
    key=["id", "term", "at"],
)

# Of searches whose minute is over alone: those that are clicked on are known sooner than those
# that are not, and a rate of what is known would be too good.
click_through = tr.view(
    "click_through",
    """
    SELECT term, count(*) AS searches, count_if(clicks > 0) AS clicked,
           count_if(clicks = 0) AS without_click, count_if(clicks > 0) / count(*) AS rate
    FROM outcomes
    WHERE at < watermark('searches', 'clicks') - INTERVAL '1' MINUTE
    GROUP BY term
    """,
    key="term",
)

# The other side: clicks whose search nobody has seen. Robots, or a writer that loses records.
strays = tr.view(
    "strays",
    """
    SELECT c.id, c.search_id, c.at
    FROM searches s RIGHT JOIN clicks c ON c.search_id = s.id
        AND c.at BETWEEN s.at AND s.at + INTERVAL '1' MINUTE
    WHERE s.id IS NULL AND c.at < watermark('searches', 'clicks') - INTERVAL '1' MINUTE
    """,
    key="id",
)

# A stream with itself: the same visitor asks for something else within half a minute.
rephrased = tr.view(
    "rephrased",
    """
    SELECT a.term, b.term AS then_term, count(*) AS times
    FROM searches a JOIN searches b ON b.visitor = a.visitor AND b.term <> a.term
        AND b.at > a.at AND b.at - a.at <= INTERVAL '30' SECOND
    GROUP BY a.term, b.term
    """,
    key=["term", "then_term"],
)
