"""The project's own tests: `tailrace test`."""

POSTS = "id BIGINT, author STRING, words STRING, posted_at STRING"
FOLLOWS = "reader STRING, author STRING"
FANS = 20_000


def network(tailrace_project):
    return tailrace_project.tables(
        {"net.posts": POSTS, "net.follows": FOLLOWS}, {"net.follows": ["reader", "author"]}
    )


def post(net, number: int, author: str, words: str = "") -> None:
    net.upsert("net.posts", {"id": number, "author": author, "words": words or f"post {number}"})


def follow(net, reader: str, author: str) -> None:
    net.upsert("net.follows", {"reader": reader, "author": author})


def seen(net, reader: str) -> list[str]:
    return sorted(row["words"] for row in net.rows("timeline") if row["reader"] == reader)


def test_posts_follows_unfollows_and_deletes(tailrace_project) -> None:
    net = network(tailrace_project)
    post(net, 1, "ann", "hello")
    follow(net, "bob", "cy")
    net.tick()
    assert seen(net, "bob") == []
    follow(net, "bob", "ann")  # what she said before comes along
    net.tick()
    assert seen(net, "bob") == ["hello"]
    post(net, 2, "ann", "again")
    post(net, 1, "ann", "hello, edited")
    net.tick()
    assert seen(net, "bob") == ["again", "hello, edited"]
    net.delete("net.posts", {"id": 1})
    net.tick()
    assert seen(net, "bob") == ["again"]
    net.delete("net.follows", {"reader": "bob", "author": "ann"})
    post(net, 3, "ann", "nobody listens")
    net.tick()
    assert seen(net, "bob") == []
    assert net.rows("reach") == [{"author": "cy", "followers": 1}]


def test_home_shows_the_ten_newest(tailrace_project) -> None:
    net = network(tailrace_project)
    follow(net, "bob", "ann")
    for number in range(1, 15):
        post(net, number, "ann")
    net.tick()
    assert {row["id"] for row in net.rows("home")} == set(range(5, 15))
    post(net, 15, "ann")
    assert net.tick()["home"] == 2  # one comes and one leaves
    assert {row["id"] for row in net.rows("home")} == set(range(6, 16))
    net.delete("net.posts", {"id": 14})
    net.tick()
    assert {row["id"] for row in net.rows("home")} == {*range(5, 16)} - {14}


def test_a_star_does_not_hold_up_the_others(tailrace_project) -> None:
    """Every tick in which the star posts shows the posts of all others, too; a follower more or
    less of the star changes one timeline, not 20,000."""
    net = network(tailrace_project)
    for number in range(FANS):
        follow(net, f"fan{number}", "star")
    for number in range(20):
        follow(net, f"r{number}", f"a{number}")
    net.tick()
    shown = 0
    for turn in range(1, 3):
        post(net, turn * 100, "star")
        for number in range(20):
            post(net, turn * 100 + 1 + number, f"a{number}")
        changed = net.tick()
        shown += 20
        assert changed["timeline"] == FANS + 20
        assert sum(row["reader"].startswith("r") for row in net.rows("timeline")) == shown
    follow(net, "late", "star")
    assert net.tick()["timeline"] == 2  # the star's old posts, for one reader
    net.delete("net.follows", {"reader": "fan7", "author": "star"})
    assert net.tick()["timeline"] == 2
    net.delete("net.posts", {"id": 100})
    assert net.tick()["timeline"] == FANS  # 20,000 less one, and the late one
