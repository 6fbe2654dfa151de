"""A broker and somebody who sets its quotas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.quotas.quota_talk import QuotaTalk
from tailrace.broker.embedded import BrokerThread


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), durable=False) as running:
        yield running


@pytest.fixture
def talk(broker: BrokerThread) -> Iterator[QuotaTalk]:
    one = QuotaTalk(broker.address)
    yield one
    one.close()
