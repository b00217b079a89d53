"""The records of the metadata log, which the controller writes and every node replays."""

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.schema import Message, array, binary, boolean, f64, i8, i16, i32, i64, string, u16, uuid


class BrokerEndpoint(Message):
    name: str = string("0+", default="")
    host: str = string("0+", default="")
    port: int = u16("0+", default=0)
    security_protocol: int = i16("0+", default=0)


class BrokerFeature(Message):
    name: str = string("0+", default="")
    min_supported_version: int = i16("0+", default=0)
    max_supported_version: int = i16("0+", default=0)


class RegisterBrokerRecord(Message):
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 0

    broker_id: int = i32("0+", default=0)
    is_migrating_zk_broker: bool = boolean("2+", default=False)
    incarnation_id: Uuid = uuid("0+", default=ZERO_UUID)
    broker_epoch: int = i64("0+", default=0)
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint, "0+", default=())
    features: list[BrokerFeature] = array(BrokerFeature, "0+", default=())
    rack: str | None = string("0+", nullable="0+", default="")
    fenced: bool = boolean("0+", default=True)
    in_controlled_shutdown: bool = boolean("1+", default=False)
    log_dirs: list[Uuid] = array(uuid, "3+", default=(), tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "4+", nullable="4+", default=None, tag=1)


class UnregisterBrokerRecord(Message):
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    broker_id: int = i32("0+", default=0)
    broker_epoch: int = i64("0+", default=0)


class TopicRecord(Message):
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    name: str = string("0+", default="")
    topic_id: Uuid = uuid("0+", default=ZERO_UUID)


class PartitionRecord(Message):
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    partition_id: int = i32("0+", default=-1)
    topic_id: Uuid = uuid("0+", default=ZERO_UUID)
    replicas: list[int] = array(i32, "0+", default=())
    isr: list[int] = array(i32, "0+", default=())
    removing_replicas: list[int] = array(i32, "0+", default=())
    adding_replicas: list[int] = array(i32, "0+", default=())
    leader: int = i32("0+", default=-1)
    leader_recovery_state: int = i8("0+", default=0, tag=0)
    leader_epoch: int = i32("0+", default=-1)
    partition_epoch: int = i32("0+", default=-1)
    directories: list[Uuid] = array(uuid, "1+", default=())
    eligible_leader_replicas: list[int] | None = array(i32, "2+", nullable="2+", default=None, tag=1)
    last_known_elr: list[int] | None = array(i32, "2+", nullable="2+", default=None, tag=2)


class ConfigRecord(Message):
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    name: str = string("0+", default="")
    value: str | None = string("0+", nullable="0+", default="")


class PartitionChangeRecord(Message):
    API_KEY = 5
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    partition_id: int = i32("0+", default=-1)
    topic_id: Uuid = uuid("0+", default=ZERO_UUID)
    isr: list[int] | None = array(i32, "0+", nullable="0+", default=None, tag=0)
    leader: int = i32("0+", default=-2, tag=1)
    replicas: list[int] | None = array(i32, "0+", nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = array(i32, "0+", nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = array(i32, "0+", nullable="0+", default=None, tag=4)
    leader_recovery_state: int = i8("0+", default=-1, tag=5)
    directories: list[Uuid] | None = array(uuid, "1+", nullable="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = array(i32, "2+", nullable="2+", default=None, tag=6)
    last_known_elr: list[int] | None = array(i32, "2+", nullable="2+", default=None, tag=7)


class FenceBrokerRecord(Message):
    API_KEY = 7
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    id: int = i32("0+", default=0)
    epoch: int = i64("0+", default=0)


class UnfenceBrokerRecord(Message):
    API_KEY = 8
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    id: int = i32("0+", default=0)
    epoch: int = i64("0+", default=0)


class RemoveTopicRecord(Message):
    API_KEY = 9
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    topic_id: Uuid = uuid("0+", default=ZERO_UUID)


class DelegationTokenRecord(Message):
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    owner: str = string("0+", default="")
    requester: str = string("0+", default="")
    renewers: list[str] = array(string, "0+", default=())
    issue_timestamp: int = i64("0+", default=0)
    max_timestamp: int = i64("0+", default=0)
    expiration_timestamp: int = i64("0+", default=0)
    token_id: str = string("0+", default="")


class UserScramCredentialRecord(Message):
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    name: str = string("0+", default="")
    mechanism: int = i8("0+", default=0)
    salt: bytes = binary("0+", default=b"")
    stored_key: bytes = binary("0+", default=b"")
    server_key: bytes = binary("0+", default=b"")
    iterations: int = i32("0+", default=0)


class FeatureLevelRecord(Message):
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    name: str = string("0+", default="")
    feature_level: int = i16("0+", default=0)


class EntityData(Message):
    entity_type: str = string("0+", default="")
    entity_name: str | None = string("0+", nullable="0+", default="")


class ClientQuotaRecord(Message):
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    entity: list[EntityData] = array(EntityData, "0+", default=())
    key: str = string("0+", default="")
    value: float = f64("0+", default=0.0)
    remove: bool = boolean("0+", default=False)


class ProducerIdsRecord(Message):
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    broker_id: int = i32("0+", default=0)
    broker_epoch: int = i64("0+", default=-1)
    next_producer_id: int = i64("0+", default=0)


class BrokerRegistrationChangeRecord(Message):
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 0

    broker_id: int = i32("0+", default=0)
    broker_epoch: int = i64("0+", default=0)
    fenced: int = i8("0+", default=0, tag=0)
    in_controlled_shutdown: int = i8("1+", default=0, tag=1)
    log_dirs: list[Uuid] = array(uuid, "2+", default=(), tag=2)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "3+", nullable="3+", default=None, tag=3)


class AccessControlEntryRecord(Message):
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    id: Uuid = uuid("0+", default=ZERO_UUID)
    resource_type: int = i8("0+", default=0)
    resource_name: str = string("0+", default="")
    pattern_type: int = i8("0+", default=0)
    principal: str = string("0+", default="")
    host: str = string("0+", default="")
    operation: int = i8("0+", default=0)
    permission_type: int = i8("0+", default=0)


class RemoveAccessControlEntryRecord(Message):
    API_KEY = 19
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    id: Uuid = uuid("0+", default=ZERO_UUID)


class NoOpRecord(Message):
    API_KEY = 20
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0


class ZkMigrationStateRecord(Message):
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    zk_migration_state: int = i8("0+", default=0)


class RemoveUserScramCredentialRecord(Message):
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    name: str = string("0+", default="")
    mechanism: int = i8("0+", default=0)


class BeginTransactionRecord(Message):
    API_KEY = 23
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    name: str | None = string("0+", nullable="0+", default=None, tag=0)


class EndTransactionRecord(Message):
    API_KEY = 24
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0


class AbortTransactionRecord(Message):
    API_KEY = 25
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    reason: str | None = string("0+", nullable="0+", default=None, tag=0)


class RemoveDelegationTokenRecord(Message):
    API_KEY = 26
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    token_id: str = string("0+", default="")


class ControllerEndpoint(Message):
    name: str = string("0+", default="")
    host: str = string("0+", default="")
    port: int = u16("0+", default=0)
    security_protocol: int = i16("0+", default=0)


class ControllerFeature(Message):
    name: str = string("0+", default="")
    min_supported_version: int = i16("0+", default=0)
    max_supported_version: int = i16("0+", default=0)


class RegisterControllerRecord(Message):
    API_KEY = 27
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    controller_id: int = i32("0+", default=0)
    incarnation_id: Uuid = uuid("0+", default=ZERO_UUID)
    zk_migration_ready: bool = boolean("0+", default=False)
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint, "0+", default=())
    features: list[ControllerFeature] = array(ControllerFeature, "0+", default=())


class ClearElrRecord(Message):
    API_KEY = 28
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    topic_name: str = string("0+", default="")
