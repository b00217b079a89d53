"""Configs of the controller, and limits on the size of one request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.errors import ApiError, ErrorCode
from ottla.metadata.configs import BrokerLayers, broker_value
from ottla.metadata.image import ClusterImage

RECORDS_PER_REQUEST_MAX = 10_000
PARTITIONS_PER_REQUEST_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """`static_configs` are the values in the node's config file; dynamic configs in the image override them."""

    node_id: int
    static_configs: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int:
        value = broker_value(name, self.static_configs)
        assert isinstance(value, int), (name, value)
        return value

    @property
    def num_partitions(self) -> int:
        return self.number("num.partitions")

    @property
    def replication_factor(self) -> int:
        return self.number("default.replication.factor")

    @property
    def delete_topic_enable(self) -> bool:
        return bool(broker_value("delete.topic.enable", self.static_configs))

    def layers(self, image: ClusterImage) -> BrokerLayers:
        """Return the config layers of this node, which also apply to topics, as in Kafka."""
        return BrokerLayers(self.static_configs, image.cluster_configs(), image.broker_configs(self.node_id))


def check_record_count(records: list[object]) -> None:
    """Reject a request that would write more than RECORDS_PER_REQUEST_MAX records."""
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"request would write {len(records)} metadata records; the limit is {RECORDS_PER_REQUEST_MAX}",
        )
