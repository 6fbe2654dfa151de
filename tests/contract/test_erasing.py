"""A subject is erased on Apache Kafka as it is on our broker (tests/facts/test_erasing.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

import tailrace as tr
from tailrace.facts.erasing import erase_subject, verify
from tailrace.facts.erasures import Erasures
from tailrace.facts.errors import ErasureRefusedError, SubjectErasedError
from tailrace.facts.excising import erase_key, erase_records
from tailrace.facts.personal import ERASED
from tailrace.facts.sealing import Keys

SECRET = "a secret of the tests, long enough to be one"


@dataclass(frozen=True, slots=True)
class Registered:
    customer: str
    name: Annotated[str, tr.personal("customer")]


@dataclass(frozen=True, slots=True)
class Customer:
    name: str = ""


@pytest.mark.clients
def test_a_subject_is_erased_on_kafka(kafka: str, name: str, tmp_path: Path) -> None:
    customers = tr.events(name, Registered, state=Customer, partitions=1)

    @customers.evolve
    def evolve(state: Customer, event: Registered) -> Customer:
        match event:
            case Registered(_, name):
                return Customer(name)

    with tr.connect(kafka) as log:
        keys = Keys(log, SECRET)
        try:
            with customers.open(log, index=tmp_path, key=SECRET) as shop:
                shop.append("c1", [Registered(f"{name}-17", "Wilhelmina Zonderling")])
                assert shop.state("c1").value.name == "Wilhelmina Zonderling"
                done = erase_subject(log, keys, f"customer:{name}-17", "why", patience=120)
                assert (done.state, done.counts) == ("done", {name: 1})
                with pytest.raises(SubjectErasedError):
                    shop.append("c2", [Registered(f"{name}-17", "Wilhelmina")])
            with customers.open(log, index=tmp_path / "fresh", key=SECRET) as shop:
                assert shop.state("c1").value.name == ERASED
            assert verify(log, keys, done.id, needle="Wilhelmina Zonderling").good
        finally:
            keys.close()


@pytest.mark.clients
def test_kafka_cannot_cut_records_out_and_it_is_told(kafka: str, name: str) -> None:
    with tr.connect(kafka) as log:
        book = Erasures(log)
        try:
            log.create_topic(name, 1)
            with log.producer() as producer:
                producer.send(name, key=b"1", value=b"kept")
            with pytest.raises(ErasureRefusedError, match="Apache Kafka") as refused:
                erase_records(log, book, [f"log:{name}/0:0"], "why")
            assert "personal" in refused.value.hint
            with pytest.raises(ErasureRefusedError):
                erase_key(log, book, name, "1", "why")
            assert [each.value for each in log.read(name)] == [b"kept"]
        finally:
            book.close()
