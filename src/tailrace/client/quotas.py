"""Client quotas of a log: whom they are for, and how much they may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.client.admin import Admin
from tailrace.client.errors import RequestError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode

USER, CLIENT_ID = "user", "client-id"
KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)


@dataclass(frozen=True, slots=True)
class Quota:
    """What an entity may. `entity` maps "user" and "client-id" to a name; None is the default."""

    entity: Mapping[str, str | None]
    values: Mapping[str, float] = field(default_factory=dict)


class Quotas:
    """Asks an admin's connections about quotas."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def every(self) -> list[Quota]:
        """All quotas of users and client ids there are."""
        from tailrace.wire.messages import describe_client_quotas as messages

        response = self._admin.ask(
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            messages.DescribeClientQuotasRequest(),
            messages.DescribeClientQuotasResponse,
        )
        _judge(response.error_code, "describing quotas", response.error_message)
        return [
            Quota(
                {one.entity_type: one.entity_name for one in entry.entity},
                {one.key: one.value for one in entry.values},
            )
            for entry in response.entries or ()
        ]

    def change(self, entity: Mapping[str, str | None], changes: Mapping[str, float | None]) -> None:
        """Set quotas of one entity; None removes one."""
        from tailrace.wire.messages import alter_client_quotas as messages

        response = self._admin.ask(
            ApiKey.ALTER_CLIENT_QUOTAS,
            messages.AlterClientQuotasRequest(
                [
                    messages.RequestEntryData(
                        [messages.RequestEntityData(*pair) for pair in entity.items()],
                        [
                            messages.OpData(key, value or 0.0, value is None)
                            for key, value in changes.items()
                        ],
                    )
                ]
            ),
            messages.AlterClientQuotasResponse,
        )
        for entry in response.entries:
            _judge(entry.error_code, "changing a quota", entry.error_message)


def _judge(code: int, action: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise RequestError.of(code, action, detail=message or "")
