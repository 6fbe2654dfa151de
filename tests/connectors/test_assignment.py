"""Who runs what, against the plain rules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.assignment import assign, settled

UNITS = st.builds(
    lambda counts: [
        (f"c{n}", number) for n, count in enumerate(counts) for number in range(-1, count)
    ],
    st.lists(st.integers(0, 6), max_size=5),
)
CHANGES = st.lists(st.tuples(st.sampled_from(["join", "die", "units"]), UNITS), max_size=8)


@given(UNITS, CHANGES)
def test_everything_runs_once_evenly_and_nothing_moves_without_need(units, changes) -> None:  # type: ignore[no-untyped-def]
    """Members come and go; rounds follow until nothing changes any more."""
    running: dict[str, set[tuple[str, int]]] = {"m0": set()}
    born = 0
    for change, others in [("", units), *changes]:
        before = {member: set(each) for member, each in running.items()}
        if change == "join":
            born += 1
            running[f"m{born}"] = set()
        elif change == "die" and len(running) > 1:
            del running[min(running)]
        elif change == "units":
            units = others
        for _ in range(4):
            given_now = assign(units, running)
            runs = [unit for each in given_now.values() for unit in each]
            assert len(runs) == len(set(runs))
            for member, each in given_now.items():
                for unit in each - running[member]:
                    # Nobody starts what another has not stopped.
                    assert all(unit not in other for other in running.values())
            if given_now == running:
                break
            running = given_now
        assert settled(units, running)
        assert max(map(len, running.values())) - min(map(len, running.values())) <= 1
        if change == "join":
            # Only what the new member got has moved.
            for member, each in before.items():
                assert running[member] <= each
        if change == "die" and len(before) > 1:
            for member, each in running.items():
                assert before[member] <= each | {u for u in before[member] if u not in units}


def test_what_two_claim_stays_with_one() -> None:
    given_now = assign([("c", 0)], {"a": [("c", 0)], "b": [("c", 0)]})
    assert sorted(map(len, given_now.values())) == [0, 1]
