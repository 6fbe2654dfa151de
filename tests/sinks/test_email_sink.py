from __future__ import annotations

from base64 import b64encode
from datetime import timedelta

import pytest

from servers.certificates import self_signed
from servers.receivers import MailReceiver
from tailrace.sinks import Email
from tailrace.sinks.errors import SinkFencedError, TargetRefusedError, TargetUnavailableError
from tailrace.testing.changelogs import MemoryLog, TickWriter
from tailrace.testing.crash import kill_at_line
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


def received(place):
    """The changes as somebody has them whose mail program drops repeated Message-IDs."""
    once = {mail["Message-ID"]: mail for mail in place.receiver.mails}
    return [line for mail in once.values() for line in mail.get_content().split()]


@pytest.mark.crash
@pytest.mark.parametrize("options", [{}, {"digest": timedelta(milliseconds=1)}])
def test_a_kill_at_any_line_loses_no_mail_and_repeats_only_known_ones(place, writer, options):
    writer = TickWriter(MemoryLog(), partitions=3)
    writer.declare("alarms", ["id"], [("id", "BIGINT"), ("name", "STRING")])
    copy = contract.copy(place, "alarms", batch_rows=4, body="{id}:{name}", **options)
    expected, kills = [], 0
    steps = [("tailrace/sinks/", line) for line in range(3, 400, 40)]
    steps += [("tailrace/sinks/local.py", line) for line in range(1, 70, 2)]
    for number, (files, line) in enumerate(steps):
        rows = [row(n, f"{number}") for n in range(number % 7 + 1)]
        expected += [f"{n}:{number}" for n in range(number % 7 + 1)]
        writer.tick({"alarms": rows})
        kills += kill_at_line(lambda: contract.deliver(place, copy, writer), [files], line)
        if number % 3 == 0:  # what was begun must not grow by what comes later
            writer.tick({"alarms": [row(50, f"{number}")]})
            expected.append(f"50:{number}")
        contract.deliver(place, copy, writer)
        assert sorted(received(place)) == sorted(expected)
    repeated = len(place.receiver.mails) - len({m["Message-ID"] for m in place.receiver.mails})
    assert kills > 10
    assert repeated > 0
    for n in range(7):
        of_key = [text for text in received(place) if text.startswith(f"{n}:")]
        assert of_key == sorted(of_key, key=lambda text: int(text.partition(":")[2]))


def test_a_writer_that_was_replaced_sends_nothing(place, writer):
    copy = contract.copy(place, "alarms")
    zombie = contract.opened(place, copy, writer)
    writer.tick({"alarms": [row(1)]})
    zombie.step(0)
    writer.tick({"alarms": [row(2)]})
    contract.deliver(place, copy, writer)
    writer.tick({"alarms": [row(3)]})
    with pytest.raises(SinkFencedError):
        zombie.step(0)
    assert [mail["Subject"] for mail in place.receiver.mails] == ["alarms: 1", "alarms: 2"]


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


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
@pytest.mark.parametrize("certificate", ["localhost", "stranger"])
@pytest.mark.parametrize("cafile", [None, "localhost", "stranger"])
def test_the_password_goes_only_to_a_server_somebody_vouches_for(
    tmp_path, writer, scheme, certificate, cafile
):
    receiver = MailReceiver(self_signed() / certificate, at_once=scheme == "smtps")
    server = f"{scheme}://alerts:MailPW@127.0.0.1:{receiver.port}"
    if cafile:
        server += f"?cafile={self_signed() / cafile}.pem"
    place = MailTarget(tmp_path)
    place.declare = lambda view, **options: Email(server, to="a@example.org", start="earliest")
    writer.tick({"alarms": [row(1)]})
    password = b64encode(b"\0alerts\0MailPW")
    try:
        if certificate == cafile == "localhost":
            contract.deliver(place, contract.copy(place, "alarms"), writer)
            assert len(receiver.mails) == 1
            assert any(password in line for line in receiver.told)
        else:
            with pytest.raises(TargetRefusedError) as refused:
                contract.deliver(place, contract.copy(place, "alarms"), writer)
            assert "cafile" in refused.value.hint
            assert not receiver.mails
            assert not any(b"AUTH" in line for line in receiver.told)
    finally:
        place.close()
        receiver.stop()


def test_columns_may_have_the_names_that_templates_use(place):
    writer = TickWriter(MemoryLog(), partitions=1)
    columns = [("id", "BIGINT"), ("key", "STRING"), ("view", "STRING"), ("op", "STRING"), ("self", "STRING")]  # fmt: skip
    writer.declare("alarms", ["id"], columns)
    values = {"id": 1, "key": "k", "view": "w", "op": "o", "self": "s"}
    writer.tick({"alarms": [({"id": 1}, values)]})
    template = "{view} {key} {op} {row[view]} {row[key]} {row[op]} {self}"
    contract.deliver(place, contract.copy(place, "alarms", subject=template), writer)
    [mail] = place.receiver.mails
    assert mail["Subject"] == "alarms 1 upsert w k o s"


def test_a_template_that_does_not_fit_a_value_refuses_the_row(place, writer):
    writer.tick({"alarms": [row(1, None)]})
    copy = contract.copy(place, "alarms", body="{name:.2f}")
    made = contract.deliver(place, copy, writer)
    assert not place.receiver.mails
    assert made is not None
