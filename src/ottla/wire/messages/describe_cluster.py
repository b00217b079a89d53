"""DescribeCluster: the id, controller and brokers of the cluster."""

from ottla.wire.schema import Message, array, boolean, i8, i16, i32, string


class DescribeClusterRequest(Message):
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    include_cluster_authorized_operations: bool = boolean("0+", default=False)
    endpoint_type: int = i8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+", default=False)


class DescribeClusterBroker(Message):
    broker_id: int = i32("0+", default=0)
    host: str = string("0+", default="")
    port: int = i32("0+", default=0)
    rack: str | None = string("0+", nullable="0+", default=None)
    is_fenced: bool = boolean("2+", default=False)


class DescribeClusterResponse(Message):
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = i32("0+", default=0)
    error_code: int = i16("0+", default=0)
    error_message: str | None = string("0+", nullable="0+", default=None)
    endpoint_type: int = i8("1+", default=1)
    cluster_id: str = string("0+", default="")
    controller_id: int = i32("0+", default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker, "0+", default=())
    cluster_authorized_operations: int = i32("0+", default=-2147483648)
