"""Event types in a schema registry: what may change within a version, and what needs a new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import pytest

import tailrace as tr
from tailrace.client.errors import RegistryError
from tailrace.client.schemas import Schemas
from tailrace.facts.declare import Events
from tailrace.facts.errors import EventsIncompatibleError
from tailrace.facts.subjects import register, schema_of
from tailrace.registry.serve import RegistryServer, Settings


@dataclass(frozen=True)
class Place:
    city: str
    street: str = ""


@dataclass(frozen=True)
class Account:
    owner: str = ""


def declare(*fields: Any, upcast: bool = False) -> Events[Account]:
    opened = make_dataclass("Opened", fields)
    declared = tr.events("accounts", opened, state=Account, partitions=1)
    if upcast:
        declared.upcast("Opened", 1)(lambda old: old)
    return declared


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with (
        tr.open(tmp_path / "log") as log,
        RegistryServer(log, Settings("127.0.0.1:0")) as server,
    ):
        server.start()
        yield f"http://{server.address}"


def test_a_type_is_registered_once_and_changes_as_its_subject_allows(url: str) -> None:
    schemas = Schemas(url)
    register(schemas, declare(("owner", str), ("place", Place)))
    register(schemas, declare(("owner", str), ("place", Place)))
    assert schemas.subjects() == ["accounts-Opened"]
    assert schemas.versions("accounts-Opened") == [1]
    told = orjson.loads(schemas.version("accounts-Opened").text)
    assert told["required"] == ["owner", "place"]
    # A field with a default: old events are read with it.
    more = (("owner", str), ("place", Place), ("note", str, ""))
    register(schemas, declare(*more))
    assert schemas.versions("accounts-Opened") == [1, 2]
    # One without: old events cannot be read, and nothing is registered.
    with pytest.raises(EventsIncompatibleError) as refused:
        register(schemas, declare(("owner", str), ("place", Place), ("currency", str)))
    assert "accounts-Opened" in refused.value.message
    assert "currency" in refused.value.detail
    assert "upcast" in refused.value.hint
    with pytest.raises(EventsIncompatibleError):
        register(schemas, declare(("owner", int), ("place", Place), ("note", str, "")))
    assert schemas.versions("accounts-Opened") == [1, 2]
    # A new version of the type has a subject of its own.
    register(schemas, declare(("owner", str), ("currency", str), upcast=True))
    assert schemas.subjects() == ["accounts-Opened", "accounts-Opened.2"]


def test_sealed_fields_are_texts_in_the_schema() -> None:
    @dataclass(frozen=True)
    class Registered:
        customer: str
        born: Annotated[int | None, tr.personal("customer")] = None

    declared = tr.events("customers", Registered, state=Account, partitions=1)
    (kind,) = declared.types
    told = orjson.loads(schema_of(kind))
    assert told["properties"]["born"] == {"type": ["string", "null"]}
    assert told["additionalProperties"] is False


def test_a_registry_that_is_away_is_told() -> None:
    with pytest.raises(RegistryError):
        register(Schemas("http://127.0.0.1:1", timeout=1), declare(("owner", str)))


def test_check_tells_of_a_type_that_does_not_fit(url: str, tmp_path: Path) -> None:
    from tailrace.project import load
    from tailrace.project.subjects import look

    register(Schemas(url), _orders(("item", str)))
    (tmp_path / "pipelines").mkdir()
    text = f'[project]\nname = "shop"\n[registry]\nurl = "{url}"\n'
    (tmp_path / "tailrace.toml").write_text(text)
    (tmp_path / "pipelines" / "orders.py").write_text(ORDERS)
    (found,) = look(load.load(tmp_path), None)
    assert found.error is not None
    assert found.error.code == "events-incompatible"


def _orders(*fields: Any) -> Events[Account]:
    return tr.events("orders", make_dataclass("Placed", fields), state=Account, partitions=1)


ORDERS = """
from dataclasses import dataclass
import tailrace as tr

@dataclass
class Placed:
    item: str
    count: int

@dataclass
class Order:
    item: str = ""

orders = tr.events("orders", Placed, state=Order, partitions=1)

@orders.evolve
def order(state, event):
    match event:
        case Placed(item):
            return Order(item)
"""
