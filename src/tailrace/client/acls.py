"""Access rules of a log: who may do what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from tailrace.broker.authorization.acls import Acl, AclFilter
from tailrace.client.admin import Admin
from tailrace.client.errors import RequestError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode

AT_A_TIME = 1000
T = TypeVar("T")


class Acls:
    """Asks an admin's connections about access rules."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def find(self, wanted: AclFilter) -> list[Acl]:
        """The rules that a filter means, in order."""
        from tailrace.wire.messages import describe_acls as messages

        response = self._admin.ask(
            ApiKey.DESCRIBE_ACLS,
            messages.DescribeAclsRequest(*wanted),
            messages.DescribeAclsResponse,
        )
        _judge(response.error_code, "describing access rules", response.error_message)
        return sorted(
            Acl(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                one.principal,
                one.host,
                one.operation,
                one.permission_type,
            )
            for resource in response.resources
            for one in resource.acls
        )

    def add(self, acls: Iterable[Acl]) -> None:
        """Add rules; nothing happens for those that are there."""
        from tailrace.wire.messages import create_acls as messages

        for some in _some(list(acls)):
            response = self._admin.ask(
                ApiKey.CREATE_ACLS,
                messages.CreateAclsRequest([messages.AclCreation(*acl) for acl in some]),
                messages.CreateAclsResponse,
            )
            for result in response.results:
                _judge(result.error_code, "adding an access rule", result.error_message)

    def remove(self, wanted: AclFilter) -> list[Acl]:
        """Remove the rules that a filter means; those that were."""
        from tailrace.wire.messages import delete_acls as messages

        response = self._admin.ask(
            ApiKey.DELETE_ACLS,
            messages.DeleteAclsRequest([messages.DeleteAclsFilter(*wanted)]),
            messages.DeleteAclsResponse,
        )
        gone = []
        for result in response.filter_results:
            _judge(result.error_code, "removing access rules", result.error_message)
            for one in result.matching_acls:
                _judge(one.error_code, "removing an access rule", one.error_message)
                gone.append(
                    Acl(
                        one.resource_type,
                        one.resource_name,
                        one.pattern_type,
                        one.principal,
                        one.host,
                        one.operation,
                        one.permission_type,
                    )
                )
        return sorted(gone)


def _some(rows: list[T]) -> Iterable[list[T]]:
    for start in range(0, len(rows), AT_A_TIME):
        yield rows[start : start + AT_A_TIME]


def _judge(code: int, action: str, message: str | None) -> None:
    if code != ErrorCode.NONE:
        raise RequestError.of(code, action, detail=message or "")
