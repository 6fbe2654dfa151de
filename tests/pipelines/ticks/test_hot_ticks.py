"""A key that fans out makes ticks smaller, not the others wait: the home timeline of a star."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ticks.test_ticks import in_process
from tailrace.pipelines.compiler import ViewDefinition, compile_views
from tailrace.pipelines.engine.changelog import Piece
from tailrace.pipelines.ticks.driver import TickDriver, TickSettings
from tailrace.pipelines.ticks.job import Outcome, Work
from tailrace.pipelines.ticks.tick_size import NO_LIMIT, TickSize
from tailrace.testing.feed import ChangeFeed, FeedTable
from tailrace.testing.ticks import table

POSTS = FeedTable("posts", (("id", "BIGINT"), ("author", "STRING")), ("id",))
FOLLOWS = FeedTable("follows", (("reader", "STRING"), ("author", "STRING")), ("reader", "author"))


def changes(count: int) -> dict[str, list[Piece]]:
    return {"view": [Piece([0] * count, [0] * count)]}


@given(most=st.integers(1, 1000), fans=st.integers(0, 500), records=st.integers(1, 200))
def test_the_next_tick_would_have_fitted(most: int, fans: int, records: int) -> None:
    size = TickSize(most)
    size.learn(records, changes(records * fans))
    allowed = size.records(1 << 20)
    if records * fans <= most:
        assert allowed == 1 << 20
    else:
        assert allowed == 1 or allowed * fans <= most
    assert size.records(NO_LIMIT) == NO_LIMIT


def test_ticks_grow_again_when_the_star_is_silent() -> None:
    size = TickSize(1000)
    size.learn(10, changes(100_000))
    seen = []
    while (allowed := size.records(200_000)) < 200_000:
        seen.append(allowed)
        size.learn(allowed, changes(allowed // 1000))
    assert seen == [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536]
    size.learn(0, changes(0))
    assert size.records(200_000) == 200_000


@pytest.mark.parametrize(("fans", "posts"), [
    (600, 30),
    pytest.param(20_000, 40, marks=pytest.mark.thorough),
])  # fmt: skip
def test_a_star_makes_small_ticks_and_everybody_goes_on(
    tailrace_broker: str, tmp_path: Path, fans: int, posts: int
) -> None:
    source = f"net{uuid.uuid4().hex[:6]}"
    most = fans * 3
    view = ViewDefinition(
        f"{source}_timeline",
        f"SELECT f.reader, p.id, p.author FROM {source}.follows f "
        f"JOIN {source}.posts p ON p.author = f.author",
        ("reader", "id"),
    )
    tables = [
        table(f"{source}.public.posts", "id BIGINT, author STRING", ["id"]),
        table(f"{source}.public.follows", "reader STRING, author STRING", ["reader", "author"]),
    ]
    settings = TickSettings(
        source, tailrace_broker, str(tmp_path / "state"), str(tmp_path / "cache"), shards=2,
        most_changes=most,
    )  # fmt: skip
    ticks: list[tuple[int, int]] = []  # rows of each tick that are of the star, and of others

    def run(work: Work) -> Outcome:
        outcome = in_process(work)
        values = [v for p in outcome.changes.get(view.name, []) for v in p.values.to_pylist()]
        star = sum(b'"author":"star"' in value for value in values)
        ticks.append((star, len(values) - star))
        return outcome

    driver = TickDriver(compile_views([view], tables), settings, run)
    with ChangeFeed(tailrace_broker, source, [POSTS, FOLLOWS], remember=False) as feed:
        try:
            driver.start()
            feed.transaction(*(("follows", {"reader": f"fan{n}", "author": "star"}, {}) for n in range(fans)))  # fmt: skip
            feed.transaction(*(("follows", {"reader": f"r{n}", "author": f"a{n}"}, {}) for n in range(posts)))  # fmt: skip
            while driver.step(0.5):
                pass
            # The star has much to say: more than a tick should hold.
            feed.transaction(*(("posts", {"id": n}, {"author": "star"}) for n in range(4)))
            while driver.step(0.5):
                pass
            # A backlog of the star and the others in turn, each post a transaction of its own.
            for number in range(posts):
                feed.transaction(("posts", {"id": 100 + 2 * number}, {"author": "star"}))
                feed.transaction(("posts", {"id": 101 + 2 * number}, {"author": f"a{number}"}))
            ticks.clear()
            while driver.step(0.5):
                pass
            assert (sum(s for s, _ in ticks), sum(o for _, o in ticks)) == (fans * posts, posts)
            for star, others in ticks:
                assert star + others <= 2 * most  # about: one cannot know before
                assert abs(star // fans - others) <= 1  # others go on as fast as the star does
            assert len(ticks) >= posts // 6
        finally:
            driver.close()
