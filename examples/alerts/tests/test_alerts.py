"""The project's own tests: `tailrace test`."""

from decimal import Decimal


def listing(number: int, title: str, price: str = "10.00", country: str = "DE") -> dict:
    return {"id": number, "title": title, "price": Decimal(price), "country": country}


def told(matches: list) -> list:
    return [(one["query_id"], one["event"]["id"]) for one in matches]


def test_who_stores_a_search_is_told_of_what_matches_from_then_on(tailrace_project) -> None:
    alerts = tailrace_project.queries("alerts")
    boat = listing(1, "An old sailing boat", "900.00")
    assert told(alerts.tick([boat])) == []
    alerts.put({"id": 7, "owner": "ada", "query": "boats sail* price:<1000"})
    (match,) = alerts.tick([boat, listing(2, "A boat")])
    assert (match["query_id"], match["owner"], match["event"]["title"]) == (
        7, "ada", "An old sailing boat",
    )  # fmt: skip
    alerts.put({"id": 7, "owner": "ada", "query": "boats -sailing"})
    assert told(alerts.tick([boat, listing(2, "A boat")])) == [(7, 2)]
    alerts.remove(7)
    assert told(alerts.tick([listing(3, "A boat")])) == []


def test_some_are_told_once_and_some_not_too_often(tailrace_project) -> None:
    alerts = tailrace_project.queries("alerts")
    alerts.put({"id": 1, "query": "country:DE", "only_once": True})
    alerts.put({"id": 2, "query": "country:DE", "per_hour": 2})
    rows = [listing(number, "A boat") for number in range(3)]
    assert told(alerts.tick(rows)) == [(1, 0), (2, 0), (2, 1)]
    alerts.now_ms += 3_600_000
    assert told(alerts.tick([listing(9, "A boat")])) == [(2, 9)]


def test_a_search_that_cannot_be_read_is_a_dead_letter(tailrace_project) -> None:
    alerts = tailrace_project.queries("alerts")
    alerts.put({"id": 1, "query": '"old boat'})
    alerts.put({"id": 2, "query": "boat"})
    assert told(alerts.tick([listing(1, "An old boat")])) == [(2, 1)]
    assert [one.reason for one in alerts.dead] == [
        "stored query 1 cannot be read: a quote is not closed, at character 1"
    ]
