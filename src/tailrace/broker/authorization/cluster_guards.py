"""Requests about the cluster: settings, quotas, users, access rules, directories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailrace.broker.authorization.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    TOPIC,
)
from tailrace.broker.authorization.authorizer import Caller
from tailrace.broker.authorization.guarding import NO_CLUSTER, REFUSED, Guard, Serve, amend
from tailrace.broker.authorization.topic_guards import cluster_bits
from tailrace.broker.router import Request
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.message import Message
from tailrace.wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_user_scram_credentials,
    incremental_alter_configs,
    list_config_resources,
)

# Kinds of things that have settings.
OF_TOPIC, OF_BROKER, OF_LOGGER, OF_METRICS, OF_GROUP = 2, 4, 8, 16, 32
OF_CLUSTER = frozenset({OF_BROKER, OF_LOGGER, OF_METRICS})
FAILED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.message


def _whole(operation: int, refusal: Callable[[Request[Any]], Message]) -> Guard:
    """A request that is allowed or refused as a whole."""

    def guard(caller: Caller, request: Request[Any], serve: Serve) -> None:
        if caller.may_cluster(operation):
            serve(request)
        else:
            request.answer(refusal(request))

    return guard


def _describe_cluster(
    caller: Caller, request: Request[describe_cluster.DescribeClusterRequest], serve: Serve
) -> None:
    if request.body.include_cluster_authorized_operations:

        def change(answer: describe_cluster.DescribeClusterResponse) -> None:
            if not answer.error_code:
                answer.cluster_authorized_operations = cluster_bits(caller)

        amend(request, change)
    serve(request)


def _refusal(caller: Caller, operation: int, kind: int, name: str) -> ErrorCode | None:
    """Why the settings of a resource may not be seen or changed; None if they may."""
    if kind == OF_TOPIC:
        resource, named = TOPIC, name
    elif kind == OF_GROUP:
        resource, named = GROUP, name
    elif kind in OF_CLUSTER:
        resource, named = CLUSTER, CLUSTER_NAME
    else:
        return None  # there is no such thing; the handler says so
    return None if caller.may(operation, resource, named) else REFUSED[resource]


def _describe_configs(
    caller: Caller, request: Request[describe_configs.DescribeConfigsRequest], serve: Serve
) -> None:
    body = request.body
    refused: list[describe_configs.DescribeConfigsResult] = []
    allowed = []
    for one in body.resources:
        code = _refusal(caller, DESCRIBE_CONFIGS, one.resource_type, one.resource_name)
        if code is None:
            allowed.append(one)
        else:
            refused.append(
                describe_configs.DescribeConfigsResult(
                    error_code=int(code),
                    error_message=code.message,
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                )
            )
    body.resources = allowed

    def change(answer: describe_configs.DescribeConfigsResponse) -> None:
        answer.results += refused

    amend(request, change)
    serve(request)


def _alter_configs(row: Callable[..., Any]) -> Guard:
    """AlterConfigs and IncrementalAlterConfigs, which differ in the class of their rows."""

    def guard(caller: Caller, request: Request[Any], serve: Serve) -> None:
        body = request.body
        refused = []
        allowed = []
        for one in body.resources:
            code = _refusal(caller, ALTER_CONFIGS, one.resource_type, one.resource_name)
            if code is None:
                allowed.append(one)
            else:
                refused.append(
                    row(
                        error_code=int(code),
                        error_message=code.message,
                        resource_type=one.resource_type,
                        resource_name=one.resource_name,
                    )
                )
        body.resources = allowed

        def change(answer: Any) -> None:
            answer.responses += refused

        amend(request, change)
        serve(request)

    return guard


def _no_quotas(request: Request[alter_client_quotas.AlterClientQuotasRequest]) -> Message:
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas.ResponseEntryData(
                error_code=NO_CLUSTER,
                error_message=FAILED,
                entity=[
                    alter_client_quotas.ResponseEntityData(one.entity_type, one.entity_name)
                    for one in entry.entity
                ],
            )
            for entry in request.body.entries
        ]
    )


def _no_credentials(
    request: Request[alter_user_scram_credentials.AlterUserScramCredentialsRequest],
) -> Message:
    body = request.body
    names = dict.fromkeys(
        [one.name for one in body.deletions] + [one.name for one in body.upsertions]
    )
    return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
        results=[
            alter_user_scram_credentials.AlterUserScramCredentialsResult(
                user=name, error_code=NO_CLUSTER, error_message=FAILED
            )
            for name in names
        ]
    )


def guards() -> dict[int, Guard]:
    """The guards of this module."""
    return {
        ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
        ApiKey.DESCRIBE_CONFIGS: _describe_configs,
        ApiKey.ALTER_CONFIGS: _alter_configs(alter_configs.AlterConfigsResourceResponse),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _alter_configs(
            incremental_alter_configs.AlterConfigsResourceResponse
        ),
        ApiKey.LIST_CONFIG_RESOURCES: _whole(
            DESCRIBE_CONFIGS,
            lambda _: list_config_resources.ListConfigResourcesResponse(error_code=NO_CLUSTER),
        ),
        ApiKey.DESCRIBE_LOG_DIRS: _whole(
            DESCRIBE, lambda _: describe_log_dirs.DescribeLogDirsResponse(error_code=NO_CLUSTER)
        ),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: _whole(
            DESCRIBE_CONFIGS,
            lambda _: describe_client_quotas.DescribeClientQuotasResponse(
                error_code=NO_CLUSTER, error_message=FAILED, entries=None
            ),
        ),
        ApiKey.ALTER_CLIENT_QUOTAS: _whole(ALTER_CONFIGS, _no_quotas),
        ApiKey.DESCRIBE_ACLS: _whole(
            DESCRIBE,
            lambda _: describe_acls.DescribeAclsResponse(
                error_code=NO_CLUSTER, error_message=FAILED
            ),
        ),
        ApiKey.CREATE_ACLS: _whole(
            ALTER,
            lambda request: create_acls.CreateAclsResponse(
                results=[
                    create_acls.AclCreationResult(NO_CLUSTER, FAILED)
                    for _ in request.body.creations
                ]
            ),
        ),
        ApiKey.DELETE_ACLS: _whole(
            ALTER,
            lambda request: delete_acls.DeleteAclsResponse(
                filter_results=[
                    delete_acls.DeleteAclsFilterResult(NO_CLUSTER, FAILED)
                    for _ in request.body.filters
                ]
            ),
        ),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _whole(
            DESCRIBE,
            lambda _: describe_user_scram_credentials.DescribeUserScramCredentialsResponse(
                error_code=NO_CLUSTER, error_message=FAILED
            ),
        ),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _whole(ALTER, _no_credentials),
    }
