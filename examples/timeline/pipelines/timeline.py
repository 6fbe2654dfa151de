"""Home timelines: the posts of everybody one follows, kept up to date post by post.

It is a join of two tables that both change. A post, an edit and a deleted post change the timelines
of all followers; following somebody brings their old posts along, unfollowing takes them away.
"""

import tailrace as tr
from tailrace import sources

net = sources.SQLite("net", path="network.db", tables=["posts", "follows"])

timeline = tr.view(
    "timeline",
    """
    SELECT f.reader, p.id, p.author, p.words, p.posted_at
    FROM net.follows f JOIN net.posts p ON p.author = f.author
    """,
    key=["reader", "id"],
)

# What the page shows: the ten newest of each reader. Their numbers are not part of it: with them
# a new post would change all ten rows, without them one comes and one leaves.
home = tr.view(
    "home",
    """
    SELECT reader, id, author, words FROM (
        SELECT *, row_number() OVER (PARTITION BY reader ORDER BY id DESC) AS n FROM timeline)
    WHERE n <= 10
    """,
    key=["reader", "id"],
)

# How far a post of theirs goes.
reach = tr.view(
    "reach",
    "SELECT author, count(*) AS followers FROM net.follows GROUP BY author",
    key="author",
)
