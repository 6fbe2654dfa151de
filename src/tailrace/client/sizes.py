"""How many bytes each partition takes on its leader's disk."""

from __future__ import annotations

from tailrace.client.admin import Admin, Place
from tailrace.wire.apis import APIS, ApiKey
from tailrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


def partition_sizes(admin: Admin) -> dict[Place, int]:
    """Bytes of every partition; of several copies the largest."""
    nodes = {leader for topic in admin.list_topics(internal=True) for leader in topic.leaders}
    api = APIS[ApiKey.DESCRIBE_LOG_DIRS]
    found: dict[Place, int] = {}
    for node in sorted(node for node in nodes if node >= 0):
        response = admin.cluster.broker(node).request(api, DescribeLogDirsRequest(topics=None))
        assert isinstance(response, DescribeLogDirsResponse)
        for directory in response.results:
            for topic in directory.topics:
                for partition in topic.partitions:
                    place = (topic.name, partition.partition_index)
                    found[place] = max(found.get(place, 0), partition.partition_size)
    return found
