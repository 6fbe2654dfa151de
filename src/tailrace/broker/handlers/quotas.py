"""DescribeClientQuotas and AlterClientQuotas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.errors import InvalidQuotaError
from tailrace.broker.quotas.table import CLIENT_ID, DEFAULT, USER, Entity
from tailrace.broker.router import Request, Route
from tailrace.errors import TailraceError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tailrace.broker.server import Broker
    from tailrace.wire.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        RequestEntryData,
    )
    from tailrace.wire.messages.describe_client_quotas import (
        ComponentData,
        DescribeClientQuotasRequest,
    )

KINDS = (USER, CLIENT_ID, "ip")


class QuotaRequests:
    """The handlers of this module. Messages are imported on use: most brokers never need them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(self, request: Request[DescribeClientQuotasRequest]) -> None:
        from tailrace.wire.messages.describe_client_quotas import (
            DescribeClientQuotasResponse,
            EntityData,
            EntryData,
            ValueData,
        )

        try:
            exact, specified = _filter(request.body.components)
        except InvalidQuotaError as error:
            code = error.kafka_code
            if any(
                one.entity_type not in KINDS for one in request.body.components if one.entity_type
            ):
                code = int(ErrorCode.UNSUPPORTED_VERSION)
            request.answer(
                DescribeClientQuotasResponse(
                    error_code=code, error_message=error.message, entries=None
                )
            )
            return
        found = self._broker.quotas.table.find(exact, specified, strict=request.body.strict)
        request.answer(
            DescribeClientQuotasResponse(
                error_message=None,
                entries=[
                    EntryData(
                        entity=[EntityData(kind, name) for kind, name in entity.parts()],
                        values=[ValueData(key, value) for key, value in values.items()],
                    )
                    for entity, values in found
                ],
            )
        )

    def alter(self, request: Request[AlterClientQuotasRequest]) -> None:
        from tailrace.wire.messages.alter_client_quotas import (
            AlterClientQuotasResponse,
            ResponseEntityData,
            ResponseEntryData,
        )

        rows = []
        for entry in request.body.entries:
            code, message = self._alter(entry, request.body.validate_only)
            rows.append(
                ResponseEntryData(
                    error_code=code,
                    error_message=message,
                    entity=[
                        ResponseEntityData(one.entity_type, one.entity_name) for one in entry.entity
                    ],
                )
            )
        request.answer(AlterClientQuotasResponse(entries=rows))

    def _alter(self, entry: RequestEntryData, validate_only: bool) -> tuple[int, str | None]:
        quotas = self._broker.quotas
        changes = {one.key: None if one.remove else one.value for one in entry.ops}
        try:
            entity = Entity.of((one.entity_type, one.entity_name) for one in entry.entity)
            if len(changes) != len(entry.ops):
                raise InvalidQuotaError("a quota is named twice")
            if validate_only:
                quotas.table.changed(entity, changes)
            else:
                quotas.change(entity, changes)
        except TailraceError as error:
            code = getattr(error, "kafka_code", int(ErrorCode.UNKNOWN_SERVER_ERROR))
            return code, error.message
        return 0, None


def _filter(components: Iterable[ComponentData]) -> tuple[dict[str, str], list[str]]:
    exact: dict[str, str] = {}
    specified: list[str] = []
    for one in components:
        kind = one.entity_type
        if not kind:
            raise InvalidQuotaError("Invalid empty entity type.")
        if kind not in KINDS:
            raise InvalidQuotaError(f"Custom entity type '{kind}' not supported")
        if kind in exact or kind in specified:
            raise InvalidQuotaError(
                f"Entity type {kind} cannot appear more than once in the filter."
            )
        match one.match_type, one.match:
            case 0, str(name):
                exact[kind] = name
            case 1, None:
                exact[kind] = DEFAULT
            case 2, None:
                specified.append(kind)
            case number, _:
                raise InvalidQuotaError(f"Match type {number} does not go with what is to match.")
    if "ip" in (*exact, *specified) and {USER, CLIENT_ID} & {*exact, *specified}:
        raise InvalidQuotaError("An ip filter does not go with user or client-id.")
    return exact, specified


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = QuotaRequests(broker)
    yield Route(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, handlers.describe)
    yield Route(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, handlers.alter)
