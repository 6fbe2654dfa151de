"""ApiVersions: exactly what is routed, nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tailrace.broker.router import Request, Route
from tailrace.wire.apis import ApiKey
from tailrace.wire.errors import ErrorCode
from tailrace.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from tailrace.broker.server import Broker

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def routes(broker: Broker) -> Iterable[Route]:
    """The routes of this module."""

    def versions(request: Request[ApiVersionsRequest]) -> None:
        body = request.body
        if request.version >= 3:
            names = (body.client_software_name, body.client_software_version)
            if not all(_SOFTWARE.fullmatch(name) for name in names):
                request.answer(ApiVersionsResponse(error_code=int(ErrorCode.INVALID_REQUEST)))
                return
            request.connection.client_software = names
        request.answer(
            ApiVersionsResponse(
                api_keys=[
                    ApiVersion(
                        api_key=route.api_key,
                        min_version=route.minimum,
                        max_version=route.maximum,
                    )
                    for _, route in sorted(broker.router.routes.items())
                ],
                # Before version 4 clients refuse a range that starts at 0.
                supported_features=[
                    SupportedFeatureKey(name=name, min_version=0, max_version=level)
                    for name, level in broker.features.items()
                    if request.version >= 4
                ],
                finalized_features_epoch=1,
                finalized_features=[
                    FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                    for name, level in broker.features.items()
                ],
            )
        )

    yield Route(ApiKey.API_VERSIONS, 0, 4, versions)
