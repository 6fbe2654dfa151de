from __future__ import annotations

from datetime import timedelta

import pytest

from servers.receivers import MailReceiver
from tailrace.sinks import Email
from tailrace.sinks.errors import TargetUnavailableError
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.testing.sink_contract import SinkContract, Target


class MailTarget(Target):
    def __init__(self, directory):
        super().__init__(directory)
        self.receiver = MailReceiver()

    def declare(self, view, **options):
        options.setdefault("start", "earliest")
        return Email(
            f"smtp://127.0.0.1:{self.receiver.port}",
            to=("a@example.org", "b@example.org"),
            **options,
        )

    def close(self):
        self.receiver.stop()


@pytest.fixture
def place(tmp_path):
    made = MailTarget(tmp_path)
    yield made
    made.close()


@pytest.fixture
def writer():
    made = TickWriter(MemoryLog(), partitions=1)
    made.declare("alarms", ["id"], [("id", "BIGINT"), ("name", "STRING")])
    return made


contract = SinkContract()


def row(n, name="fire"):
    return ({"id": n}, {"id": n, "name": name})


def test_every_change_is_a_mail(place, writer):
    writer.tick({"alarms": [row(1), ({"id": 1}, None)]})
    contract.deliver(place, contract.copy(place, "alarms"), writer)
    first, second = place.receiver.mails
    assert first["Subject"] == "alarms: 1"
    assert first["To"] == "a@example.org, b@example.org"
    assert "fire" in first.get_content()
    assert "deleted" in second.get_content()
    assert first["Message-ID"] != second["Message-ID"]


def test_templates_are_filled_from_the_row(place, writer):
    writer.tick({"alarms": [row(1, "a\r\nBcc: everybody@example.org")]})
    copy = contract.copy(place, "alarms", subject="{name} in {view}", body="id {id}")
    contract.deliver(place, copy, writer)
    mail = place.receiver.mails[0]
    assert mail["Bcc"] is None
    assert mail["Subject"] == "a Bcc: everybody@example.org in alarms"
    assert mail.get_content().split() == ["id", "1"]


def test_a_template_that_does_not_fit_is_a_dead_letter(place, writer):
    writer.tick({"alarms": [row(1)]})
    copy = contract.copy(place, "alarms", subject="{nothing}")
    assert contract.deliver(place, copy, writer).refused == 1


def test_a_digest_gathers_changes(place, writer):
    writer.tick({"alarms": [row(n) for n in range(5)]})
    copy = contract.copy(place, "alarms", digest=timedelta(hours=1))
    delivery = contract.deliver(place, copy, writer)
    assert [mail["Subject"] for mail in place.receiver.mails] == ["alarms: 5 changes"]
    writer.tick({"alarms": [row(9)]})
    assert delivery.step(0) == 0
    assert len(place.receiver.mails) == 1


def test_mail_begins_with_the_next_change(place, writer):
    writer.tick({"alarms": [row(1)]})
    copy = contract.copy(place, "alarms", start="now")
    contract.deliver(place, copy, writer)
    writer.tick({"alarms": [row(2)]})
    contract.deliver(place, copy, writer)
    assert [mail["Subject"] for mail in place.receiver.mails] == ["alarms: 2"]


def test_a_mail_that_is_refused_is_put_aside(place, writer):
    place.receiver.refuse = b"poison"
    writer.tick({"alarms": [row(1), row(2, "poison"), row(3)]})
    delivery = contract.deliver(place, contract.copy(place, "alarms"), writer)
    assert delivery.refused == 1
    assert {mail["Subject"] for mail in place.receiver.mails} == {"alarms: 1", "alarms: 3"}


def test_mails_wait_while_the_server_is_down(place, writer):
    writer.tick({"alarms": [row(1)]})
    copy = contract.copy(place, "alarms")
    place.receiver.stop()
    with pytest.raises(TargetUnavailableError):
        contract.deliver(place, copy, writer)
    place.receiver.start()
    contract.deliver(place, copy, writer)
    assert len(place.receiver.mails) == 1
