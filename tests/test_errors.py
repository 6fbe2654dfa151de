"""Errors: four parts, a code each, and a way through processes."""

from __future__ import annotations

import importlib.util
import pickle

from tailrace import clock
from tailrace.errors import ROOMS_WITH_ERRORS, ConfigValueError, TailraceError, explain


def test_an_error_renders_in_four_parts() -> None:
    error = ConfigValueError("log.listen must be text", detail="5 at tailrace.toml:3", hint="quote it")  # fmt: skip
    assert error.render().splitlines() == [
        "error: log.listen must be text                                    [config-value]",
        "  5 at tailrace.toml:3",
        "  hint: quote it",
    ]
    assert str(error) == "log.listen must be text"
    assert error.as_dict()["code"] == "config-value"


def test_empty_parts_leave_no_line() -> None:
    assert TailraceError("it failed").render().count("\n") == 0


def test_an_error_survives_pickling_with_all_its_parts() -> None:
    error = ConfigValueError("message", detail="detail", hint="hint")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ConfigValueError
    assert again.render() == error.render()


def test_a_code_is_explained_by_its_class() -> None:
    assert explain("config-value") is ConfigValueError
    assert explain("no-such-code") is None


def test_wall_time_and_monotonic_time_are_apart() -> None:
    before = clock.SYSTEM.monotonic()
    assert clock.SYSTEM.monotonic() >= before
    assert clock.to_datetime(0).isoformat() == "1970-01-01T00:00:00+00:00"
    assert clock.SYSTEM.wall_ms() > 1_700_000_000_000


def test_every_room_with_errors_has_a_module_of_them() -> None:
    for room in ROOMS_WITH_ERRORS:
        assert importlib.util.find_spec(f"tailrace.{room}.errors") is not None, room
