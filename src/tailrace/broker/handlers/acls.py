"""DescribeAcls, CreateAcls and DeleteAcls."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.authorization.acls import Acl, AclFilter
from tailrace.broker.errors import InvalidAclError
from tailrace.broker.router import Request, Route
from tailrace.errors import TailraceError
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from tailrace.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from tailrace.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from tailrace.broker.authorization.authorizer import Authorizer
    from tailrace.broker.server import Broker

log = logging.getLogger("tailrace.broker.controller")

# As Kafka's controller: one request may not change more.
CHANGES_PER_REQUEST = 10_000
# Filters times rules that one request may have compared; filters for one rule are free.
COMPARISONS_PER_REQUEST = 5_000_000
TOO_MANY = f"more than {CHANGES_PER_REQUEST} access rules in one request"
TOO_VAGUE = "too many filters for so many access rules; ask for fewer at a time"
DISABLED = int(ErrorCode.SECURITY_DISABLED)
NO_AUTHORIZER = "No Authorizer is configured."


class Acls:
    """The handlers of this module. Who may ask has been checked."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe(self, request: Request[DescribeAclsRequest]) -> None:
        authorizer, body = self._broker.authorizer, request.body
        if authorizer is None:
            request.answer(
                DescribeAclsResponse(
                    error_code=DISABLED, error_message="No Authorizer is configured on the broker"
                )
            )
            return
        wanted = _filter(body)
        try:
            wanted.check()
        except InvalidAclError as error:
            request.answer(
                DescribeAclsResponse(error_code=error.kafka_code, error_message=error.message)
            )
            return
        resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
        for acl in authorizer.table.find(wanted):
            place = (acl.resource, acl.name, acl.pattern)
            found = resources.get(place)
            if found is None:
                found = resources[place] = DescribeAclsResource(*place)
            found.acls.append(
                AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
            )
        request.answer(DescribeAclsResponse(error_message=None, resources=list(resources.values())))

    def create(self, request: Request[CreateAclsRequest]) -> None:
        authorizer, creations = self._broker.authorizer, request.body.creations
        if authorizer is None:
            _all(request, [AclCreationResult(DISABLED, NO_AUTHORIZER) for _ in creations])
            return
        if len(creations) > CHANGES_PER_REQUEST:
            code = int(ErrorCode.POLICY_VIOLATION)
            _all(request, [AclCreationResult(code, TOO_MANY) for _ in creations])
            return
        results: list[AclCreationResult] = []
        new: dict[Acl, None] = {}
        for one in creations:
            acl = _acl(one)
            try:
                acl.check()
            except InvalidAclError as error:
                results.append(AclCreationResult(error.kafka_code, error.message))
                continue
            results.append(AclCreationResult(0, None))
            if acl not in authorizer.table:
                new[acl] = None
        if new:
            try:
                self._change(authorizer, new, ())
            except TailraceError as error:
                code = getattr(error, "kafka_code", -1)
                for result in results:
                    if not result.error_code:
                        result.error_code, result.error_message = code, error.message
        _all(request, results)

    def delete(self, request: Request[DeleteAclsRequest]) -> None:
        authorizer, filters = self._broker.authorizer, request.body.filters
        if authorizer is None:
            request.answer(
                DeleteAclsResponse(
                    filter_results=[
                        DeleteAclsFilterResult(DISABLED, NO_AUTHORIZER) for _ in filters
                    ]
                )
            )
            return
        results: list[DeleteAclsFilterResult] = []
        gone: dict[Acl, None] = {}
        wanted_ones = [_filter(one) for one in filters]
        vague = sum(wanted.one is None for wanted in wanted_ones)
        if vague > 1 and vague * len(authorizer.table) > COMPARISONS_PER_REQUEST:
            code = int(ErrorCode.POLICY_VIOLATION)
            refused = [DeleteAclsFilterResult(code, TOO_VAGUE) for _ in filters]
            request.answer(DeleteAclsResponse(filter_results=refused))
            return
        for wanted in wanted_ones:
            try:
                wanted.check()
            except InvalidAclError as error:
                results.append(DeleteAclsFilterResult(error.kafka_code, error.message))
                continue
            found = authorizer.table.find(wanted)
            gone.update(dict.fromkeys(found))
            results.append(DeleteAclsFilterResult(0, None, [_matching(acl) for acl in found]))
            if len(gone) > CHANGES_PER_REQUEST:
                code = int(ErrorCode.POLICY_VIOLATION)
                results = [DeleteAclsFilterResult(code, TOO_MANY) for _ in filters]
                gone = {}
                break
        if gone:
            try:
                self._change(authorizer, (), gone)
            except TailraceError as error:
                code = getattr(error, "kafka_code", -1)
                results = [
                    result if result.error_code else DeleteAclsFilterResult(code, error.message)
                    for result in results
                ]
        request.answer(DeleteAclsResponse(filter_results=results))

    def _change(self, authorizer: Authorizer, add: Iterable[Acl], remove: Iterable[Acl]) -> None:
        """On disk, all or none, before anybody is judged by it."""
        self._broker.store.change_acls(add, remove)
        authorizer.change(add, remove)
        for acl in add:
            log.info("access rule added", extra={"rule": str(acl)})
        for acl in remove:
            log.info("access rule removed", extra={"rule": str(acl)})


def _all(request: Request[CreateAclsRequest], results: list[AclCreationResult]) -> None:
    request.answer(CreateAclsResponse(results=results))


def _acl(one: AclCreation) -> Acl:
    return Acl(
        one.resource_type, one.resource_name, one.resource_pattern_type, one.principal, one.host,
        one.operation, one.permission_type,
    )  # fmt: skip


def _filter(one: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        one.resource_type_filter, one.resource_name_filter, one.pattern_type_filter,
        one.principal_filter, one.host_filter, one.operation, one.permission_type,
    )  # fmt: skip


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource,
        resource_name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""
    handlers = Acls(broker)
    yield Route(ApiKey.DESCRIBE_ACLS, 1, 3, handlers.describe)
    yield Route(ApiKey.CREATE_ACLS, 1, 3, handlers.create)
    yield Route(ApiKey.DELETE_ACLS, 1, 3, handlers.delete)
