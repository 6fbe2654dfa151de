"""`tailrace quota` against a running broker."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from tailrace.broker.embedded import BrokerThread
from tailrace.cli.main import cli


def run(broker: BrokerThread, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["quota", *arguments, "--log", broker.address])


def test_quotas_are_set_listed_and_removed(broker: BrokerThread) -> None:
    assert run(broker, "list").output == "no quotas\n"
    done = run(broker, "set", "producer_byte_rate=1048576", "--client-id", "loader")
    assert done.output == "client-id loader: producer_byte_rate=1048576\n"
    run(broker, "set", "request_percentage=12.5", "--user", "*", "--client-id", "*")
    rows = json.loads(run(broker, "list", "--json").output)
    assert [(row["user"], row["client-id"], row["producer_byte_rate"]) for row in rows] == [
        ("*", "*", None),
        (None, "loader", 1048576),
    ]
    assert "request_percentage" in run(broker, "list").output
    assert "consumer_byte_rate" not in run(broker, "list").output
    gone = run(broker, "delete", "--client-id", "loader")
    assert gone.output == "client-id loader: no quotas\n"
    assert (
        run(broker, "delete", "--user", "*", "--client-id", "*", "request_percentage").exit_code
        == 0
    )
    assert json.loads(run(broker, "list", "--json").output) == []


def test_wrong_words_are_told(broker: BrokerThread) -> None:
    for arguments in (
        ("set", "producer_byte_rate=1"),
        ("set", "producer_byte_rate", "--user", "a"),
        ("set", "producer_byte_rate=fast", "--user", "a"),
        ("set", "magic=1", "--user", "a"),
        ("delete", "magic", "--user", "a"),
    ):
        assert run(broker, *arguments).exception is not None, arguments
    refused = run(broker, "set", "producer_byte_rate=-1", "--user", "a")
    assert "must be greater than 0" in str(getattr(refused.exception, "detail", ""))
