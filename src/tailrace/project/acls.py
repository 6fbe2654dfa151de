"""The access rules that a project needs on its log, from its declarations.

One principal runs the project: capture writes the sources' topics, ticks and streams write
views and outputs, sinks and console read them. What is written in transactions needs the
transactional id. Who only reads results needs READ on a view's topic, which is not told here.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.broker.authorization.acls import (
    ALLOW,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WILDCARD,
    WRITE,
    Acl,
)
from tailrace.broker.guard import PROJECT_PREFIX
from tailrace.pipelines.declare import Topic
from tailrace.pipelines.ticks.pattern_builds import SLOTS
from tailrace.project.graph import build
from tailrace.project.load import Project
from tailrace.records.tick import pattern_key as key_of
from tailrace.sinks.declare import Topic as TopicSink

OWN = (READ, WRITE, CREATE, DESCRIBE_CONFIGS, ALTER_CONFIGS)

# What our readers call themselves: librdkafka asks after such a group, though they join none.
READERS = ("tailrace-reader", "tailrace-cuts")

_Need = tuple[int, str, int, tuple[int, ...]]


def needed(project: Project, principal: str, host: str = WILDCARD) -> list[Acl]:
    """The rules, in order, each once."""
    found = {
        Acl(resource, name, pattern, principal, host, operation, ALLOW): None
        for resource, name, pattern, operations in _needs(project)
        for operation in operations
    }
    return sorted(found)


def _builds(project: str, name: str) -> Iterator[_Need]:
    """Of a pattern or percolation: the builds that tick, and the topics of the one beside."""
    for slot in SLOTS:
        yield TRANSACTIONAL_ID, f"tailrace.{key_of(project, name + slot)}.ticks", LITERAL, (WRITE,)
    yield TOPIC, f"{name}.", PREFIXED, (*OWN, DELETE)


def _needs(project: Project) -> Iterator[_Need]:
    yield CLUSTER, CLUSTER_NAME, LITERAL, (DESCRIBE,)  # sizes and groups, for the console
    for group in READERS:
        yield GROUP, group, LITERAL, (DESCRIBE,)
    yield TOPIC, PROJECT_PREFIX, PREFIXED, OWN
    for source in project.sources:
        yield TOPIC, f"{source}.", PREFIXED, OWN
        yield TRANSACTIONAL_ID, f"tailrace.source.{source}", LITERAL, (WRITE,)
    if project.views:
        yield TRANSACTIONAL_ID, f"tailrace.{project.name}.ticks", LITERAL, (WRITE,)
        yield TRANSACTIONAL_ID, f"tailrace.{project.name}/", PREFIXED, (WRITE,)
        yield TOPIC, f"{project.name}.dead", LITERAL, OWN
    for view in project.views:  # and its generations, of which the old ones are deleted
        yield TOPIC, view, LITERAL, (*OWN, DELETE)
        yield TOPIC, f"{view}.", PREFIXED, (*OWN, DELETE)
    for stream in project.streams.values():
        yield TRANSACTIONAL_ID, f"tailrace.{stream.name}.", PREFIXED, (WRITE,)
        for name in (stream.name, f"{stream.name}.dead", f"{stream.name}.retry"):
            yield TOPIC, name, LITERAL, OWN
        for output in stream.outputs:
            yield TOPIC, output.name, LITERAL, OWN
    for name, pattern in project.patterns.items():
        yield from _builds(project.name, name)
        for end in ("", ".dead", *([".timeouts"] if pattern.timeouts else [])):
            yield TOPIC, f"{name}{end}", LITERAL, OWN
        if not isinstance(pattern.input, Topic) and pattern.time is not None:
            yield TOPIC, f"{pattern.input.topic}.late", LITERAL, OWN
    for name in project.percolations:
        yield from _builds(project.name, name)
        for end in ("", ".dead"):
            yield TOPIC, f"{name}{end}", LITERAL, OWN
    for name in project.settings.topics:
        yield TOPIC, name, LITERAL, OWN
    for topic in project.topics.values():
        yield TOPIC, topic.name, LITERAL, (READ,)
        if topic.time is not None:
            yield TOPIC, f"{topic.name}.late", LITERAL, OWN
    for node in build(project).nodes:
        if node.kind == "table" and node.label.partition(".")[0] not in project.sources:
            yield TOPIC, node.label, LITERAL, (READ,)
    for copy in project.sinks.values():
        yield TOPIC, f"{copy.name}.dead", LITERAL, OWN
        target = copy.declaration
        if isinstance(target, TopicSink) and target.bootstrap is None:
            yield TOPIC, target.topic, LITERAL, OWN
            yield TRANSACTIONAL_ID, f"tailrace.sink.{copy.name}", LITERAL, (WRITE,)
