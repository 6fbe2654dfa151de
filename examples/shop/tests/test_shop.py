"""The shop's own tests: `tailrace test`."""

from pipelines import shop


def test_every_view_has_a_key() -> None:
    for view in (shop.open_orders, shop.revenue_per_minute, shop.best_sellers):
        assert view.key
