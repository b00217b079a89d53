"""Admin of the cluster: brokers, log directories, features, the quorum and configs."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.base.config_text import ConfigScalar, optional_config_text
from ottla.client.admin_core import AdminCore, result_or_raise
from ottla.client.admin_results import (
    BrokerDescription,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    Features,
    LogDir,
    Quorum,
    QuorumReplica,
    ReplicaInfo,
)
from ottla.client.cluster_client import ANY_NODE
from ottla.client.cluster_metadata import Node
from ottla.client.errors import ClientError, broker_error, raise_for
from ottla.client.records import TopicPartition
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

RESOURCE_KINDS = {"topic": 2, "broker": 4, "broker_logger": 8, "client_metrics": 16, "group": 32}
_KIND_NAMES = {number: name for name, number in RESOURCE_KINDS.items()}
SOURCES = {
    0: "unknown", 1: "dynamic_topic", 2: "dynamic_broker", 3: "dynamic_default_broker", 4: "static", 5: "default",
    6: "dynamic_broker_logger", 7: "client_metrics", 8: "group",
}  # fmt: skip
OPERATIONS = {"set": 0, "delete": 1, "append": 2, "subtract": 3}
UPGRADES = {"upgrade": 1, "safe_downgrade": 2, "unsafe_downgrade": 3}
METADATA_TOPIC = "__cluster_metadata"

Change = tuple[str, str, ConfigScalar | None]
"""Operation ("set", "delete", "append", "subtract"), name and value."""


class ClusterAdmin(AdminCore):
    async def describe_cluster(self, *, include_fenced: bool = False) -> ClusterDescription:
        request = DescribeClusterRequest(include_fenced_brokers=include_fenced)
        response = await self._call(
            request,
            DescribeClusterResponse,
            check=lambda response: raise_for(response.error_code, response.error_message),
            version_max=None if include_fenced else 1,
        )
        brokers = tuple(
            BrokerDescription(Node(each.broker_id, each.host, each.port, each.rack), each.is_fenced)
            for each in sorted(response.brokers, key=lambda each: each.broker_id)
        )
        return ClusterDescription(response.cluster_id, response.controller_id, brokers)

    async def describe_log_dirs(self, brokers: Iterable[int] | None = None) -> dict[int, tuple[LogDir, ...]]:
        """Return the log directories of brokers (None: all) and the replicas in them."""
        chosen = await self._broker_ids() if brokers is None else list(brokers)
        found: dict[int, tuple[LogDir, ...]] = {}
        for node in chosen:
            response = await self._call(
                DescribeLogDirsRequest(topics=None),
                DescribeLogDirsResponse,
                node=node,
                check=lambda response: raise_for(response.error_code),
            )
            found[node] = tuple(
                LogDir(
                    each.log_dir,
                    broker_error(each.error_code, about=each.log_dir) if each.error_code else None,
                    {
                        TopicPartition(topic.name, part.partition_index): ReplicaInfo(
                            part.partition_size, part.offset_lag, part.is_future_key
                        )
                        for topic in each.topics
                        for part in topic.partitions
                    },
                    each.total_bytes,
                    each.usable_bytes,
                )
                for each in response.results
            )
        return found

    async def describe_features(self) -> Features:
        response = await self._call(
            ApiVersionsRequest(client_software_name="ottla-client", client_software_version="0.1.0"),
            ApiVersionsResponse,
            check=lambda response: raise_for(response.error_code),
        )
        supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
        finalized = {
            each.name: (each.min_version_level, each.max_version_level) for each in response.finalized_features
        }
        return Features(supported, finalized, response.finalized_features_epoch)

    async def update_features(
        self, levels: Mapping[str, int], *, kind: str = "upgrade", validate_only: bool = False
    ) -> None:
        """Upgrade features to these levels, or downgrade them ("safe_downgrade", "unsafe_downgrade")."""
        updates = [FeatureUpdateKey(name, level, upgrade_type=UPGRADES[kind]) for name, level in levels.items()]
        request = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
        response = await self._call(
            request,
            UpdateFeaturesResponse,
            check=lambda response: raise_for(response.error_code, response.error_message),
        )
        errors: dict[str, ClientError] = {
            each.feature: broker_error(each.error_code, each.error_message, about=f"feature {each.feature!r}")
            for each in response.results
            if each.error_code
        }
        result_or_raise(
            "update_features", {each.feature: None for each in response.results if not each.error_code}, errors
        )

    async def describe_quorum(self) -> Quorum:
        """Return the replicas of the metadata log and the log end offset of each."""
        request = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])

        def check(response: DescribeQuorumResponse) -> None:
            raise_for(response.error_code, response.error_message)
            part = response.topics[0].partitions[0]
            raise_for(part.error_code, part.error_message)

        response = await self._call(request, DescribeQuorumResponse, check=check)
        part = response.topics[0].partitions[0]
        return Quorum(
            part.leader_id,
            part.leader_epoch,
            part.high_watermark,
            _replicas(part.current_voters),
            _replicas(part.observers),
        )

    # Configs

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Return the configs of resources, all or by name, with their sources."""
        results: dict[ConfigResource, dict[str, ConfigEntry]] = {}
        errors: dict[ConfigResource, ClientError] = {}
        for node, group in _by_node(resources).items():
            requested = [
                DescribeConfigsResource(RESOURCE_KINDS[each.kind], each.name, list(names) if names else None)
                for each in group
            ]
            request = DescribeConfigsRequest(
                resources=requested, include_synonyms=synonyms, include_documentation=documentation
            )
            response = await self._call(request, DescribeConfigsResponse, node=node)
            for result in response.results:
                resource, error = _resource_result(result)
                if error is not None:
                    errors[resource] = error
                else:
                    results[resource] = {each.name: _entry(each) for each in result.configs}
        return result_or_raise("describe_configs", results, errors)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, ConfigScalar | None] | Sequence[Change]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change some configs of resources and leave the others.

        A mapping sets configs (None resets to the default); a list of (operation, name, value) also appends and
        subtracts.
        """
        results: dict[ConfigResource, None] = {}
        errors: dict[ConfigResource, ClientError] = {}
        for node, group in _by_node(changes).items():
            requested = [
                AlterConfigsResource(RESOURCE_KINDS[each.kind], each.name, _alterations(changes[each]))
                for each in group
            ]
            request = IncrementalAlterConfigsRequest(resources=requested, validate_only=validate_only)
            response = await self._call(request, IncrementalAlterConfigsResponse, node=node)
            for result in response.responses:
                resource, error = _resource_result(result)
                if error is not None:
                    errors[resource] = error
                else:
                    results[resource] = None
        result_or_raise("alter_configs", results, errors)

    async def list_config_resources(self, kinds: Iterable[str] = ()) -> tuple[ConfigResource, ...]:
        """Return the resources with configs of their own, of some kinds or of all that the broker lists."""
        request = ListConfigResourcesRequest([RESOURCE_KINDS[kind] for kind in kinds])
        response = await self._call(
            request, ListConfigResourcesResponse, check=lambda response: raise_for(response.error_code)
        )
        found = [_resource(each.resource_type, each.resource_name) for each in response.config_resources]
        return tuple(sorted(found, key=lambda each: (each.kind, each.name)))


def _by_node(resources: Iterable[ConfigResource]) -> dict[int, list[ConfigResource]]:
    """Group resources by broker: configs of a broker are requested from it, others from any broker."""
    grouped: dict[int, list[ConfigResource]] = {}
    for each in resources:
        is_of_broker = each.kind in ("broker", "broker_logger") and each.name != ""
        grouped.setdefault(int(each.name) if is_of_broker else ANY_NODE, []).append(each)
    return grouped


def _resource(kind: int, name: str) -> ConfigResource:
    return ConfigResource(_KIND_NAMES.get(kind, str(kind)), name)


def _resource_result(
    result: DescribeConfigsResult | AlterConfigsResourceResponse,
) -> tuple[ConfigResource, ClientError | None]:
    """Return the resource of a result, and its error if any."""
    resource = _resource(result.resource_type, result.resource_name)
    if not result.error_code:
        return resource, None
    return resource, broker_error(result.error_code, result.error_message, about=f"{resource.kind} {resource.name!r}")


def _entry(result: DescribeConfigsResourceResult) -> ConfigEntry:
    synonyms = tuple((each.name, each.value, SOURCES.get(each.source, "unknown")) for each in result.synonyms)
    source = SOURCES.get(result.config_source, "unknown")
    return ConfigEntry(
        result.name, result.value, source, result.read_only, result.is_sensitive, synonyms, result.documentation or None
    )


def _alterations(changes: Mapping[str, ConfigScalar | None] | Sequence[Change]) -> list[AlterableConfig]:
    if isinstance(changes, Mapping):
        return [
            AlterableConfig(name, OPERATIONS["delete" if value is None else "set"], optional_config_text(name, value))
            for name, value in changes.items()
        ]
    return [
        AlterableConfig(name, OPERATIONS[operation], optional_config_text(name, value))
        for operation, name, value in changes
    ]


def _replicas(states: Iterable[ReplicaState]) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            each.replica_id,
            each.replica_directory_id,
            each.log_end_offset,
            each.last_fetch_timestamp,
            each.last_caught_up_timestamp,
        )
        for each in states
    )
