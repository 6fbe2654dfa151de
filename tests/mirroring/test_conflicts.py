"""Both sites write the same keys: by the stated rule both end equal, and losers are kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirroring.test_mirror import Logs, _read
from tailrace.broker.embedded import BrokerThread
from tailrace.client.admin import Admin
from tailrace.client.errors import BrokerUnavailableError
from tailrace.client.fetcher import Answer, Fetcher
from tailrace.client.log import connect
from tailrace.errors import UsageError
from tailrace.mirroring import fetch, relay
from tailrace.mirroring.relay import Mirror
from tailrace.testing.mirrors import Write, losers_of, winners_of

TOPICS = (f"t{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logs]:
    folder: Path = tmp_path_factory.mktemp("sites")
    with (
        BrokerThread(folder / "ams", durable=False) as ams,
        BrokerThread(folder / "ber", durable=False) as ber,
    ):
        yield Logs(ams.address, ber.address)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "WAIT", 0.01)
    monkeypatch.setattr(relay, "IDLE_SECONDS", 0.01)


class Sites(NamedTuple):
    topic: str
    logs: Logs
    there: Mirror
    back: Mirror

    def write(self, site: str, key: str, time: int, value: str | None) -> None:
        address = self.logs.source if site == "ams" else self.logs.target
        with connect(address) as log, log.producer() as producer:
            producer.send(self.topic, key=key.encode(), value=None if value is None else value.encode(), partition=0, timestamp=time)  # fmt: skip

    def mirror(self) -> None:
        for _ in range(3):
            self.there.run_until_caught_up()
            self.back.run_until_caught_up()

    def last(self, address: str) -> dict[str, str]:
        """What a reader of the topic ends with."""
        found: dict[str, str] = {}
        for record in _read(address, self.topic, 0):
            assert record.key is not None
            found.pop(record.key.decode(), None)
            if record.value is not None:
                found[record.key.decode()] = record.value.decode()
        return found

    def kept(self) -> list[str]:
        """The values of all losers, at both sites."""
        found = []
        for address in self.logs:
            with Admin(address) as admin:
                there = admin.describe_topic(f"{self.topic}.conflicts")
            if there is not None:
                found += [(each.value or b"-").decode() for each in _read(address, f"{self.topic}.conflicts", 0)]  # fmt: skip
        return sorted(found)


def _sites(logs: Logs, conflicts: str | None = "latest", pinned: bool = False) -> Iterator[Sites]:
    topic = next(TOPICS)
    for address in logs:
        with Admin(address) as admin:
            admin.create_topic(topic, 1, {"retention.ms": "-1"})
    pin = {topic: "key-prefix"} if pinned else {}
    with (
        Mirror(f"{topic}-there", logs.source, logs.target, topics=topic, site="ams", others=["ber"], conflicts=conflicts, pin=pin) as there,
        Mirror(f"{topic}-back", logs.target, logs.source, topics=topic, site="ber", others=["ams"], conflicts=conflicts, pin=pin) as back,
    ):  # fmt: skip
        yield Sites(topic, logs, there, back)


def test_the_later_of_two_writes_wins_at_both_sites_and_the_other_is_kept(logs: Logs) -> None:
    for sites in _sites(logs):
        sites.write("ams", "k", 1_000, "early")
        sites.write("ber", "k", 2_000, "late")
        sites.mirror()
        assert [sites.last(address) for address in logs] == [{"k": "late"}] * 2
        assert sites.kept() == ["early"]
        assert sites.there.rows.conflicts + sites.back.rows.conflicts == 1
        (loser,) = _read(logs.target, f"{sites.topic}.conflicts", 0)
        assert dict(loser.headers) == {"tailrace.site": b"ams", "tailrace.offset": b"0"}


def _fail_once(ask: Callable[..., Answer]) -> Callable[..., Answer]:
    asked = iter([False])

    def asking(fetcher: Fetcher, *place: object, **more: object) -> Answer:
        if next(asked, True):
            return ask(fetcher, *place, **more)
        raise BrokerUnavailableError("the broker is away")

    return asking


def test_a_target_that_does_not_answer_for_a_while_is_followed_on(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sites in _sites(logs):
        sites.write("ber", "k", 2_000, "late")
        sites.write("ams", "k", 1_000, "early")
        with monkeypatch.context() as patched:
            patched.setattr(Fetcher, "ask", _fail_once(Fetcher.ask))
            sites.there.cycle()
        sites.mirror()
        assert [sites.last(address) for address in logs] == [{"k": "late"}] * 2
        assert sites.kept() == ["early"]


def test_retention_at_the_target_may_be_faster_than_the_mirror(logs: Logs) -> None:
    for sites in _sites(logs):
        sites.write("ber", "k", 1_000, "gone")
        sites.mirror()
        sites.write("ber", "k", 2_000, "gone too")
        sites.write("ber", "k", 3_000, "there")
        with Admin(logs.target) as admin:
            end = admin.end_offsets([(sites.topic, 0)])[sites.topic, 0]
            admin.delete_records({(sites.topic, 0): end - 1})
        sites.write("ams", "k", 1_500, "early")
        sites.there.run_until_caught_up()
        assert sites.last(logs.target) == {"k": "there"}
        assert sites.kept() == ["early"]


def test_at_one_time_the_name_of_the_site_decides(logs: Logs) -> None:
    for sites in _sites(logs):
        sites.write("ber", "k", 1_000, "b")
        sites.write("ams", "k", 1_000, "a")
        sites.mirror()
        assert [sites.last(address) for address in logs] == [{"k": "b"}] * 2


def test_a_site_may_win_whatever_the_time(logs: Logs) -> None:
    for sites in _sites(logs, "site:ams"):
        sites.write("ams", "k", 1_000, "a")
        sites.write("ber", "k", 2_000, "b")
        sites.write("ber", "own", 2_000, "c")
        sites.mirror()
        assert [sites.last(address) for address in logs] == [{"k": "a", "own": "c"}] * 2
        assert sites.kept() == ["b"]


def test_a_key_that_is_pinned_elsewhere_is_put_right_and_kept(logs: Logs) -> None:
    for sites in _sites(logs, None, pinned=True):
        sites.write("ams", "ams:1", 1_000, "at home")
        sites.mirror()
        sites.write("ber", "ams:1", 2_000, "abroad")
        sites.write("ber", "ams:2", 2_000, "nobody at home")
        sites.write("ber", "ber:1", 1_000, "mine")
        sites.mirror()
        assert [sites.last(address) for address in logs] == [{"ams:1": "at home", "ber:1": "mine"}] * 2  # fmt: skip
        assert sites.kept() == ["abroad", "nobody at home"]
        sites.write("ams", "ams:2", 1_500, "at home now")
        sites.mirror()
        assert [sites.last(address)["ams:2"] for address in logs] == ["at home now"] * 2


def test_a_write_that_comes_between_the_look_and_the_append_wins_in_the_end(logs: Logs) -> None:
    for sites in _sites(logs):
        sites.write("ams", "k", 1_000, "early")
        slipped = []

        def step(name: str, sites: Sites = sites, slipped: list[str] = slipped) -> None:
            if name == "flush" and not slipped:
                slipped.append(name)
                sites.write("ber", "k", 2_000, "late")

        sites.there._step = step
        sites.there.run_until_caught_up()
        assert slipped
        sites.mirror()
        values = [each.value for each in _read(logs.target, sites.topic, 0)]
        assert values == [b"late", b"early", b"late"]
        assert [sites.last(address) for address in logs] == [{"k": "late"}] * 2
        assert [each.value for each in _read(logs.source, sites.topic, 0)] == [b"early", b"late"]
        assert sites.kept() == ["early"]


def test_a_copy_of_a_winner_is_no_later_than_what_it_is_a_copy_of(logs: Logs) -> None:
    """Of two records of one site and time the later wins, also if a copy of the first comes last."""
    for sites in _sites(logs):
        sites.write("ber", "k", 2_000, "first")
        sites.there.run_until_caught_up()
        sites.write("ber", "k", 1_000, "earlier")
        slipped: list[str] = []

        def step(name: str, sites: Sites = sites, slipped: list[str] = slipped) -> None:
            if name == "flush" and not slipped:
                slipped.append(name)
                sites.write("ber", "k", 2_000, "second")

        sites.there._step = step
        sites.mirror()
        values = [each.value for each in _read(logs.target, sites.topic, 0)]
        assert values == [b"first", b"earlier", b"second", b"first", b"second"]
        assert [sites.last(address) for address in logs] == [{"k": "second"}] * 2


def test_no_winner_is_put_where_the_log_sets_the_times(logs: Logs) -> None:
    topic = next(TOPICS)
    with Admin(logs.source) as admin:
        admin.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})
    with (
        Mirror("m", logs.source, logs.target, topics=topic, site="ams", others=["ber"], conflicts="latest") as mirror,
        pytest.raises(UsageError, match="its log sets the times"),
    ):  # fmt: skip
        mirror.run_until_caught_up()
    with pytest.raises(UsageError, match="have names"):
        Mirror("m", logs.source, logs.target, topics=topic, conflicts="latest")


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["ams", "ber", "mirror", "there", "back"]),
        st.sampled_from(["k", "ams:1", "ber:1"]),
        st.integers(1, 4),
        st.booleans(),
    ),
    max_size=14,
)


@pytest.mark.parametrize(
    ("conflicts", "pinned"),
    [("latest", False), ("site:ber", False), (None, True), ("latest", True)],
    ids=["latest", "site", "pinned", "latest-and-pinned"],
)
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=WRITES)
def test_both_sites_end_with_what_the_naive_twin_says(
    logs: Logs, conflicts: str | None, pinned: bool, steps: list[tuple[str, str, int, bool]]
) -> None:
    _judge(logs, conflicts, pinned, steps)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["latest", "site:ber", None])
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pinned=st.booleans(), steps=WRITES)
def test_sites_end_equal_in_many_orders(
    logs: Logs, rule: str | None, pinned: bool, steps: list[tuple[str, str, int, bool]]
) -> None:
    _judge(logs, rule, pinned or rule is None, steps)


def _judge(
    logs: Logs, conflicts: str | None, pinned: bool, steps: list[tuple[str, str, int, bool]]
) -> None:
    for sites in _sites(logs, conflicts, pinned):
        writes: list[Write] = []
        for number, (who, key, time, deleted) in enumerate(steps):
            if who in ("ams", "ber"):
                if conflicts is None and ":" not in key:
                    continue  # such keys merge
                value = None if deleted else f"v{number}"
                sites.write(who, key, 1_000 + time, value)
                writes.append(Write(who, key, 1_000 + time, value))
            elif who == "mirror":
                sites.mirror()
            else:
                (sites.there if who == "there" else sites.back).run_until_caught_up()
        sites.mirror()
        pins = ["ams", "ber"] if pinned else []
        expected = winners_of(writes, conflicts, pins)
        assert [sites.last(address) for address in logs] == [expected] * 2
        assert set(sites.kept()) <= set(losers_of(writes, conflicts, pins))
