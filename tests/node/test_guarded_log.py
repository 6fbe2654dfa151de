"""A project whose own log asks others who they are: its processes come in by its token."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tailrace import config
from tailrace.broker.process import run
from tailrace.cli.doctor import examine
from tailrace.client.admin import Admin
from tailrace.client.errors import ClientError
from tailrace.client.writer import TransactionalWriter
from tailrace.project.check import check
from tailrace.project.load import load
from tailrace.project_token import PROJECT_USER
from tailrace.security import LogAddress, librdkafka_settings, make_security, security_of
from tailrace.telemetry.part import Part, read_reports

TOML = """
[log]
listen = "127.0.0.1:0"
[log.broker]
listeners = "SASL_PLAINTEXT://127.0.0.1:0"
"sasl.enabled.mechanisms" = "SCRAM-SHA-256"
"connection.failed.authentication.delay.ms" = "0"
"""


AUTHORIZER = """
[log]
listen = "127.0.0.1:0"
[log.broker]
"authorizer.class.name" = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"connection.failed.authentication.delay.ms" = "0"
"""


@contextmanager
def running(directory: Path, text: str) -> Iterator[tuple[config.Settings, str]]:
    """The log of a project with these settings, and where it listens."""
    (directory / config.FILE_NAME).write_text(text)
    settings = config.load(directory)
    assert security_of(settings.bootstrap) is None  # there is no token before the first start
    part = Part("log", "broker", "p", settings.bootstrap, settings.state_directory)
    thread = threading.Thread(
        target=run,
        args=([settings.log.directory],),
        kwargs={"host": "127.0.0.1", "port": 0, "settings": settings.log.broker, "part": part},
    )
    thread.start()
    try:
        until = time.monotonic() + 60
        told: list[str] = []
        while not told and time.monotonic() < until:
            reports = read_reports(settings.state_directory)
            told = [str(each["address"]) for each in reports if each.get("state") == "running"]
            time.sleep(0.02)
        yield settings, told[0]
    finally:
        part.stopping.set()
        thread.join(60)


def test_its_processes_log_in_by_its_token_and_nobody_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, TOML) as (settings, told):
        address = settings.at(told)
        assert PROJECT_USER not in str(address)
        security = security_of(address)
        assert security is not None
        assert (security.username, security.protocol) == (PROJECT_USER, "SASL_PLAINTEXT")
        with TransactionalWriter(address, "ticks") as writer, Admin(address) as admin:
            admin.create_topic("__tailrace_ticks", 1, {})  # the project's own
            writer.init()
            writer.send("__tailrace_ticks", 0, key=b"p", value=b"1")
            writer.commit()
        made = {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-256"}
        for user, password in ((PROJECT_USER, "guess"), ("shop", "x"), ("", "")):
            other = told
            if user:
                other = LogAddress(
                    told, make_security({**made, "username": user, "password": password})
                )
            with pytest.raises(ClientError), Admin(other, timeout=1) as admin:
                admin.list_topics()
        token = (settings.log.directory / "project-token").read_text().split()[1]
        monkeypatch.setenv("TAILRACE_LOG_TOKEN", "x" * 64)
        assert security_of(settings.at(told)) != security
        monkeypatch.setenv("TAILRACE_LOG_TOKEN", token)
        assert security_of(settings.at(told)) == security
    assert os.stat(settings.log.directory / "project-token").st_mode & 0o077 == 0


def test_readers_on_librdkafka_are_the_project_where_an_authorizer_asks(tmp_path: Path) -> None:
    with running(tmp_path, AUTHORIZER) as (settings, told):
        address = settings.at(told)
        with TransactionalWriter(address, "w") as writer, Admin(address) as admin:
            admin.create_topic("t", 1, {})
            writer.init()
            writer.send("t", 0, key=b"k", value=b"1")
            writer.commit()
        consumer = Consumer({**librdkafka_settings(address), "group.id": "unused"})
        try:
            consumer.assign([TopicPartition("t", 0, 0)])
            message = consumer.poll(30)
            assert message is not None
            assert (message.error(), message.value()) == (None, b"1")
        finally:
            consumer.close()
        nobody = Consumer({"bootstrap.servers": told, "group.id": "unused", "log_level": 0})
        try:
            with pytest.raises(KafkaException):
                nobody.list_topics(timeout=1)
        finally:
            nobody.close()
        with pytest.raises(ClientError), Admin(told, timeout=1) as admin:
            admin.list_topics()


def test_check_and_doctor_say_who_comes_in(tmp_path: Path) -> None:
    (tmp_path / config.FILE_NAME).write_text(AUTHORIZER)
    (checked,) = (one.found for one in check(load(tmp_path)) if one.what == "log.broker")
    (found,) = (one for one in examine(tmp_path) if one.what == "log.broker")
    for told in (checked, f"{found.found}: {found.meaning}"):
        assert "only the project's own processes come in" in told
