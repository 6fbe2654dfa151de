"""The project's own tests: `tailrace test`."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 17, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def search(number: int, seconds: float, term: str = "lamp", visitor: str = "ann") -> dict:
    return {"id": number, "visitor": visitor, "term": term, "at": after(seconds)}


def click(number: int, of: int, seconds: float) -> dict:
    return {"id": number, "search_id": of, "place": number % 10, "at": after(seconds)}


def passed(web, seconds: float) -> None:
    """Let both streams get to a time: a search and a click that concern nobody, then a tick."""
    web.upsert("searches", search(9_000 + int(seconds), seconds + 10, "nothing", "nobody"))
    web.upsert("clicks", click(9_000 + int(seconds), 9_000 + int(seconds), seconds + 10))
    web.tick()
    web.tick()


def clicks_of(web) -> dict[int, int]:
    return {row["id"]: row["clicks"] for row in web.rows("outcomes") if row["term"] != "nothing"}


def test_a_click_counts_whichever_comes_first(tailrace_project) -> None:
    web = tailrace_project.tables({})
    web.upsert("clicks", click(1, 7, 5))
    web.tick()
    assert web.rows("outcomes") == []
    web.upsert("searches", search(7, 0))
    web.upsert("searches", search(8, 0))
    web.tick()
    assert clicks_of(web) == {7: 1}
    web.upsert("clicks", click(2, 8, 59))
    web.tick()
    assert clicks_of(web) == {7: 1, 8: 1}


def test_a_search_without_a_click_is_reported_when_its_minute_is_over(tailrace_project) -> None:
    web = tailrace_project.tables({})
    web.upsert("searches", search(1, 0))
    web.upsert("searches", search(2, 3))
    web.upsert("clicks", click(1, 2, 4))
    web.tick()
    passed(web, 59)
    assert clicks_of(web) == {2: 1}
    assert web.rows("click_through") == []  # a rate of those that were quick would be too good
    passed(web, 64)
    assert clicks_of(web) == {1: 0, 2: 1}
    [lamp] = [row for row in web.rows("click_through") if row["term"] == "lamp"]
    assert lamp == {"term": "lamp", "searches": 2, "clicked": 1, "without_click": 1, "rate": 0.5}


def test_a_click_that_was_held_up_corrects_the_rate(tailrace_project) -> None:
    web = tailrace_project.tables({})
    web.upsert("searches", search(1, 0))
    web.tick()
    passed(web, 300)
    assert clicks_of(web) == {1: 0}
    web.upsert("clicks", click(1, 1, 30))
    web.tick()
    assert clicks_of(web) == {1: 1}
    [lamp] = [row for row in web.rows("click_through") if row["term"] == "lamp"]
    assert (lamp["without_click"], lamp["rate"]) == (0, 1.0)


def test_a_click_a_minute_after_its_search_is_of_no_search(tailrace_project) -> None:
    web = tailrace_project.tables({})
    web.upsert("searches", search(1, 0))
    web.upsert("clicks", click(1, 1, 61))
    web.upsert("clicks", click(2, 99, 10))
    web.tick()
    assert web.rows("strays") == []
    passed(web, 200)
    assert {row["id"] for row in web.rows("strays")} == {1, 2}
    assert clicks_of(web) == {1: 0}


def test_a_visitor_who_asks_again(tailrace_project) -> None:
    web = tailrace_project.tables({})
    web.upsert("searches", search(1, 0, "lamp"))
    web.upsert("searches", search(2, 20, "desk lamp"))
    web.upsert("searches", search(3, 60, "sofa"))
    web.upsert("searches", search(4, 25, "chair", "bob"))
    web.tick()
    assert web.rows("rephrased") == [{"term": "lamp", "then_term": "desk lamp", "times": 1}]
