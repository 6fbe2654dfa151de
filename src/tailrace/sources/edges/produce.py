"""Records over HTTP in the form of Kafka's REST proxy, version 2.

    POST /topics/TOPIC                 {"records": [{"key": …, "value": …, "partition": 0}]}
    POST /topics/TOPIC/partitions/N    the same, all into one partition
    GET  /topics                       the topics that may be written

Bodies of `application/vnd.kafka.json.v2+json` hold JSON, written as compact JSON; those of
`application/vnd.kafka.binary.v2+json` hold base64; `application/json` is taken for JSON. With a registry
`…avro.v2+json`, `…jsonschema.v2+json` and `…protobuf.v2+json` are taken too (`registered`). A record may have `headers` (`[{"name": …, "value": …}]`, values as the record's) and a `timestamp` in milliseconds.
The answer has the partition and offset of each record. Either all records of a request are written
or none.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from concurrent.futures import TimeoutError
from typing import Any

import orjson

from tailrace.client.errors import RecordTooLargeError
from tailrace.client.log import Log
from tailrace.client.schemas import Schemas
from tailrace.config import resolve
from tailrace.errors import TailraceError
from tailrace.plain_http import Answer, Request
from tailrace.records.json_bytes import json_bytes
from tailrace.sources.edges.committer import Committer, Full, Outgoing
from tailrace.sources.edges.declare import HTTP
from tailrace.sources.edges.figures import Figures
from tailrace.sources.edges.registered import BadSchema, BadValue, Format, Formats, framed

CONTENT_TYPE = "application/vnd.kafka.v2+json"
JSON = "application/vnd.kafka.json.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
REGISTERED = {
    "application/vnd.kafka.avro.v2+json": "AVRO",
    "application/vnd.kafka.jsonschema.v2+json": "JSON",
    "application/vnd.kafka.protobuf.v2+json": "PROTOBUF",
}
ANSWER_SECONDS = 30.0
RECORDS_LIMIT = 10_000
_FIELDS = {"key", "value", "partition", "headers", "timestamp"}


class Refused(Exception):
    """Kafka's REST proxy's code, whose first three digits are the status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Producing:
    """Answers requests. Safe from several threads."""

    def __init__(self, edge: HTTP, log: Log, figures: Figures) -> None:
        self._edge = edge
        self._log = log
        self._figures = figures
        self._token = None if edge.token is None else resolve(edge.token)
        self._formats = (
            None if edge.registry is None else Formats(Schemas.at(resolve(edge.registry)))
        )
        self._committer = Committer(log, f"tailrace.edge.{edge.name}")
        self._partitions: dict[str, int] = {}

    def start(self) -> None:
        for topic in self._edge.topics:
            self._log.ensure_topic(topic)
            self._partitions[topic] = self._count(topic)
        self._committer.start()

    def close(self) -> None:
        self._committer.close()

    def __call__(self, request: Request) -> Answer:
        try:
            return _answer(self._route(request))
        except Refused as refused:
            if request.method == "POST":
                self._figures.refused(1)
            return refuse(refused.code, refused.message)

    def _route(self, request: Request) -> Any:
        given = request.headers.get("authorization", "")
        if self._token is not None and not hmac.compare_digest(
            given.encode(), f"Bearer {self._token}".encode()
        ):
            raise Refused(40101, "the token is missing or wrong")
        match request.path:
            case ("topics",) if request.method == "GET":
                return sorted(self._edge.topics)
            case ("topics", topic) if request.method == "POST":
                return self._produce(topic, None, request)
            case ("topics", topic, "partitions", number) if request.method == "POST":
                return self._produce(topic, self._partition(topic, number), request)
            case ("topics", *_):
                raise Refused(405, "HTTP 405 Method Not Allowed")
        raise Refused(404, "HTTP 404 Not Found")

    def _produce(self, topic: str, partition: int | None, request: Request) -> dict[str, Any]:
        if topic not in self._edge.topics:
            raise Refused(40401, "Topic not found.")
        records, ids = self._records(topic, partition, request)
        self._figures.received(len(records))
        try:
            found = self._committer.submit(records).result(ANSWER_SECONDS)
        except RecordTooLargeError as error:
            raise Refused(42205, f"a record is too large for its topic: {error.detail}") from error
        except Full:
            raise Refused(50302, "too many requests wait; try again") from None
        except TimeoutError:
            raise Refused(
                50403, "the log has not answered; the records may or may not be written"
            ) from None
        except (TailraceError, OSError) as error:
            raise Refused(50302, f"the log does not take the records now: {error}") from error
        self._figures.accepted(len(found))
        offsets = [
            {"partition": one.partition, "offset": one.offset, "error_code": None, "error": None}
            for one in found
        ]
        return {"offsets": offsets, "key_schema_id": ids[0], "value_schema_id": ids[1]}

    def _records(
        self, topic: str, partition: int | None, request: Request
    ) -> tuple[list[Outgoing], tuple[int | None, int | None]]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        registered = REGISTERED.get(kind)
        if registered is not None and self._formats is None:
            raise Refused(415, "this edge has no registry (registry= of its declaration)")
        if registered is None and kind not in (JSON, BINARY, "application/json"):
            raise Refused(415, f"the type is {JSON} or {BINARY}")
        try:
            found = orjson.loads(request.body)
        except orjson.JSONDecodeError as error:
            raise Refused(400, f"the body is no JSON: {error}") from None
        given = found.get("records") if isinstance(found, dict) else None
        if not isinstance(given, list) or not given:
            raise Refused(422, '"records" must be a list of at least one record')
        if len(given) > RECORDS_LIMIT:
            raise Refused(413, f"more than {RECORDS_LIMIT:,} records")
        coding = _Plain(kind == BINARY)
        if registered is not None:
            keyed = any(isinstance(one, dict) and one.get("key") is not None for one in given)
            coding = _Registered(
                self._format(registered, topic, "key", found) if keyed else None,
                self._format(registered, topic, "value", found),
            )
        return [self._record(topic, partition, one, coding) for one in given], coding.ids

    def _format(self, kind: str, topic: str, part: str, body: dict[str, Any]) -> Format:
        assert self._formats is not None
        text, number = body.get(f"{part}_schema"), body.get(f"{part}_schema_id")
        if number is None and text is None:
            code = 42201 if part == "key" else 42202
            raise Refused(code, f"{part}s need {part}_schema or {part}_schema_id")
        given: Any = text if number is None else number
        if not (isinstance(given, str) or (_whole(given) and 0 <= given < 2**31)):
            raise Refused(42205, f"{part}_schema is a text, {part}_schema_id a number")
        try:
            return self._formats.find(kind, f"{topic}-{part}", given)
        except BadSchema as error:
            raise Refused(42205, f"the schema of {part}s is not taken: {error}") from None
        except TailraceError as error:
            raise Refused(50302, f"the schema registry does not answer: {error}") from error

    def _record(self, topic: str, partition: int | None, one: Any, coding: _Plain) -> Outgoing:
        if not isinstance(one, dict):
            raise Refused(422, "a record is an object")
        unknown = one.keys() - _FIELDS
        if unknown:
            raise Refused(422, f"Unrecognized field: {sorted(unknown)[0][:100]}")
        if "value" not in one:
            raise Refused(422, 'a record needs its "value", which may be null')
        chosen = one.get("partition", partition)
        if chosen is not None and (partition is not None and chosen != partition):
            raise Refused(422, "the path and the record name two partitions")
        if chosen is not None:
            chosen = self._partition(topic, str(chosen))
        timestamp = one.get("timestamp")
        if timestamp is not None and (not _whole(timestamp) or not 0 <= timestamp < 2**53):
            raise Refused(422, '"timestamp" is a number of milliseconds')
        headers = one.get("headers") or []
        if not isinstance(headers, list) or not all(
            isinstance(each, dict) and isinstance(each.get("name"), str) for each in headers
        ):
            raise Refused(422, '"headers" is a list of {"name": …, "value": …}')
        return Outgoing(
            topic,
            coding.value(one["value"]),
            coding.key(one.get("key")),
            tuple((each["name"], _header(each.get("value"), coding.binary)) for each in headers),
            chosen,
            timestamp,
        )

    def _partition(self, topic: str, text: str) -> int:
        count = self._partitions.get(topic)
        if count is None:
            raise Refused(40401, "Topic not found.")
        if not (text.isascii() and text.isdecimal()) or len(text) > 9:
            raise Refused(40402, "Partition not found.")
        if int(text) >= count:
            count = self._partitions[topic] = self._count(topic)  # some may have been added
        if int(text) >= count:
            raise Refused(40402, "Partition not found.")
        return int(text)

    def _count(self, topic: str) -> int:
        try:
            found = self._log.topic(topic)
        except TailraceError as error:
            raise Refused(50302, f"the log does not answer: {error}") from error
        return 0 if found is None else len(found.leaders)


class _Plain:
    """Keys and values as JSON or base64."""

    ids: tuple[int | None, int | None] = (None, None)

    def __init__(self, binary: bool) -> None:
        self.binary = binary

    def key(self, value: Any) -> bytes | None:
        return _bytes(value, self.binary)

    def value(self, value: Any) -> bytes | None:
        return _bytes(value, self.binary)


class _Registered(_Plain):
    """Keys and values by schemas of a registry; null is a tombstone."""

    def __init__(self, keys: Format | None, values: Format) -> None:
        super().__init__(False)
        self._keys, self._values = keys, values
        self.ids = (None if keys is None else keys[0], values[0])

    def key(self, value: Any) -> bytes | None:
        return None if value is None or self._keys is None else _framed(self._keys, value)

    def value(self, value: Any) -> bytes | None:
        return None if value is None else _framed(self._values, value)


def _framed(found: Format, value: Any) -> bytes:
    try:
        return framed(found, value)
    except BadValue as error:
        raise Refused(42203, f"a value does not fit its schema: {error}") from None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _bytes(value: Any, binary: bool) -> bytes | None:
    if value is None:
        return None
    if not binary:
        return json_bytes(value)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise Refused(42205, "keys and values of this type are base64") from None


def _header(value: Any, binary: bool) -> bytes | None:
    return value.encode() if isinstance(value, str) and not binary else _bytes(value, binary)


def _answer(found: Any) -> Answer:
    return Answer(200, orjson.dumps(found), CONTENT_TYPE)


def refuse(code: int, message: str) -> Answer:
    body = orjson.dumps({"error_code": code, "message": message})
    return Answer(int(str(code)[:3]), body, CONTENT_TYPE)
