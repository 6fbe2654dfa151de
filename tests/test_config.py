"""Settings: layers, origins, words, and errors that point at the line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace import config
from tailrace.errors import (
    ConfigSyntaxError,
    ConfigValueError,
    MissingVariableError,
    UnknownKeyError,
)
from tailrace.security import security_of


def write(directory: Path, text: str) -> Path:
    (directory / config.FILE_NAME).write_text(text)
    return directory


def test_without_a_file_everything_is_a_default(tmp_path: Path) -> None:
    settings = config.load(tmp_path, environment={})
    assert settings.log.listen == "127.0.0.1:9092"
    assert settings.bootstrap == "127.0.0.1:9092"
    assert settings.project.name == tmp_path.name
    assert str(settings.origins["log.listen"]) == "default"


def test_a_later_layer_wins_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, '[project]\nname = "shop"\n[log]\nlisten = "127.0.0.1:1"\n')
    variables = {"TAILRACE_LOG__LISTEN": "127.0.0.1:2"}
    assert config.load(tmp_path, environment={}).log.listen == "127.0.0.1:1"
    settings = config.load(tmp_path, environment=variables)
    assert settings.log.listen == "127.0.0.1:2"
    assert str(settings.origins["log.listen"]) == "environment TAILRACE_LOG__LISTEN"
    settings = config.load(tmp_path, environment=variables, flags={"log.listen": "127.0.0.1:3"})
    assert settings.log.listen == "127.0.0.1:3"
    assert str(settings.origins["log.listen"]) == "flag --listen"
    assert str(settings.origins["project.name"]) == "tailrace.toml:2"
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "${WHO}-${WHAT}"\n')
    named = config.load(tmp_path, environment={"WHO": "a", "WHAT": "b"})
    assert named.project.name == "a-b"
    assert str(named.origins["project.name"]) == "tailrace.toml:2 by ${WHO}, ${WHAT}"


def test_an_unknown_key_names_the_nearest_and_the_line(tmp_path: Path) -> None:
    write(tmp_path, '[project]\nname = "shop"\n\n[log]\nlistn = "x"\n')
    with pytest.raises(UnknownKeyError) as caught:
        config.load(tmp_path, environment={})
    assert "tailrace.toml:5" in caught.value.detail
    assert "listen" in caught.value.hint


def test_an_unknown_section_and_variable_are_errors_too(tmp_path: Path) -> None:
    with pytest.raises(UnknownKeyError, match="lgo"):
        config.load(write(tmp_path, "[lgo]\n"), environment={})
    write(tmp_path, "")
    with pytest.raises(UnknownKeyError) as caught:
        config.load(tmp_path, environment={"TAILRACE_LOG__LISTN": "x"})
    assert "log.listen" in caught.value.hint


def test_broken_toml_names_file_and_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigSyntaxError) as caught:
        config.load(write(tmp_path, "[project\n"), environment={})
    assert "line 1" in caught.value.detail


def test_variables_in_values_come_from_the_environment(tmp_path: Path) -> None:
    write(tmp_path, '[log]\nbootstrap = "${KAFKA}"\n')
    assert config.load(tmp_path, environment={"KAFKA": "k:9092"}).bootstrap == "k:9092"
    with pytest.raises(MissingVariableError) as caught:
        config.load(tmp_path, environment={})
    assert "tailrace.toml:2" in caught.value.detail


def test_topics_take_kafkas_names_quoted_or_not(tmp_path: Path) -> None:
    write(tmp_path, '[topics."a.b"]\npartitions = 6\n"retention.ms" = 5\nsegment.bytes = 7\n')
    topics = config.load(tmp_path, environment={}).topics
    assert topics == {"a.b": {"partitions": "6", "retention.ms": "5", "segment.bytes": "7"}}


def test_times_and_sizes_of_topics_may_be_words(tmp_path: Path) -> None:
    write(tmp_path, '[topics.a]\n"retention.ms" = "7 days"\n"segment.bytes" = "1 GiB"\n"retention.bytes" = -1\n')  # fmt: skip
    assert config.load(tmp_path, environment={}).topics == {
        "a": {"retention.ms": "604800000", "segment.bytes": "1073741824", "retention.bytes": "-1"}
    }
    write(tmp_path, '[topics.a]\n"retention.ms" = "a while"\n')
    with pytest.raises(ConfigValueError, match="'a while' is not a duration") as told:
        config.load(tmp_path, environment={})
    assert "tailrace.toml" in str(told.value.detail)


@pytest.mark.parametrize("text", ["[log]\nlisten = 5", '[log]\nlisten = "here"', "[spark]\nshards = 0", '[tick]\nfreshness = "soon"', "log = 1", '[project]\nname = "a b"'])  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigValueError):
        config.load(write(tmp_path, text), environment={})


def test_durations_and_sizes_are_words() -> None:
    assert config.parse_duration("7 days") == timedelta(days=7)
    assert config.parse_duration("1h 30m") == timedelta(minutes=90)
    assert config.parse_duration(250) == timedelta(milliseconds=250)
    assert config.parse_duration("250") == timedelta(milliseconds=250)
    assert config.parse_size("1 GiB") == 2**30
    assert config.parse_size("500 MB") == 500_000_000
    assert config.parse_size("12") == 12
    for wrong in ("", "7 dayz", "days", "7 days x"):
        with pytest.raises(ConfigValueError):
            config.parse_duration(wrong)


@given(st.text())
def test_any_text_is_a_duration_or_a_clear_error(text: str) -> None:
    try:
        config.parse_duration(text)
    except ConfigValueError as error:
        assert error.hint


@given(st.text(max_size=200))
def test_any_file_loads_or_gives_a_config_error(tmp_path: Path, text: str) -> None:
    (tmp_path / config.FILE_NAME).write_text(text, encoding="utf-8", errors="replace")
    try:
        config.load(tmp_path, environment={})
    except config.ConfigError as error:
        assert error.message


def test_an_environment_value_is_read_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    value = config.env("TAILRACE_TEST_DSN")
    monkeypatch.delenv("TAILRACE_TEST_DSN", raising=False)
    with pytest.raises(MissingVariableError):
        config.resolve(value)
    monkeypatch.setenv("TAILRACE_TEST_DSN", "host=a")
    assert config.resolve(value) == "host=a"
    assert "secret" not in repr(config.env("X", default="secret"))


def test_the_security_of_a_cluster_goes_with_its_address(tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text(
        '[log]\nbootstrap = "kafka:9093"\n[log.security]\nmechanism = "SCRAM-SHA-512"\n'
        'username = "shop"\npassword = "${KAFKA_PASSWORD}"\n'
    )
    settings = config.load(tmp_path, environment={"KAFKA_PASSWORD": "canary-of-kafka"})
    assert settings.bootstrap == "kafka:9093"
    security = security_of(settings.bootstrap)
    assert security is not None
    assert (security.protocol, security.username) == ("SASL_SSL", "shop")
    assert security.password == "canary-of-kafka"
    assert "canary-of-kafka" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[log.security]\nmechanism = "PLAIN"\n', "no meaning for the embedded log"),
        ('[log]\nbootstrap = "k:1"\n[log.security]\nmechanism = "PLAIN"\n', "needs username"),
        ('[log]\nbootstrap = "k:1"\n[log.security]\nusr = "x"\n', "no setting 'usr'"),
    ],
)
def test_a_security_that_means_nothing_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "tailrace.toml").write_text(text)
    with pytest.raises(ConfigValueError, match=words):
        config.load(tmp_path, environment={})
