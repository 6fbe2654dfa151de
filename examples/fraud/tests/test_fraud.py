"""The project's own tests: `tailrace test`."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

START = datetime(2026, 11, 17, 12, tzinfo=UTC)


def paid(number: int, card: int, amount: str, seconds: float) -> dict:
    at = START + timedelta(seconds=seconds)
    return {"id": number, "card_id": card, "amount": Decimal(amount), "paid_at": at}


def order(number: int, what: str, minutes: float) -> dict:
    return {"order_id": number, "what": what, "at": START + timedelta(minutes=minutes)}


def fed(events, *rows: dict) -> None:
    """Let rows come one after the other, each in a tick of its own."""
    for row in rows:
        events.add(row)
        events.tick()
    events.tick()


def test_small_amounts_and_then_a_large_one_are_card_testing(tailrace_project) -> None:
    events = tailrace_project.events("card_testing")
    fed(
        events,
        paid(1, 7, "0.50", 0),
        paid(2, 7, "1.00", 20),
        paid(4, 7, "900.00", 60),
        paid(3, 7, "0.70", 52),  # late, but not too late
        paid(5, 8, "0.10", 200),
    )
    (theft,) = events.told["card_testing"]
    assert (theft["card_id"], theft["probes"], theft["stolen"]) == (7, 3, "900.00")
    assert theft["payments"] == [1, 2, 3, 4]


def test_two_small_amounts_are_none(tailrace_project) -> None:
    events = tailrace_project.events("card_testing")
    fed(events, paid(1, 7, "0.50", 0), paid(2, 7, "900.00", 60), paid(3, 8, "0.10", 1_000))
    assert events.told["card_testing"] == []


def test_what_begins_like_a_theft_and_ends_in_nothing_times_out(tailrace_project) -> None:
    events = tailrace_project.events("card_testing")
    fed(events, paid(1, 7, "0.50", 0), paid(2, 7, "0.60", 10), paid(3, 8, "50.00", 1_000))
    reached = [
        (row["op"], row["reached"], row["rows"]) for row in events.told["card_testing.timeouts"]
    ]
    assert reached == [("timeout", "probe", 2), ("timeout", "probe", 1)]


def test_an_order_that_nobody_pays_is_told_when_its_time_is_over(tailrace_project) -> None:
    events = tailrace_project.events("unpaid")
    fed(
        events,
        order(1, "placed", 0),
        order(2, "placed", 1),
        order(3, "placed", 1),
        order(2, "paid", 9),
        order(3, "cancelled", 9),
        order(4, "placed", 9.5),
    )
    assert events.told["unpaid"] == []
    fed(events, order(5, "placed", 10.5))
    assert [row["order_id"] for row in events.told["unpaid"]] == [1]


def test_thefts_are_added_up_by_card(tailrace_project) -> None:
    bank = tailrace_project.tables(
        {"card_testing": "op STRING, card_id BIGINT, probes BIGINT, stolen DECIMAL(10,2)"}
    )
    for probes, stolen in [(3, "900.00"), (5, "600.00")]:
        bank.upsert(
            "card_testing",
            {"op": "match", "card_id": 7, "probes": probes, "stolen": Decimal(stolen)},
        )
    bank.tick()
    assert bank.rows("thefts") == [
        {"card_id": 7, "thefts": 2, "stolen": Decimal("1500.00"), "most_probes": 5}
    ]
