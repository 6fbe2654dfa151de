"""`tr.views("HOST:PORT")` asks a running console what `tr.views(directory)` reads itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import tailrace as tr
from servers.consoles import Console
from servers.running_console import running
from tailrace.serving.errors import (
    PositionTimeoutError,
    PositionUnknownError,
    QueryError,
    UnknownViewError,
    ViewKeyError,
    ViewsRemoteError,
)
from tailrace.serving.remote import RemoteViews


@pytest.fixture
def remote(console: Console) -> Iterator[RemoteViews]:
    with running(console) as port, tr.views(f"127.0.0.1:{port}") as views:
        assert isinstance(views, RemoteViews)
        yield views


def test_remote_views_answer_as_local_ones_do(console: Console, remote: RemoteViews) -> None:
    local = console.served.views
    assert remote.names == local.names == ["open_orders"]
    for key in ("NL", "XX", "a/b", "ü ?&=", ""):
        assert remote["open_orders"].get(key) == local["open_orders"].get(key)
    assert remote["open_orders"].rows() == local["open_orders"].rows()
    first = remote["open_orders"].rows(limit=1)
    assert remote["open_orders"].rows(limit=1, after=first.next).rows == [
        {"country": "NL", "orders": 2}
    ]
    assert remote["open_orders"].rows(where="orders > 1").rows == [{"country": "NL", "orders": 2}]
    question = "SELECT sum(orders) AS n FROM open_orders"
    assert remote.sql(question) == local.sql(question)
    assert remote["open_orders"].sql("SELECT max(orders) AS n FROM this").rows == [{"n": 2}]


def test_a_view_of_one_row_is_asked_without_a_key(console: Console, remote: RemoteViews) -> None:
    console.ticks.declare("total", [], [("n", "BIGINT")])
    assert remote["open_orders"].get("") is None
    for row in ({"n": 5}, {"n": 6}, None):
        console.ticks.tick({"total": [({}, row)]})
        console.follower.step(0)
        assert remote["total"].get() == console.served.views["total"].get() == row
        answer = console.client.get("/api/views/total/")
        assert answer.status_code == (200 if row else 404)
        if row:
            assert answer.json() == {"row": row}
    for views in (remote, console.served.views):
        with pytest.raises(ViewKeyError):
            views["total"].get(5)
        with pytest.raises(ViewKeyError):
            views["open_orders"].get()


def test_what_is_wrong_is_told_as_locally(remote: RemoteViews) -> None:
    with pytest.raises(UnknownViewError, match="nothing") as unknown:
        remote["nothing"].get("NL")
    assert "open_orders" in unknown.value.detail
    with pytest.raises(QueryError) as wrong:
        remote.sql("SELECT nope FROM open_orders")
    assert wrong.value.hint
    with pytest.raises(PositionTimeoutError):
        remote["open_orders"].get("NL", at_least="tick:shop:99", timeout=0.05)
    with pytest.raises(PositionUnknownError):
        remote["open_orders"].get("NL", at_least="pg:other:0000000000000001", timeout=0.05)
    with pytest.raises(ViewKeyError):
        remote["open_orders"].get("NL", "DE")


def test_a_wait_ends_with_the_tick_that_covers_the_position(
    console: Console, remote: RemoteViews
) -> None:
    found: list[object] = []

    def ask() -> None:
        with RemoteViews(remote.address) as views:
            found.append(views["open_orders"].get("FR", at_least="tick:shop:2", timeout=60))

    asking = threading.Thread(target=ask)
    asking.start()
    console.tick(FR=7)
    asking.join(60)
    assert found == [{"country": "FR", "orders": 7}]


def test_a_subscription_gives_the_snapshot_and_then_every_change(
    console: Console, remote: RemoteViews
) -> None:
    events = remote["open_orders"].changes()
    begun = next(events)
    assert begun.kind == "snapshot"
    assert {row["country"]: row["orders"] for row in begun.rows} == {"NL": 2, "DE": 1}
    for number in range(2, 7):
        console.tick(FR=number)
    seen = [next(events) for _ in range(5)]
    assert [event.tick for event in seen] == [2, 3, 4, 5, 6]
    assert [event.position for event in seen] == [f"tick:shop:{n}" for n in range(2, 7)]
    assert seen[-1].changes[0].row == {"country": "FR", "orders": 6}
    events.close()  # type: ignore[attr-defined]
    resumed = remote["open_orders"].changes(after=5)
    assert next(resumed).tick == 6
    resumed.close()  # type: ignore[attr-defined]


def test_a_console_that_is_gone_is_told_with_its_address(console: Console) -> None:
    with running(console) as port:
        views = RemoteViews(f"http://127.0.0.1:{port}/")
        assert views.names == ["open_orders"]
    with pytest.raises(ViewsRemoteError, match=f"127.0.0.1:{port}"):
        views["open_orders"].get("NL")
    views.close()
