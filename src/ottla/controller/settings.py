"""What the controller takes from its node's own configuration, and the limits that keep one request from filling the log."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.errors import ApiError, ErrorCode
from ottla.metadata.configs import BrokerLayers, broker_value
from ottla.metadata.image import ClusterImage

RECORDS_PER_REQUEST_MAX = 10_000
PARTITIONS_PER_REQUEST_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """`static_configs` are the texts of the node's file: they stand under the dynamic configs of the image."""

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
        """What this node was given: the controller answers for topics from its own point of view."""
        return BrokerLayers(self.static_configs, image.cluster_configs(), image.broker_configs(self.node_id))


def check_record_count(records: list[object]) -> None:
    """A whole request fails that would write more than the log takes in one go."""
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would write {len(records)} records; {RECORDS_PER_REQUEST_MAX} are allowed at once",
        )
