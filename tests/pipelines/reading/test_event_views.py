"""Views over event topics: the events as a stream, each type alone, the published states."""

from __future__ import annotations

import contextlib
import linecache
import pickle
import random
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

import tailrace as tr
from pipelines.streams.stream_harness import run_to_end
from pipelines.ticks.test_ticks import in_process
from servers.accounts import Account, declare, deposit, open_account, withdraw
from tailrace import config
from tailrace.client.log import Log
from tailrace.errors import TailraceError
from tailrace.facts.declare import Events
from tailrace.facts.errors import EventsDeclarationError
from tailrace.facts.opened import OpenedEvents
from tailrace.facts.spark_types import columns_of
from tailrace.facts.topic import SETTINGS
from tailrace.pipelines.compiler import compile_views
from tailrace.pipelines.process.runner import Declared, RunningStreams, run_ticks
from tailrace.pipelines.reading import catalog
from tailrace.pipelines.reading.decode import decode
from tailrace.pipelines.reading.forms import Piece, form_records
from tailrace.pipelines.reading.reader import LogReader, Range, Records
from tailrace.pipelines.streams.inputs import Inputs
from tailrace.pipelines.streams.queries import Streams, StreamSettings
from tailrace.pipelines.ticks.driver import TickSettings, last_row
from tailrace.pipelines.ticks.levels import run_levels_here
from tailrace.pipelines.ticks.project import ProjectTicks
from tailrace.project.event_tables import event_tables
from tailrace.records.decode_columns import RecordColumns
from tailrace.records.position import covered, parse_position
from tailrace.telemetry.part import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "by_type": "SELECT type, count(*) AS n FROM {t} GROUP BY type",
    "paid_in": "SELECT stream, sum(amount) AS total, count(*) AS n FROM {t}.deposited GROUP BY stream",
    "openings": "SELECT stream, version, at, name, actor, Opened.owner FROM {t} WHERE type = 'Opened'",
    "balances": "SELECT stream, version, owner, balance FROM {t}.state",
}


class Project:
    """Views of one event topic, ticking in this process."""

    def __init__(self, address: str, directory: Path, declared: Events[Any]) -> None:
        self.address, self.directory, self.declared = address, directory, declared
        self.name = f"p{uuid.uuid4().hex[:8]}"
        self.run = in_process

    @contextlib.contextmanager
    def running(self, **sql: str) -> Iterator[ProjectTicks]:
        topic = f"`{self.declared.name}`"
        views = [tr.view(f"{self.name}_{n}", text.format(t=topic)) for n, text in sql.items()]
        tables = event_tables([self.declared])
        graph = compile_views(views, tables)
        settings = TickSettings(
            self.name, self.address, str(self.directory / "state"),
            str(self.directory / "cache"), shards=3,
        )  # fmt: skip
        # Workers of Spark get their graph as bytes.
        graph = pickle.loads(pickle.dumps(graph))
        plain = frozenset(table.topic for table in tables if table.topic in graph.tables)
        ticks = ProjectTicks(graph, settings, self.run, plain=plain)
        try:
            ticks.start()
            yield ticks
        finally:
            ticks.close()

    def reach(self, ticks: ProjectTicks, position: str | None) -> None:
        assert position is not None
        for _ in range(300):
            if not ticks.waiting and self.has_reached(ticks, position):
                return
            ticks.step(0.02)
        raise AssertionError(f"never reached {position}: {ticks.main.last}")

    def has_reached(self, ticks: ProjectTicks, position: str) -> bool | None:
        last = ticks.main.last
        return covered(
            parse_position(position), project=self.name, tick=last.number,
            positions=last.positions, inputs=last.inputs,
        )  # fmt: skip

    def rows(self, view: str) -> list[dict[str, Any]]:
        """A view as a follower shows it."""
        with LogReader(self.address) as reader:
            tick = last_row(reader, self.name)
            assert tick is not None
            info = tick.views[f"{self.name}_{view}"]
            shown: dict[bytes, dict[str, Any]] = {}
            ranges = [Range(info.topic, p, 0, end) for p, end in tick.ends[info.topic].items()]
            for records in reader.read(ranges):
                for key, value in zip(records.keys, records.values, strict=True):
                    assert key is not None
                    shown.pop(key, None)
                    if value is not None:
                        shown[key] = orjson.loads(value)["row"]
        return sorted(shown.values(), key=orjson.dumps)


@pytest.fixture
def log(log_address: str) -> Iterator[Log]:
    with tr.connect(log_address) as made:
        yield made


@pytest.fixture
def declared() -> Events[Account]:
    return declare(f"acc-{uuid.uuid4().hex[:8]}", publish=True)


@pytest.fixture
def bank(log: Log, declared: Events[Account], tmp_path: Path) -> Iterator[OpenedEvents[Account]]:
    with declared.open(log, index=tmp_path / "index") as opened:
        yield opened


@pytest.fixture
def project(log_address: str, tmp_path: Path, declared: Events[Account]) -> Project:
    return Project(log_address, tmp_path, declared)


def expected(bank: OpenedEvents[Account], streams: str) -> dict[str, list[dict[str, Any]]]:
    """What the views of VIEWS hold, told from the histories."""
    facts = [fact for stream in streams for fact in bank.history(stream)]
    kinds = {fact.type for fact in facts}
    paid = {s: [f.event.amount for f in facts if (f.stream, f.type) == (s, "Deposited")] for s in streams}  # fmt: skip
    states = [(stream, bank.state(stream)) for stream in streams]
    found: dict[str, list[dict[str, Any]]] = {
        "by_type": [{"type": k, "n": sum(f.type == k for f in facts)} for k in kinds],
        "paid_in": [{"stream": s, "total": sum(a), "n": len(a)} for s, a in paid.items() if a],
        "openings": [
            {
                "stream": f.stream,
                "version": f.version,
                "at": f.at.isoformat(),
                "name": f.name,
                "actor": f.actor,
                "owner": f.event.owner,
            }
            for f in facts
            if f.type == "Opened"
        ],
        "balances": [
            {
                "stream": s,
                "version": at.version,
                "owner": at.value.owner,
                "balance": at.value.balance,
            }
            for s, at in states
            if at.version
        ],
    }
    return {name: sorted(rows, key=orjson.dumps) for name, rows in found.items()}


@pytest.mark.parametrize("levels", [False, True], ids=["one task", "levels"])
def test_views_follow_events_types_and_states(
    project: Project, bank: OpenedEvents[Account], levels: bool
) -> None:
    if levels:
        project.run = run_levels_here  # type: ignore[assignment]
    chance = random.Random(7)
    with project.running(**VIEWS) as ticks:
        for _ in range(4):
            for _ in range(12):
                stream = chance.choice("abcd")
                match chance.randrange(3):
                    case 0:
                        bank.execute(open_account, stream, owner=stream, actor="x")
                    case 1:
                        bank.execute(deposit, stream, amount=chance.randrange(50))
                    case _:
                        with contextlib.suppress(tr.Rejected):
                            bank.execute(withdraw, stream, amount=chance.randrange(50))
            position = bank.execute(deposit, "a", amount=1).position
            for stream in "abcd":  # every partition has been read up to here
                project.reach(ticks, bank.state(stream).position or position)
            found = {name: project.rows(name) for name in VIEWS}
            for row in found["openings"]:
                row["at"] = datetime.fromisoformat(row["at"]).isoformat()
            wanted = expected(bank, "abcd")
            assert {name: sorted(rows, key=orjson.dumps) for name, rows in found.items()} == wanted


def test_a_position_of_an_event_is_covered_by_a_view_of_states(
    project: Project, bank: OpenedEvents[Account]
) -> None:
    with project.running(balances=VIEWS["balances"]) as ticks:
        for number in range(1, 6):
            done = bank.execute(deposit, "a", amount=10)
            project.reach(ticks, done.position)
            (row,) = project.rows("balances")
            assert (row["version"], row["balance"]) == (number, number * 10)


def test_events_are_never_read_past_their_states(
    project: Project, bank: OpenedEvents[Account], log: Log
) -> None:
    """While a transaction with states is open, nothing behind it counts as read."""
    done = bank.execute(deposit, "a", amount=10)
    partition = bank.partition_of("a")
    states = project.declared.state_topic
    with project.running(balances=VIEWS["balances"], by_type=VIEWS["by_type"]) as ticks:
        project.reach(ticks, done.position)
        # Another producer holds the end of the table of states back, as an unfinished
        # transaction of the owner would.
        writer = log.transactional_writer("another")
        writer.init()
        writer.send(states, partition, b"other", b'{"owner":"","balance":0,"events":0}')
        writer.flush()
        later = bank.execute(deposit, "a", amount=10)
        assert later.position is not None
        for _ in range(5):
            ticks.step(0.02)
            assert project.has_reached(ticks, later.position) is False
            (row,) = project.rows("balances")
            assert row["balance"] == 10
        writer.abort()
        writer.close()
        project.reach(ticks, later.position)
        (row,) = project.rows("balances")
        assert row["balance"] == 20


def test_a_new_view_of_states_is_filled_beside_one_of_events(
    project: Project, bank: OpenedEvents[Account]
) -> None:
    for number in range(5):
        done = bank.execute(deposit, "ab"[number % 2], amount=5)
    with project.running(by_type=VIEWS["by_type"]) as ticks:
        project.reach(ticks, done.position)
    for number in range(5):
        done = bank.execute(deposit, "ab"[number % 2], amount=5)
    with project.running(by_type=VIEWS["by_type"], balances=VIEWS["balances"]) as ticks:
        assert ticks.waiting == [f"{project.name}_balances"]
        project.reach(ticks, done.position)
        found = {name: project.rows(name) for name in ("by_type", "balances")}
        wanted = expected(bank, "ab")
        assert found == {name: wanted[name] for name in found}


# Versions and what cannot be read -----------------------------------------------------------


@dataclass(frozen=True)
class Bought:
    item: str
    price: Decimal
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    place: dict[str, int] | None = None


@dataclass(frozen=True)
class Closed:
    pass


@dataclass(frozen=True)
class Total:
    price: Decimal = Decimal(0)


def shop(name: str, *, older: bool = False) -> Events[Total]:
    declared = tr.events(name, Bought | Closed, state=Total, partitions=1)

    @declared.evolve
    def total(state: Total, event: object) -> Total:
        match event:
            case Bought():
                return Total(state.price + event.price)
            case _:
                return state

    if not older:

        @declared.upcast("Bought", 1)
        def _(old: dict[str, Any]) -> dict[str, Any]:
            return {"item": old["thing"], "price": old["cents"]}

        @declared.upcast("Bought", 2)
        def _(old: dict[str, Any]) -> dict[str, Any]:
            return {**old, "price": str(Decimal(old["price"]) / 100)}

    return declared


def event(
    kind: bytes, value: bytes, version: int = 1
) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    meta = b'{"id":"c/0","command":"c","actor":"ann"}'
    headers = (
        ("tailrace.event", kind),
        ("tailrace.version", b"%d" % version),
        ("tailrace.meta", meta),
    )
    return value, headers


def rows_of(declared: Events[Any], *given: tuple[bytes, tuple[Any, ...]]) -> tuple[list[Any], list[Any]]:  # fmt: skip
    records = Records(declared.name, 0)
    for offset, (value, headers) in enumerate(given):
        records.offsets.append(offset)
        records.keys.append(b"s")
        records.values.append(value)
        records.timestamps.append(1_700_000_000_000 + offset)
        records.headers.append(headers)
    (table,) = pickle.loads(pickle.dumps(event_tables([declared])))
    decoded = decode(table, records, 4)
    return decoded.rows.to_pylist(), [(one.offset, one.reason) for one in decoded.dead]


def test_events_of_older_versions_are_brought_up() -> None:
    rows, dead = rows_of(
        shop("shop"),
        event(b"Bought", b'{"thing":"pen","cents":150}'),
        event(b"Bought.2", b'{"item":"ink","price":"250"}', 2),
        event(
            b"Bought.3",
            b'{"item":"cap","price":"9.5","at":"2026-01-02T03:04:05Z","tags":["a"],"place":{"x":1}}',
            3,
        ),
        event(b"Closed", b"{}", 4),
    )
    assert dead == []
    bought = [row["Bought"] for row in rows]
    assert [b and (b["item"], b["price"]) for b in bought] == [
        ("pen", Decimal("1.5")),
        ("ink", Decimal("2.5")),
        ("cap", Decimal("9.5")),
        None,
    ]
    assert bought[2]["at"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert (bought[2]["tags"], bought[2]["place"]) == (["a"], [("x", 1)])
    assert [(row["type"], row["version"], row["actor"]) for row in rows] == [
        ("Bought", 1, "ann"), ("Bought", 2, "ann"), ("Bought", 3, "ann"), ("Closed", 4, "ann"),
    ]  # fmt: skip


def test_what_is_no_event_of_this_code_is_a_dead_letter() -> None:
    rows, dead = rows_of(
        shop("shop", older=True),
        event(b"Bought.2", b'{"item":"ink","price":"250"}'),
        event(b"Lost", b"{}", 2),
        (b"{}", ()),
        event(b"Bought", b"not json", 3),
        event(b"Bought", b'{"item":"ink","price":"1"}', 4),
    )
    assert [row["version"] for row in rows] == [4]
    assert [offset for offset, _ in dead] == [0, 1, 2, 3]
    assert "Bought.2 is newer than this code" in dead[0][1]
    assert dead[1][1] == "the event Lost is not declared"
    assert dead[2][1] == "the record is no event"


@dataclass(frozen=True, slots=True)
class Joined:
    person: str
    born: Annotated[int | None, tr.personal("person")]


def test_a_sealed_field_is_text_whatever_it_was_before() -> None:
    declared = tr.events("people", Joined, state=Total, partitions=1)
    sealed = "tr1.0123456789abcdef.c2VhbGVk"
    value = b'{"person":"p1","born":"%s"}' % sealed.encode()
    rows, dead = rows_of(declared, event(b"Joined", value), event(b"Joined", b'{"person":"p2","born":null}', 2))  # fmt: skip
    assert dead == []
    assert [row["Joined"] for row in rows] == [
        {"person": "p1", "born": sealed},
        {"person": "p2", "born": None},
    ]


def test_names_that_sql_cannot_tell_apart_are_refused() -> None:
    @dataclass(frozen=True)
    class Stream:
        n: int

    declared = tr.events("rivers", Stream, state=Total, partitions=1)
    with pytest.raises(EventsDeclarationError) as wrong:
        event_tables([declared])
    assert "two of its columns are called 'Stream'" in wrong.value.detail


def test_a_name_that_is_no_type_is_an_error_with_the_types() -> None:
    view = tr.view("v", "SELECT * FROM shop.sold")
    with pytest.raises(TailraceError) as wrong:
        compile_views([view], event_tables([shop("shop")]))
    assert "shop.bought" in wrong.value.render()


def test_types_of_fields_as_sql_sees_them() -> None:
    assert dict(columns_of(Bought)) == {
        "item": "STRING",
        "price": "DECIMAL(38,18)",
        "at": "TIMESTAMP",
        "tags": "ARRAY<STRING>",
        "place": "MAP<STRING, BIGINT>",
    }
    (table,) = event_tables([shop("shop")])
    assert table.schema.field("Bought").type.field("price").type == pa.decimal128(38, 18)
    assert "Closed" not in table.schema.names  # it has no fields


@pytest.mark.spark
def test_workers_of_spark_bring_older_events_up(
    log: Log, log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"shop{uuid.uuid4().hex[:8]}"
    declared = shop(name)
    log.create_topic(name, 1, SETTINGS)
    value, headers = event(b"Bought", b'{"thing":"pen","cents":150}')
    with log.producer() as producer:
        producer.send(name, value, key=b"s", headers=list(headers))
    project = Project(log_address, tmp_path, declared)
    view = tr.view(f"{name}_sold", f"SELECT item, price FROM {name}.bought")
    (tmp_path / "tailrace.toml").write_text('[project]\nname = "p"\n')
    part = Part("p", "pipelines", name, log_address, tmp_path / ".tailrace")
    settings = config.load(tmp_path)
    what = Declared([view], [], [], settings, tables=event_tables([declared]))
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with contextlib.closing(RunningStreams([], part, spark, settings)) as running:
                run_ticks(what, running, part, spark)
        except BaseException as problem:
            failed.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with declared.open(log, index=tmp_path / "new") as bank:
            done = bank.append("s", [Bought("cap", Decimal("9.5"))])
        assert done.position is not None
        wanted = parse_position(done.position).number
        project.name = name
        with LogReader(log_address) as reader:
            for _ in range(600):
                row = last_row(reader, name)
                if row is not None and row.inputs.get(name, {}).get(0, 0) > wanted:
                    break
                assert not failed, failed
                threading.Event().wait(0.1)
        rows = [(row["item"], Decimal(row["price"])) for row in project.rows("sold")]
        assert sorted(rows) == [("cap", Decimal("9.5")), ("pen", Decimal("1.5"))]
    finally:
        part.stopping.set()
        thread.join(60)
    assert not failed, failed


def test_a_changed_upcast_makes_another_graph_and_comments_do_not() -> None:
    def graph_of(source: str) -> str:
        """Of the views of a topic whose upcast has this source."""
        declared = tr.events("shop", Bought, state=Total, partitions=1)
        lines = source.splitlines(keepends=True)
        name = f"<upcast {len(linecache.cache)}>"
        linecache.cache[name] = (len(source), None, lines, name)
        names: dict[str, Any] = {}
        exec(compile(source, name, "exec"), names)
        declared.upcast("Bought", 1)(names["step"])
        view = tr.view("v", "SELECT item, price FROM shop.bought")
        return compile_views([view], event_tables([declared])).fingerprint

    first = graph_of("def step(old):\n    return {**old, 'price': '1'}\n")
    assert graph_of("def step(old):\n    # as before\n    return {**old, 'price': '1'}\n") == first
    assert graph_of("def step(old):\n    return {**old, 'price': '2'}\n") != first


def test_an_erased_event_is_a_row_with_nothing_of_its_own() -> None:
    rows, dead = rows_of(
        shop("shop"),
        event(b"Erased", b"{}", 1),
        event(b"Bought.3", b'{"item":"book","price":"1.50"}', 2),
    )
    assert dead == []
    assert [(row["version"], row["type"]) for row in rows] == [(1, "Erased"), (2, "Bought")]
    assert rows[0]["Bought"] is None
    assert rows[1]["Bought"]["item"] == "book"


def test_events_are_rows_of_a_stream_and_what_is_none_is_told() -> None:
    declared = shop("shop")
    (table,) = event_tables([declared])
    given = tr.stream(declared, name="sold")(lambda events: events)
    inputs = Inputs(catalog.Catalog({}, {}), _no_schema, events={"shop": table})
    options = inputs.options(given, declared)
    assert (options["topics"], options["form"], options["start"]) == ("shop", "events", "earliest")
    values, headers = zip(
        event(b"Bought", b'{"thing":"pen","cents":150}', 1),
        event(b"Sold", b"{}", 2),
        event(b"Closed", b"{}", 3),
        strict=True,
    )
    columns = RecordColumns(
        np.array([7, 8, 9]), np.array([1_700_000_000_000] * 3),
        pa.array([b"s"] * 3, pa.binary()), pa.array(values, pa.binary()), list(headers),
    )  # fmt: skip
    rows, bad = form_records(Piece("shop", 0, columns), options)
    assert [(each["stream"], each["version"], each["type"]) for each in rows.to_pylist()] == [
        ("s", 1, "Bought"),
        ("s", 3, "Closed"),
    ]
    assert rows.to_pylist()[0]["Bought"]["price"] == Decimal("1.5")
    assert [(each.index, each.reason) for each in bad] == [(1, "the event Sold is not declared")]


def _no_schema(stream: Any) -> Any:
    raise AssertionError(stream)


@pytest.mark.spark
def test_a_stream_reads_an_event_topic(
    log: Log, log_address: str, tmp_path: Path, spark: SparkSession
) -> None:
    name = f"shop{uuid.uuid4().hex[:8]}"
    declared = shop(name)
    with declared.open(log, index=tmp_path / "index") as bank:
        bank.append("s", [Bought("cap", Decimal("9.5")), Closed()])
        bank.append("t", [Bought("pen", Decimal("1.5"))])

    @tr.stream(declared, name=f"{name}_sold", key="stream", trigger="available now")
    def sold(events: Any) -> Any:
        return events.where("type = 'Bought'").selectExpr("stream", "version", "Bought.item")

    tables = {table.topic: table for table in event_tables([declared])}
    settings = StreamSettings(log_address, tmp_path / "streams", events=tables)
    run_to_end(Streams(spark, catalog.Catalog({}, {}), settings), sold)
    found = [orjson.loads(each.value) for each in log.read(f"{name}_sold")]
    assert sorted(found, key=lambda row: str(row["stream"])) == [
        {"stream": "s", "version": 1, "item": "cap"},
        {"stream": "t", "version": 1, "item": "pen"},
    ]
