"""Card testing, orders that nobody pays, and what both amount to.

A pattern is a question about what follows what, asked of each card or order by itself and
answered once, when no later row can change the answer.
"""

import tailrace as tr

# Rows may come 10 seconds out of order; what comes later than that goes to payments.late.
payments = tr.topic(
    "payments",
    schema="id BIGINT, card_id BIGINT, amount DECIMAL(10,2), paid_at TIMESTAMP",
    time="paid_at",
    watermark="10 seconds",
    idle="20 seconds",
    late="side",
)
orders = tr.topic(
    "orders",
    schema="order_id BIGINT, what STRING, at TIMESTAMP",
    time="at",
    watermark="10 seconds",
    idle="20 seconds",
    late="side",
)

# A thief who has stolen a card tries small amounts first. At least three of them one after the other,
# then a large one, all within five minutes.
card_testing = tr.pattern(
    "card_testing",
    payments,
    key="card_id",
    order_by="paid_at",
    within="5 minutes",
    match="probe{3,} theft",
    define={"probe": "amount < 2", "theft": "amount > 500"},
    select={
        "probes": "count(probe)",
        "stolen": "last(theft.amount)",
        "began_at": "first(probe.paid_at)",
        "payments": "collect_list(id)",
    },
    timeouts=True,
)

# Something that does not happen is an event, too: reported when its ten minutes are over.
unpaid = tr.pattern(
    "unpaid",
    orders,
    key="order_id",
    order_by="at",
    within="10 minutes",
    match="placed -> !(paid | cancelled)",
    define={
        "placed": "what = 'placed'",
        "paid": "what = 'paid'",
        "cancelled": "what = 'cancelled'",
    },
    select={"placed_at": "placed.at"},
)

# What a pattern reports is a stream like any other.
thefts = tr.view(
    "thefts",
    """
    SELECT card_id, count(*) AS thefts, sum(stolen) AS stolen, max(probes) AS most_probes
    FROM card_testing
    WHERE op = 'match'
    GROUP BY card_id
    """,
    key="card_id",
)
