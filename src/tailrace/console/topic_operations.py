"""Topics made, altered, deleted and written to by an operator.

What the project itself keeps is left alone: internal topics, change topics of its sources,
changelogs of its views, outputs of its streams, its event topics. The console is one of the
project's own processes, so the broker would let it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Response
from pydantic import BaseModel, Field

from tailrace.client.admin import Admin
from tailrace.client.groups import Groups
from tailrace.console.errors import UnknownNameError
from tailrace.errors import UsageError
from tailrace.log.errors import InvalidConfigError
from tailrace.log.settings import check_topic_config
from tailrace.project.load import Project

if TYPE_CHECKING:
    from tailrace.console.app import Served

TIMEOUT_SECONDS = 10.0


class NewTopic(BaseModel):
    """A topic to be made."""

    name: str = Field(min_length=1, max_length=249)
    partitions: int = Field(default=1, ge=1, le=1000)
    config: dict[str, str] = Field(default_factory=dict, max_length=100)


class Alteration(BaseModel):
    """Settings by name; null puts one back to its default."""

    config: dict[str, str | None] = Field(min_length=1, max_length=100)


class NewRecord(BaseModel):
    """A record to be written, as text; null is a tombstone."""

    key: str | None = Field(default=None, max_length=10_000)
    value: str | None = Field(default=None, max_length=500_000)
    headers: dict[str, str] = Field(default_factory=dict, max_length=100)
    partition: int | None = Field(default=None, ge=0, le=100_000)


def owner_of(project: Project, topic: str) -> str | None:
    """What of the project keeps a topic; None for a topic of somebody else's."""
    first = topic.partition(".")[0]
    if topic.startswith("__"):
        return "the log"
    if first in project.sources:
        return f"source {first}"
    for kind, names in (("view", project.views), ("stream", project.streams)):
        for name in names:
            if topic == name or topic.startswith(f"{name}."):
                return f"{kind} {name}"
    if topic in project.events:
        return f"events {topic}"
    return "the project" if topic == f"{project.name}.dead" else None


def _refuse_owned(project: Project, topic: str) -> None:
    owner = owner_of(project, topic)
    if owner is not None:
        raise UsageError(
            f"topic {topic!r} is kept by {owner}",
            hint="change the project's files; what is no longer declared can be dropped",
        )


def add_topic_operations(app: FastAPI, served: Served, answer: type[Response]) -> None:
    """The routes; all are POSTs, so that viewers reach none."""

    def admin() -> Admin:
        return Admin(served.bootstrap, timeout=TIMEOUT_SECONDS)

    @app.post("/api/topics")
    def create(question: NewTopic) -> Response:
        """Make a topic."""
        _refuse_owned(served.project, question.name)
        _check(question.config)
        with admin() as asked:
            asked.create_topic(question.name, question.partitions, question.config)
        return answer({"created": question.name})

    @app.post("/api/topics/{name}/config")
    def alter(name: str, question: Alteration) -> Response:
        """Change settings of a topic, those of the project's too (retention, say)."""
        _check({key: value for key, value in question.config.items() if value is not None})
        if name.startswith("__") or name in served.project.events:
            _refuse_owned(served.project, name)
        with admin() as asked:
            _there(asked, name)
            asked.alter_topic_config(name, question.config)
        return answer({"altered": name})

    @app.post("/api/topics/{name}/delete")
    def delete(name: str) -> Response:
        """Delete a topic with its records."""
        _refuse_owned(served.project, name)
        with admin() as asked:
            _there(asked, name)
            asked.delete_topic(name)
        return answer({"deleted": name})

    @app.post("/api/topics/{name}/write")
    def write(name: str, question: NewRecord) -> Response:
        """Write one record."""
        from confluent_kafka import Producer

        from tailrace.client.errors import ClientError
        from tailrace.security import librdkafka_settings

        _refuse_owned(served.project, name)
        with admin() as asked:
            partitions = _there(asked, name)
        if question.partition is not None and question.partition >= partitions:
            raise UsageError(f"{name} has no partition {question.partition}")
        told: list[Any] = []
        producer = Producer({**librdkafka_settings(served.bootstrap), "log_level": 0, "partitioner": "murmur2_random", "message.timeout.ms": 10_000})  # fmt: skip
        producer.produce(
            name,
            None if question.value is None else question.value.encode(),
            None if question.key is None else question.key.encode(),
            -1 if question.partition is None else question.partition,  # -1: by the key
            headers=[(key, value.encode()) for key, value in question.headers.items()],
            on_delivery=lambda error, message: told.append(error or message),
        )
        producer.flush(TIMEOUT_SECONDS)
        written = told[0] if told else None
        if written is None or not hasattr(written, "offset"):
            raise ClientError("the record was not written", detail=str(written or "no answer"))
        return answer({"partition": written.partition(), "offset": written.offset()})

    @app.post("/api/groups/{name}/delete")
    def forget(name: str) -> Response:
        """Delete a group without members, and its offsets."""
        with admin() as asked:
            Groups(asked).delete([name])
        return answer({"deleted": name})


def _check(config: dict[str, str]) -> None:
    try:
        check_topic_config(config)
    except InvalidConfigError as wrong:
        raise UsageError(wrong.message, detail=wrong.detail, hint=wrong.hint) from wrong


def _there(admin: Admin, name: str) -> int:
    """The number of partitions of a topic that exists."""
    found = admin.describe_topic(name)
    if found is None:
        raise UnknownNameError(f"there is no topic {name!r}")
    return len(found.leaders)
