"""Requests about quotas, and clients with a name."""

from __future__ import annotations

from typing import Any

from broker.conversations import Talk
from tailrace.wire.apis import ApiKey
from tailrace.wire.messages import alter_client_quotas, describe_client_quotas

Parts = dict[str, str | None]


class QuotaTalk(Talk):
    """Sets and reads quotas."""

    def alter(
        self, *changes: tuple[Parts, dict[str, float | None]], validate_only: bool = False
    ) -> list[int]:
        wire = alter_client_quotas
        answer = self.ask(
            ApiKey.ALTER_CLIENT_QUOTAS,
            wire.AlterClientQuotasRequest(
                entries=[
                    wire.RequestEntryData(
                        [wire.RequestEntityData(*pair) for pair in entity.items()],
                        [
                            wire.OpData(key, value or 0.0, value is None)
                            for key, value in values.items()
                        ],
                    )
                    for entity, values in changes
                ],
                validate_only=validate_only,
            ),
        )
        return [int(entry.error_code) for entry in answer.entries]

    def described(self, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
        wire = describe_client_quotas
        answer = self.ask(
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            wire.DescribeClientQuotasRequest(
                [wire.ComponentData(*one) for one in components], strict
            ),
        )
        if answer.error_code:
            return int(answer.error_code)
        return sorted(
            (
                sorted((one.entity_type, one.entity_name or "<default>") for one in entry.entity),
                sorted((one.key, one.value) for one in entry.values),
            )
            for entry in answer.entries
        )
